//! `dlopen`, `dlclose` and `dlsym`, looked up at run time instead of linked.
//!
//! Before glibc 2.34 they are in libdl. A link to libdl would make the loader map it in every process,
//! even where libc contains the functions.

use std::ffi::{c_int, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

use crate::loader::objects;

type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
type Open = unsafe extern "C" fn(*const libc::c_char, c_int) -> *mut c_void;
type Symbol = unsafe extern "C" fn(*mut c_void, *const libc::c_char) -> *mut c_void;

struct Functions {
    open: Option<Open>,
    close: Option<Close>,
    symbol: Option<Symbol>,
}

/// Their addresses once found. Not a `RacyOnceCell`, which allocates. Threads that look them up at the
/// same time find the same functions.
static FOUND: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(ptr::null_mut()) }; NAMES.len()];
const NAMES: [&CStr; 3] = [c"dlopen", c"dlclose", c"dlsym"];

const LIBC: &CStr = c"libc.so.6";
const LIBDL: &CStr = c"libdl.so.2";

/// As `dlopen`. Null if it fails, or if this process has no `dlopen`.
///
/// # Safety
/// As `dlopen`: the library's constructors run.
pub unsafe fn open(library: Option<&CStr>, flags: c_int) -> *mut c_void {
    let name = library.map_or(ptr::null(), CStr::as_ptr);
    let open = functions().open;
    // SAFETY: null or NUL-terminated; the rest is the caller's contract.
    open.map_or(ptr::null_mut(), |open| unsafe { open(name, flags) })
}

/// As `dlclose`. Not 0 if it fails, or if this process has no `dlclose`.
///
/// # Safety
/// As `dlclose`: the handle is the loader's, and the library's destructors may run.
pub unsafe fn close(handle: *mut c_void) -> c_int {
    // SAFETY: the handle is the loader's, by this function's contract.
    functions()
        .close
        .map_or(-1, |close| unsafe { close(handle) })
}

/// As `dlsym`, called from this library.
///
/// # Safety
/// The handle is from `open`, or is RTLD_DEFAULT or RTLD_NEXT.
pub unsafe fn symbol(handle: *mut c_void, name: &CStr) -> *const c_void {
    let symbol = functions().symbol;
    // SAFETY: the handle is the loader's by this function's contract, and the name is NUL-terminated.
    symbol.map_or(ptr::null(), |symbol| unsafe {
        symbol(handle, name.as_ptr())
    })
}

fn functions() -> Functions {
    let [.., symbol] = &FOUND;
    if symbol.load(Acquire).is_null() {
        // The last one last, because it is tested.
        for (slot, address) in FOUND.iter().zip(find()) {
            slot.store(address.cast_mut(), Release);
        }
    }
    let [open, close, symbol] = FOUND.each_ref().map(|slot| slot.load(Acquire));
    // SAFETY: null or functions of these names, for which dlfcn.h declares these types.
    unsafe {
        Functions {
            open: objects::cast(open),
            close: objects::cast(close),
            symbol: objects::cast(symbol),
        }
    }
}

/// Allocates only if libdl must be loaded. The program's own allocator may call this while it holds its
/// lock: it registers fork handlers.
fn find() -> [*const c_void; NAMES.len()] {
    let find_in = |library| NAMES.map(|name| objects::in_library(library, name));
    let has_all = |found: &[*const c_void; NAMES.len()]| !found.contains(&ptr::null());
    let mut libraries = [LIBC, LIBDL].into_iter().map(find_in);
    libraries.find(has_all).unwrap_or_else(|| {
        load_libdl();
        let found = Some(find_in(LIBDL)).filter(has_all);
        found.unwrap_or_else(|| NAMES.map(objects::in_other_libc))
    })
}

/// Uses the function with which glibc before 2.34 loads libraries for itself. The constructor is the
/// first caller, so libdl is loaded at start, as for a program that links it.
fn load_libdl() {
    /// `__RTLD_DLOPEN`: the call is not part of the program's start.
    const AS_DLOPEN: c_int = 0x8000_0000_u32 as c_int;
    // SAFETY: libc gives its function this type.
    let open: Option<Open> =
        unsafe { objects::cast(objects::in_library(LIBC, c"__libc_dlopen_mode")) };
    if let Some(open) = open {
        // SAFETY: the name is NUL-terminated; libdl has no constructor that calls this library.
        unsafe { open(LIBDL.as_ptr(), libc::RTLD_LAZY | AS_DLOPEN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looked_up_functions_agree_with_the_linked_ones() {
        // SAFETY: handles to what is loaded.
        let (program, name) = (
            unsafe { open(None, libc::RTLD_LAZY) },
            c"malloc_usable_size",
        );
        assert!(!program.is_null());
        // SAFETY: the handle is from `open`.
        assert_eq!(unsafe { close(program) }, 0);
        // SAFETY: the handles are from `open`, and RTLD_NEXT.
        let (first, next) = unsafe { (symbol(program, name), symbol(libc::RTLD_NEXT, name)) };
        // SAFETY: the name is NUL-terminated.
        let linked = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.cast_const();
        assert!(!first.is_null());
        assert_eq!(next, linked);
        // SAFETY: nothing has this name.
        assert!(unsafe { open(Some(c"no-such-library.so"), libc::RTLD_LAZY) }.is_null());
    }
}
