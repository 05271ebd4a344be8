//! Symbols of this process: looking them up, who owns `malloc`, and the hiding of `mallctl`.

use std::ffi::{c_int, c_void, CStr};

use crate::process::elf::Image;

/// # Safety
/// `F` must be the type of a function pointer that fits the symbol.
pub unsafe fn lookup<F>(handle: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: the name is NUL-terminated, dlsym takes any handle that dlopen gave, and F fits
    // the symbol by this function's contract.
    unsafe { cast(libc::dlsym(handle, name.as_ptr())) }
}

/// # Safety
/// `F` must be the type of a function pointer that fits the function at this address.
pub unsafe fn cast<F>(address: *const c_void) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: F fits the function at this address by this function's contract, and has the size
    // of an address.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
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
    // SAFETY: this only takes a handle to the program and what was loaded with it; the name is
    // NUL-terminated and the handle is never closed.
    unsafe {
        libc::dlsym(
            libc::dlopen(std::ptr::null(), libc::RTLD_LAZY),
            name.as_ptr(),
        )
    }
}

/// What this library itself has of a name, whoever comes before it; null where it is not loaded or has none.
pub fn in_library(library: &CStr, name: &CStr) -> *const c_void {
    // SAFETY: both are NUL-terminated; nothing is loaded, and the handle is never closed.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return std::ptr::null();
        }
        libc::dlsym(handle, name.as_ptr())
    }
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

/// The first and the last address of the loaded object that holds this one.
pub fn extent_of(address: *const c_void) -> Option<(usize, usize)> {
    Search::object_with(address).extent
}

/// Calls back for each loaded object that has a path. The loader's list is locked meanwhile: nothing may be
/// loaded or called there.
pub fn each_object<V: FnMut(&CStr, &Image)>(mut visit: V) {
    unsafe extern "C" fn inspect<F: FnMut(&CStr, &Image)>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid description and the pointer given to it.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<F>()) };
        if info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: not null, so the path of the object.
        let path = unsafe { CStr::from_ptr(info.dlpi_name) };
        // The program itself has no path, and the kernel's own object none that begins so.
        if path.to_bytes().starts_with(b"/") {
            // SAFETY: the description is one of a loaded object.
            if let Some(image) = unsafe { image_of(info) } {
                visit(path, &image);
            }
        }
        0
    }
    // SAFETY: the callback gets exactly the pointer that is passed here, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(inspect::<V>), (&raw mut visit).cast()) };
}

/// # Safety
/// A description that dl_iterate_phdr passed, during its callback.
unsafe fn image_of(info: &libc::dl_phdr_info) -> Option<Image> {
    // SAFETY: the description says where the program headers are and how many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let dynamic = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC)?;
    let base = info.dlpi_addr;
    // SAFETY: the header points to the dynamic section of this loaded object.
    unsafe { Image::from_dynamic(base + dynamic.p_vaddr, base) }
}

struct Search {
    address: u64,
    extent: Option<(usize, usize)>,
    image: Option<Image>,
}

impl Search {
    fn object_with(address: *const c_void) -> Search {
        let mut search = Search {
            address: address as u64,
            extent: None,
            image: None,
        };
        // SAFETY: the callback gets exactly the pointer that is passed here, and does not keep it.
        unsafe { libc::dl_iterate_phdr(Some(inspect), (&raw mut search).cast()) };
        search
    }
}

unsafe extern "C" fn inspect(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes a valid description and the pointer given to it.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: the description says where the program headers are and how many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr;
    let holds = |h: &libc::Elf64_Phdr| {
        let start = base + h.p_vaddr;
        h.p_type == libc::PT_LOAD && (start..start + h.p_memsz).contains(&search.address)
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    let loads = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
    let first = loads().map(|h| base + h.p_vaddr).min();
    let last = loads().map(|h| base + h.p_vaddr + h.p_memsz - 1).max();
    search.extent = first
        .zip(last)
        .map(|(first, last)| (first as usize, last as usize));
    // SAFETY: the description is the one that was passed.
    search.image = unsafe { image_of(info) };
    1
}
