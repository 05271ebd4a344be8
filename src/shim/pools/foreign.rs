//! Purges allocators in other libraries: a jemalloc or mimalloc that exports a function for that.
//! Each call searches the loaded objects, and loads none.
//!
//! jemalloc purges all of its arenas from any thread. mimalloc releases nothing in a thread without
//! a heap in it, so the calling thread first allocates a block there.

use std::ffi::{c_char, c_int, c_void, CStr};

use flarena_sys::env::Extra;
use flarena_sys::loader::elf::Image;
use flarena_sys::{config, loader::dl, loader::objects, loader::symbols};

/// The functions that collect, allocate and free.
type Names = [&'static CStr; 3];
const MIMALLOC: Names = [c"mi_collect", c"mi_malloc_aligned", c"mi_free"];
const ARROW: Names = [
    c"arrow_mi_collect",
    c"arrow_mi_malloc_aligned",
    c"arrow_mi_free",
];
/// With the usual prefixes: none, jemalloc's own, those of Rust's crates and of Apache Arrow.
const JEMALLOCS: [&CStr; 4] = [
    c"mallctl",
    c"je_mallctl",
    c"_rjem_mallctl",
    c"je_arrow_mallctl",
];
/// All arenas, in jemalloc 5. An older one refuses the name.
const PURGE_ALL: &CStr = c"arena.4096.purge";

/// Further libraries, and those with a longer path, are ignored.
const LIBRARIES_MAX: usize = 8;
const PATH_MAX: usize = 1024;

/// The libraries with an allocator, other than libflarena.
fn find() -> Vec<Library> {
    let mut paths = [[0; PATH_MAX]; LIBRARIES_MAX];
    let mut count = 0;
    // The loader's list is locked only during this call, so the paths are copied.
    objects::for_each_object(|path, image| {
        let path = path.to_bytes_with_nul();
        if count < LIBRARIES_MAX && path.len() <= PATH_MAX && is_file(path) && has_allocator(image)
        {
            paths[count][..path.len()].copy_from_slice(path);
            count += 1;
        }
    });
    let paths = paths[..count].iter();
    paths
        .filter_map(|path| CStr::from_bytes_until_nul(path).ok())
        .filter_map(Library::pinned)
        .filter(|library| !library.is_flarena())
        .collect()
}

/// mimalloc's names, and those of Apache Arrow's copy. If Arrow uses malloc, its copy is unused,
/// and the first block in it would reserve a gigabyte of addresses.
fn mimallocs() -> impl Iterator<Item = Names> {
    let arrow_uses_malloc = config::environment().extra(Extra::ArrowPool) == Some(b"system");
    [Some(MIMALLOC), (!arrow_uses_malloc).then_some(ARROW)]
        .into_iter()
        .flatten()
}

/// False for the program, which has no path here, and for the vdso.
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

/// True if there was an allocator to purge.
pub fn purge() -> bool {
    let libraries = find();
    libraries.iter().for_each(Library::purge);
    !libraries.is_empty()
}

/// A loaded object that is never unloaded.
struct Library(*mut c_void);

impl Library {
    /// `None` if it has been unloaded in the meantime.
    fn pinned(path: &CStr) -> Option<Library> {
        const FLAGS: c_int = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: RTLD_NOLOAD loads no object, so none runs its constructors.
        let handle = unsafe { dl::open(Some(path), FLAGS) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// The jemalloc in libflarena is the backend.
    fn is_flarena(&self) -> bool {
        // SAFETY: the address is only compared.
        let mallctl: Option<*const c_void> = unsafe { symbols::lookup(self.0, JEMALLOCS[0]) };
        mallctl.is_some_and(symbols::is_in_this_library)
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
                // SAFETY: this control has no value.
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
                // SAFETY: the block is from this allocator, and any thread may call the functions.
                unsafe {
                    free(alloc(SIZE, SIZE));
                    collect(true);
                }
            }
        }
    }
}
