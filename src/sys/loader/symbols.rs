//! Symbols of this process: looking them up, who owns `malloc`, and the hiding of `mallctl`.

use std::ffi::{c_void, CStr};

use crate::loader::dl;
use crate::loader::objects::{cast, extent_of, Search};

/// # Safety
/// `F` must be the type of a function pointer that fits the symbol; the handle is the loader's.
pub unsafe fn lookup<F>(handle: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: handle and F are this function's contract.
    unsafe { cast(dl::symbol(handle, name)) }
}

/// An address in this library. Not that of an exported function: the loader gives us, as everybody,
/// the first definition of such a name, which may be another library's or a stub of the program.
pub fn inside_us() -> *const c_void {
    inside_us as *const c_void
}

/// True for the address of something in this library.
pub fn is_inside_us(address: *const c_void) -> bool {
    extent_of(inside_us()).is_some_and(|(first, last)| (first..=last).contains(&(address as usize)))
}

/// The address that the program's own calls of this function go to.
pub fn first(name: &CStr) -> *const c_void {
    // RTLD_DEFAULT would begin with this library, which is linked to prefer its own symbols.
    // SAFETY: this only takes a handle to the program and what was loaded with it; it is never closed.
    unsafe { dl::symbol(dl::open(None, libc::RTLD_LAZY), name) }
}

/// True when the program's `malloc` is ours: no other allocator stands before us.
///
/// A program linked to a fixed address that passes `malloc` around (Debian's python3) holds a stub
/// that stands for it everywhere. The relatives whose address it does not take tell whom it calls.
pub fn owns_malloc() -> bool {
    for name in [c"malloc", c"calloc", c"realloc", c"free", c"posix_memalign"] {
        let address = first(name);
        if is_inside_us(address) {
            return true;
        }
        let image = Search::object_with(address).image;
        if image.is_some_and(|image| !image.has_stub_at(address as u64)) {
            return false;
        }
    }
    true
}

/// The jemalloc interface. Visible to `dlsym` only when jemalloc serves, because programs
/// (NVFlare's `get_allocator_type`) take the presence of `mallctl` for jemalloc's.
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

/// Makes [`JEMALLOC_ONLY`] undefined in this library's own symbol table, as the dynamic loader
/// sees it from now on.
pub fn hide_jemalloc_interface() -> bool {
    let image = Search::object_with(inside_us()).image;
    image.is_some_and(|image| image.hide(&JEMALLOC_ONLY))
}
