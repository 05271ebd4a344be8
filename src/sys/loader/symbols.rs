//! Symbols of this process: lookup, which library serves `malloc`, and how `mallctl` is hidden.

use std::ffi::{c_void, CStr};

use crate::loader::dl;
use crate::loader::objects::{extent_of, for_each_object, image_at, in_libc};

/// An address in this library. Not of an exported function: the loader resolves such a name to its
/// first definition, which may be in another library or a stub of the program.
pub fn own_address() -> *const c_void {
    own_address as *const c_void
}

pub fn is_in_this_library(address: *const c_void) -> bool {
    extent_of(own_address())
        .is_some_and(|(first, last)| (first..=last).contains(&(address as usize)))
}

/// The address that the program's calls of this function reach.
pub fn first_definition(name: &CStr) -> *const c_void {
    // RTLD_DEFAULT would begin with this library, which is linked to prefer its own symbols.
    // SAFETY: this only takes a handle to the program and what was loaded with it; it is never closed.
    unsafe { dl::symbol(dl::open(None, libc::RTLD_LAZY), name) }
}

/// True if the program's calls of `malloc` reach this library: no other allocator precedes it.
///
/// A program linked to a fixed address that takes the address of `malloc` (Debian's python3) contains a
/// stub, which is the first definition everywhere. Then the related functions, whose address the
/// program does not take, show which library it calls.
pub fn owns_malloc() -> bool {
    for name in [c"malloc", c"calloc", c"realloc", c"free", c"posix_memalign"] {
        let address = first_definition(name);
        if is_in_this_library(address) {
            return true;
        }
        let image = image_at(address);
        if image.is_some_and(|image| !image.has_stub_at(address as u64)) {
            return false;
        }
    }
    true
}

/// Functions that take or return blocks.
const BLOCKS: [&CStr; 12] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"free",
    c"memalign",
    c"aligned_alloc",
    c"posix_memalign",
    c"valloc",
    c"pvalloc",
    c"malloc_usable_size",
    c"reallocarray",
    c"cfree",
];

/// Makes later lookups in glibc find this library's malloc family. A plugin that is opened with RTLD_DEEPBIND looks
/// there first, and would free blocks of this library with glibc's `free`. False if glibc's table cannot be changed.
pub fn serve_deep_bound_plugins() -> bool {
    let glibc = image_at(in_libc(c"__libc_malloc"));
    let own = image_at(own_address());
    glibc
        .zip(own)
        .is_some_and(|(glibc, own)| glibc.redirect(&BLOCKS, &own))
}

/// The jemalloc interface. Visible to `dlsym` only in jemalloc mode, because programs (NVFlare's
/// `get_allocator_type`) conclude from `mallctl` that jemalloc serves.
pub const JEMALLOC_ONLY: [&CStr; 11] = [
    c"mallctl",
    c"mallctlnametomib",
    c"mallctlbymib",
    c"malloc_stats_print",
    c"mallocx",
    c"rallocx",
    c"xallocx",
    c"sallocx",
    c"dallocx",
    c"sdallocx",
    c"nallocx",
];

/// Makes [`JEMALLOC_ONLY`] undefined (`hide`). False, too, if an object of the program uses one of them: the loader may
/// bind a call when it is first made, and a call of an undefined function would end the process.
pub fn hide_jemalloc_interface() -> bool {
    let mut is_used = false;
    for_each_object(|_, image| is_used |= image.calls(&JEMALLOC_ONLY));
    !is_used && hide(&JEMALLOC_ONLY)
}

/// Makes names undefined in this library's symbol table, which the dynamic loader reads. False if that fails.
pub fn hide(names: &[&CStr]) -> bool {
    let image = image_at(own_address());
    image.is_some_and(|image| image.hide(names))
}
