//! Purges allocators in other libraries: a jemalloc or mimalloc that exports a function for that.
//! Each call searches the loaded objects, and loads none.
//!
//! jemalloc purges all of its arenas from any thread. mimalloc releases nothing in a thread without
//! a heap in it, so the calling thread first allocates a block there.

use std::ffi::{c_char, c_int, c_void, CStr};

use flarena_sys::env::Extra;
use flarena_sys::loader::elf::Image;
use flarena_sys::loader::reference::{self, Reference};
use flarena_sys::{config, loader::symbols};

/// The functions that collect, allocate and free.
type Names = [&'static CStr; 3];
const MIMALLOC: Names = [c"mi_collect", c"mi_malloc_aligned", c"mi_free"];
const ARROW: Names = [
    c"arrow_mi_collect",
    c"arrow_mi_malloc_aligned",
    c"arrow_mi_free",
];
/// With the usual prefixes: none, jemalloc's own, those of Rust's crates and of Apache Arrow. Doctor names any other: to
/// find one here, all names would have to be read, which makes 13 MB resident and takes 10 ms in a process with PyTorch.
const JEMALLOCS: [&CStr; 4] = [
    c"mallctl",
    c"je_mallctl",
    c"_rjem_mallctl",
    c"je_arrow_mallctl",
];
/// All arenas, in jemalloc 5. An older one refuses the name.
const PURGE_ALL: &CStr = c"arena.4096.purge";

/// The libraries with an allocator, other than libflarena. They stay loaded while they are used here.
fn find() -> Vec<Reference> {
    let mut libraries =
        reference::to_objects(|path, image| is_file(path.to_bytes()) && has_allocator(image));
    libraries.retain(|library| !is_flarena(library));
    libraries
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
    for library in &libraries {
        purge_jemalloc(library);
        purge_mimalloc(library);
    }
    !libraries.is_empty()
}

/// The jemalloc in libflarena is the backend.
fn is_flarena(library: &Reference) -> bool {
    symbols::is_in_this_library(library.address_of(JEMALLOCS[0]))
}

fn purge_jemalloc(library: &Reference) {
    type Mallctl =
        unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
    let null = std::ptr::null_mut;
    for name in JEMALLOCS {
        // SAFETY: the type is that of jemalloc's function.
        let mallctl: Option<Mallctl> = unsafe { library.function(name) };
        if let Some(mallctl) = mallctl {
            // SAFETY: this control has no value, and the library stays loaded during the call.
            unsafe { mallctl(PURGE_ALL.as_ptr(), null(), null().cast(), null(), 0) };
            return;
        }
    }
}

fn purge_mimalloc(library: &Reference) {
    type Collect = unsafe extern "C" fn(bool);
    type Alloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
    type Free = unsafe extern "C" fn(*mut c_void);
    const SIZE: usize = 64;
    for [collect, alloc, free] in mimallocs() {
        // SAFETY: the types are those of mimalloc's functions.
        let functions: (Option<Collect>, Option<Alloc>, Option<Free>) = unsafe {
            (
                library.function(collect),
                library.function(alloc),
                library.function(free),
            )
        };
        if let (Some(collect), Some(alloc), Some(free)) = functions {
            // SAFETY: the block is from this allocator, any thread may call the functions, and the
            // library stays loaded during the calls.
            unsafe {
                free(alloc(SIZE, SIZE));
                collect(true);
            }
        }
    }
}
