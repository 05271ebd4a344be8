//! The objects that the loader has mapped into this process, and what they define.

use std::ffi::{c_int, c_void, CStr, CString};
use std::ops::Range;
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
    let mut copy: Vec<u8> = Vec::with_capacity(libc::PATH_MAX as usize);
    let is_found = visit_until(|object| {
        let path = object.path().filter(|_| object.contains(address as u64));
        path.is_some_and(|path| {
            // Never more than the capacity: the list is locked.
            let len = path.to_bytes().len().min(copy.capacity());
            copy.extend_from_slice(&path.to_bytes()[..len]);
            true
        })
    });
    is_found.then(|| CString::new(copy).ok())?
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

/// The number of objects that the loader has loaded so far.
pub fn load_count() -> u64 {
    let mut count = 0;
    visit_until(|object| {
        count = object.0.dlpi_adds;
        true
    });
    count
}

/// Calls `visit` with the path and the symbols of each loaded object. The program's path is empty. The
/// loader's list is locked during the calls: `visit` must not load a library or look up a symbol.
pub fn for_each_object(mut visit: impl FnMut(&CStr, &Image)) {
    visit_until(|object| {
        if let Some((path, image)) = object.path().zip(object.image()) {
            visit(path, &image);
        }
        false
    });
}

/// Calls `visit` with each loaded object until it returns true; false if it never does. The loader's list is locked
/// during the calls.
fn visit_until<V: FnMut(Object) -> bool>(mut visit: V) -> bool {
    unsafe extern "C" fn call<V: FnMut(Object) -> bool>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid description and the pointer given to it.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<V>()) };
        c_int::from(visit(Object(info)))
    }
    // SAFETY: the callback gets exactly the pointer that is passed here, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(call::<V>), (&raw mut visit).cast()) == 1 }
}

/// A loaded object, as dl_iterate_phdr describes it during its callback.
struct Object<'a>(&'a libc::dl_phdr_info);

impl Object<'_> {
    fn path(&self) -> Option<&CStr> {
        let path = self.0.dlpi_name;
        // SAFETY: not null, so the NUL-terminated path of the object.
        (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
    }

    fn headers(&self) -> &[libc::Elf64_Phdr] {
        // SAFETY: the description says where the program headers are and how many.
        unsafe { std::slice::from_raw_parts(self.0.dlpi_phdr, self.0.dlpi_phnum.into()) }
    }

    /// The addresses of each segment in memory.
    fn segments(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let loads = self.headers().iter().filter(|h| h.p_type == libc::PT_LOAD);
        loads.map(|h| {
            let start = self.0.dlpi_addr + h.p_vaddr;
            start..start + h.p_memsz
        })
    }

    fn contains(&self, address: u64) -> bool {
        self.segments().any(|segment| segment.contains(&address))
    }

    fn image(&self) -> Option<Image> {
        let headers = self.headers();
        let dynamic = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC)?;
        let base = self.0.dlpi_addr;
        // SAFETY: the header points to the dynamic section of this loaded object.
        let image = unsafe { Image::from_dynamic(base + dynamic.p_vaddr, base) };
        image.map(|image| image.with_headers(headers))
    }
}

/// The first and the last address of the loaded object that contains this address.
pub fn extent_of(address: *const c_void) -> Option<(usize, usize)> {
    let mut extent = None;
    visit_until(|object| {
        let is_here = object.contains(address as u64);
        if is_here {
            let first = object.segments().map(|segment| segment.start).min();
            let last = object.segments().map(|segment| segment.end - 1).max();
            extent = first.zip(last);
        }
        is_here
    });
    extent.map(|(first, last)| (first as usize, last as usize))
}

/// The symbols of the loaded object that contains this address.
pub fn image_at(address: *const c_void) -> Option<Image> {
    let mut image = None;
    visit_until(|object| {
        let is_here = object.contains(address as u64);
        if is_here {
            image = object.image();
        }
        is_here
    });
    image
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
