//! The objects that the loader has mapped into this process, and what they define.

use std::ffi::{c_int, c_void, CStr, CString};
use std::ptr;

use crate::loader::elf::Image;

#[cfg(target_arch = "x86_64")]
const LOADER: &CStr = c"ld-linux-x86-64.so.2";
#[cfg(target_arch = "aarch64")]
const LOADER: &CStr = c"ld-linux-aarch64.so.1";

/// # Safety
/// `F` must be the type of a function pointer that fits the function at this address.
pub unsafe fn cast<F>(address: *const c_void) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: F fits the function at this address by this function's contract, and has the size
    // of an address.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}

/// The address of a name in this library, even if another library precedes it. Null if the library is
/// not loaded or does not define the name. Does not allocate, and reads only the loader's list. For
/// libraries that are never unloaded.
pub fn in_library(library: &CStr, name: &CStr) -> *const c_void {
    let mut address: *const c_void = ptr::null();
    for_each_object(|_, image| {
        if address.is_null() && image.is_called(library) {
            address = image.address_of(name);
        }
    });
    address
}

/// The address of a name in libc itself. The loader contains a part of libc; before 2.34 libpthread
/// contains another.
pub fn in_libc(name: &CStr) -> *const c_void {
    [c"libc.so.6", c"libpthread.so.0", LOADER]
        .into_iter()
        .map(|library| in_library(library, name))
        .find(|address| !address.is_null())
        .unwrap_or(ptr::null())
}

/// The path of the loaded object that contains this address, in an allocated copy: the loader frees its
/// own when it unloads the object. The program's path is empty.
pub fn path_of(address: *const c_void) -> Option<CString> {
    struct Search {
        address: u64,
        path: Vec<u8>,
    }
    unsafe extern "C" fn copy(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid description and the pointer given to it.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the description is the one that was passed.
        if !unsafe { contains(info, search.address) } || info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: not null, so the NUL-terminated path of the object.
        let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        // Never more than the capacity: the list is locked.
        let len = path.len().min(search.path.capacity());
        search.path.extend_from_slice(&path[..len]);
        1
    }
    let mut search = Search {
        address: address as u64,
        path: Vec::with_capacity(libc::PATH_MAX as usize),
    };
    // SAFETY: the callback gets exactly the pointer that is passed here, and does not keep it.
    let found = unsafe { libc::dl_iterate_phdr(Some(copy), (&raw mut search).cast()) };
    (found == 1).then(|| CString::new(search.path).ok())?
}

/// The addresses of names in libc and libpthread, found in one walk; null where neither defines the name. A function of
/// libpthread precedes the one in libc with the same name, which only forwards to it.
pub fn all_in_libc<const N: usize>(names: [&CStr; N]) -> [*const c_void; N] {
    let mut found: [*const c_void; N] = [ptr::null(); N];
    for_each_object(|_, image| {
        let is_libpthread = image.is_called(c"libpthread.so.0");
        if !is_libpthread && !image.is_called(c"libc.so.6") {
            return;
        }
        for (found, name) in found.iter_mut().zip(names) {
            let address = image.address_of(name);
            if !address.is_null() && (is_libpthread || found.is_null()) {
                *found = address;
            }
        }
    });
    found
}

/// The address of a name in the libc of a process without glibc.
pub fn in_other_libc(name: &CStr) -> *const c_void {
    let mut address: *const c_void = ptr::null();
    for_each_object(|_, image| {
        if address.is_null() && image.defines(c"__libc_start_main") {
            address = image.address_of(name);
        }
    });
    address
}

/// The first and the last address of the loaded object that contains this address.
pub fn extent_of(address: *const c_void) -> Option<(usize, usize)> {
    LoadedObject::containing(address).extent
}

/// The number of objects that the loader has loaded so far.
pub fn load_count() -> u64 {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        count: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid description and the pointer given to it.
        unsafe { *count.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut count = 0_u64;
    // SAFETY: the callback gets exactly the pointer that is passed here, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut count).cast()) };
    count
}

/// Calls `visit` with the path and the symbols of each loaded object. The program's path is empty. The
/// loader's list is locked during the calls: `visit` must not load a library or look up a symbol.
pub fn for_each_object<V: FnMut(&CStr, &Image)>(mut visit: V) {
    unsafe extern "C" fn inspect<F: FnMut(&CStr, &Image)>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid description and the pointer given to it.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<F>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: not null, so the path of the object; the description is one of a loaded object.
            let (path, image) = unsafe { (CStr::from_ptr(info.dlpi_name), image_of(info)) };
            image.inspect(|image| visit(path, image));
        }
        0
    }
    // SAFETY: the callback gets exactly the pointer that is passed here, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(inspect::<V>), (&raw mut visit).cast()) };
}

/// # Safety
/// A description that dl_iterate_phdr passed, during its callback.
unsafe fn headers_of(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    // SAFETY: the description says where the program headers are and how many.
    unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
}

/// # Safety
/// As for `headers_of`.
unsafe fn contains(info: &libc::dl_phdr_info, address: u64) -> bool {
    // SAFETY: the description is one of dl_iterate_phdr, during its callback.
    let headers = unsafe { headers_of(info) };
    headers.iter().any(|header| {
        let start = info.dlpi_addr + header.p_vaddr;
        header.p_type == libc::PT_LOAD && (start..start + header.p_memsz).contains(&address)
    })
}

/// # Safety
/// As for `headers_of`.
unsafe fn image_of(info: &libc::dl_phdr_info) -> Option<Image> {
    // SAFETY: the description is one of dl_iterate_phdr, during its callback.
    let headers = unsafe { headers_of(info) };
    let dynamic = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC)?;
    let base = info.dlpi_addr;
    // SAFETY: the header points to the dynamic section of this loaded object.
    let image = unsafe { Image::from_dynamic(base + dynamic.p_vaddr, base) };
    image.map(|image| image.with_headers(headers))
}

/// The loaded object that contains an address; `None` in both fields if there is no such object.
pub struct LoadedObject {
    address: u64,
    extent: Option<(usize, usize)>,
    pub image: Option<Image>,
}

impl LoadedObject {
    pub fn containing(address: *const c_void) -> LoadedObject {
        let mut search = LoadedObject {
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
    let (info, search) = unsafe { (&*info, &mut *search.cast::<LoadedObject>()) };
    // SAFETY: the description is the one that was passed.
    let (headers, is_here) = unsafe { (headers_of(info), contains(info, search.address)) };
    let base = info.dlpi_addr;
    if !is_here {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn by_dlsym(library: &CStr, name: &CStr) -> *const c_void {
        // SAFETY: both are NUL-terminated, and nothing is loaded.
        unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            assert!(!handle.is_null());
            libc::dlsym(handle, name.as_ptr())
        }
    }

    #[test]
    fn lookup_in_a_loaded_library_agrees_with_dlsym() {
        for name in [
            c"malloc_usable_size",
            c"mallinfo",
            c"_IO_list_lock",
            c"environ",
            // Each has at least two versions, of which one is current.
            c"realpath",
            c"posix_spawn",
            c"regexec",
        ] {
            let found = in_library(c"libc.so.6", name);
            assert_eq!(found, by_dlsym(c"libc.so.6", name), "{name:?}");
            assert!(!found.is_null(), "{name:?}");
        }
    }

    #[test]
    fn missing_indirect_and_thread_local_symbols_are_not_found() {
        assert!(in_library(c"libc.so.6", c"no_such_function").is_null());
        assert!(in_library(c"no-such-library.so", c"malloc").is_null());
        // An IFUNC.
        assert!(!by_dlsym(c"libc.so.6", c"memcpy").is_null());
        assert!(in_library(c"libc.so.6", c"memcpy").is_null());
        // Thread-local.
        assert!(in_library(c"libc.so.6", c"errno").is_null());
    }

    #[test]
    fn function_that_was_in_libpthread_is_found() {
        let found = in_libc(c"pthread_create");
        assert!(!found.is_null());
        let libc_has_it = !in_library(c"libc.so.6", c"pthread_create").is_null();
        let library = if libc_has_it {
            c"libc.so.6"
        } else {
            c"libpthread.so.0"
        };
        assert_eq!(found, by_dlsym(library, c"pthread_create"));
    }

    #[test]
    fn libc_function_in_the_loader_is_found() {
        let name = c"__tls_get_addr";
        assert!(in_library(c"libc.so.6", name).is_null());
        // SAFETY: the name is NUL-terminated.
        let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.cast_const();
        assert!(!first.is_null());
        assert_eq!(in_libc(name), first);
    }
}
