//! Allocators in other libraries: a jemalloc or a mimalloc that exports its own means to purge. They are looked for
//! anew each time, among the objects that are loaded; nothing is loaded for it.
//!
//! A jemalloc is asked for all of its arenas, from any thread. A mimalloc gives nothing back for a thread that has no
//! heap in it, so that ours takes a block first.

use std::ffi::{c_char, c_int, c_void, CStr};

use flarena_sys::env::Extra;
use flarena_sys::loader::elf::Image;
use flarena_sys::{config, loader::dl, loader::objects, loader::symbols};

/// Collect, take a block, give it back.
type Names = [&'static CStr; 3];
const MIMALLOC: Names = [c"mi_collect", c"mi_malloc_aligned", c"mi_free"];
const ARROW: Names = [
    c"arrow_mi_collect",
    c"arrow_mi_malloc_aligned",
    c"arrow_mi_free",
];
/// With the prefixes that are in use: none, by hand, by Rust's crates, by Apache Arrow.
const JEMALLOCS: [&CStr; 4] = [
    c"mallctl",
    c"je_mallctl",
    c"_rjem_mallctl",
    c"je_arrow_mallctl",
];
/// Every arena, in jemalloc 5. An older one refuses the name.
const PURGE_ALL: &CStr = c"arena.4096.purge";

/// More allocators than a process can have in its right mind, and the longest path that is followed.
const MOST: usize = 8;
const PATH_MAX: usize = 1024;

/// The libraries that have an allocator, without our own.
fn find() -> Vec<Library> {
    let mut paths = [[0; PATH_MAX]; MOST];
    let mut count = 0;
    // Copied, as the loader's list is locked only meanwhile.
    objects::each_object(|path, image| {
        let path = path.to_bytes_with_nul();
        if count < MOST && path.len() <= PATH_MAX && is_file(path) && has_allocator(image) {
            paths[count][..path.len()].copy_from_slice(path);
            count += 1;
        }
    });
    let paths = paths[..count].iter();
    paths
        .filter_map(|path| CStr::from_bytes_until_nul(path).ok())
        .filter_map(Library::pinned)
        .filter(|library| !library.is_us())
        .collect()
}

/// mimalloc's own names, and those that Apache Arrow gives to its copy. Where Arrow takes malloc, that copy is
/// not in use, and the first block in it would cost a gigabyte of addresses.
fn mimallocs() -> impl Iterator<Item = Names> {
    let arrow_takes_malloc = config::environment().extra(Extra::ArrowPool) == Some(b"system");
    [Some(MIMALLOC), (!arrow_takes_malloc).then_some(ARROW)]
        .into_iter()
        .flatten()
}

/// Neither the program, which has no path here, nor the kernel's own object.
fn is_file(path: &[u8]) -> bool {
    path.starts_with(b"/")
}

fn has_allocator(image: &Image) -> bool {
    let defines = |name: &&CStr| image.defines(name);
    JEMALLOCS.iter().any(defines) || mimallocs().any(|names| names.iter().all(defines))
}

pub fn has_any() -> bool {
    !find().is_empty()
}

/// True where there was one to purge.
pub fn purge() -> bool {
    let libraries = find();
    libraries.iter().for_each(Library::purge);
    !libraries.is_empty()
}

/// A loaded object that will not go away.
struct Library(*mut c_void);

impl Library {
    /// `None` where it has been unloaded meanwhile.
    fn pinned(path: &CStr) -> Option<Library> {
        const FLAGS: c_int = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: nothing is loaded.
        let handle = unsafe { dl::open(Some(path), FLAGS) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// Our own jemalloc is the backend's business.
    fn is_us(&self) -> bool {
        // SAFETY: an address, and nothing that is called.
        let mallctl: Option<*const c_void> = unsafe { symbols::lookup(self.0, JEMALLOCS[0]) };
        mallctl.is_some_and(symbols::is_inside_us)
    }

    fn purge(&self) {
        self.purge_jemalloc();
        self.purge_mimalloc();
    }

    fn purge_jemalloc(&self) {
        type Mallctl = unsafe extern "C" fn(
            *const c_char,
            *mut c_void,
            *mut usize,
            *mut c_void,
            usize,
        ) -> c_int;
        let null = std::ptr::null_mut;
        for name in JEMALLOCS {
            // SAFETY: the type is that of jemalloc's function.
            let mallctl: Option<Mallctl> = unsafe { symbols::lookup(self.0, name) };
            if let Some(mallctl) = mallctl {
                // SAFETY: this control takes and gives no value.
                unsafe { mallctl(PURGE_ALL.as_ptr(), null(), null().cast(), null(), 0) };
                return;
            }
        }
    }

    fn purge_mimalloc(&self) {
        type Collect = unsafe extern "C" fn(bool);
        type Alloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
        type Free = unsafe extern "C" fn(*mut c_void);
        const SIZE: usize = 64;
        for [collect, alloc, free] in mimallocs() {
            // SAFETY: the types are those of mimalloc's functions.
            let functions: (Option<Collect>, Option<Alloc>, Option<Free>) = unsafe {
                (
                    symbols::lookup(self.0, collect),
                    symbols::lookup(self.0, alloc),
                    symbols::lookup(self.0, free),
                )
            };
            if let (Some(collect), Some(alloc), Some(free)) = functions {
                // SAFETY: a block of this allocator's own; each may be called from any thread.
                unsafe {
                    free(alloc(SIZE, SIZE));
                    collect(true);
                }
            }
        }
    }
}
