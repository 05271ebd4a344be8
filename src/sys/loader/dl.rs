//! The loader's own functions, looked up instead of linked to: before glibc 2.34 they lie in a library of their own, whose
//! name in this one would make the loader map that library in every process, also where libc has them.

use std::ffi::{c_int, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::loader::objects;

type Open = unsafe extern "C" fn(*const libc::c_char, c_int) -> *mut c_void;
type Symbol = unsafe extern "C" fn(*mut c_void, *const libc::c_char) -> *mut c_void;
type Address = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;

struct Functions {
    open: Option<Open>,
    symbol: Option<Symbol>,
    address: Option<Address>,
}

/// The same once they are found: nothing that is allocated. Whoever looks at the same time finds the same.
struct Found {
    open: AtomicPtr<c_void>,
    symbol: AtomicPtr<c_void>,
    address: AtomicPtr<c_void>,
}

static FOUND: Found = Found {
    open: AtomicPtr::new(ptr::null_mut()),
    symbol: AtomicPtr::new(ptr::null_mut()),
    address: AtomicPtr::new(ptr::null_mut()),
};

impl Found {
    fn keep(&self, functions: Functions) {
        let Functions {
            open,
            symbol,
            address,
        } = functions;
        let at = |function: Option<*mut c_void>| function.unwrap_or(ptr::null_mut());
        self.open.store(at(open.map(|f| f as *mut c_void)), Relaxed);
        self.address
            .store(at(address.map(|f| f as *mut c_void)), Relaxed);
        // The last: it is asked first.
        self.symbol
            .store(at(symbol.map(|f| f as *mut c_void)), Release);
    }

    fn read(&self) -> Functions {
        // SAFETY: keep() stores functions of these types, or null.
        unsafe {
            Functions {
                symbol: objects::cast(self.symbol.load(Acquire)),
                open: objects::cast(self.open.load(Relaxed)),
                address: objects::cast(self.address.load(Relaxed)),
            }
        }
    }
}

const LIBC: &CStr = c"libc.so.6";
const LIBDL: &CStr = c"libdl.so.2";

/// A handle as of `dlopen`; null where it has none, or is not there.
///
/// # Safety
/// As `dlopen`: what is loaded runs its constructors.
pub unsafe fn open(library: Option<&CStr>, flags: c_int) -> *mut c_void {
    let name = library.map_or(ptr::null(), CStr::as_ptr);
    let open = functions().open;
    // SAFETY: null or NUL-terminated; the rest is the caller's contract.
    open.map_or(ptr::null_mut(), |open| unsafe { open(name, flags) })
}

/// As `dlsym`, called from this library.
///
/// # Safety
/// The handle is one of `open`'s, or one of the two that the loader has for all.
pub unsafe fn symbol(handle: *mut c_void, name: &CStr) -> *const c_void {
    let symbol = functions().symbol;
    // SAFETY: the handle is the loader's by this function's contract, and the name is NUL-terminated.
    symbol.map_or(ptr::null(), |symbol| unsafe {
        symbol(handle, name.as_ptr())
    })
}

/// As `dladdr`.
#[allow(clippy::not_unsafe_ptr_arg_deref)] // dladdr compares the address; it does not read it.
pub fn about(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: an all-zero Dl_info is storage for the call to fill.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address.
    let known = functions()
        .address
        .map(|ask| unsafe { ask(address, &mut found) });
    (known? != 0).then_some(found)
}

fn functions() -> Functions {
    if FOUND.symbol.load(Acquire).is_null() {
        FOUND.keep(find());
    }
    FOUND.read()
}

/// Allocates only where libdl must be loaded: an allocator of the program's own registers fork handlers with its lock held,
/// and then comes here.
fn find() -> Functions {
    [LIBC, LIBDL]
        .into_iter()
        .map(Functions::of)
        .find(|functions| functions.symbol.is_some())
        .unwrap_or_else(|| {
            load_libdl();
            Functions::of(LIBDL)
        })
}

impl Functions {
    fn of(library: &CStr) -> Functions {
        let address_of = |name| objects::in_library(library, name);
        // SAFETY: each name is given the type that dlfcn.h declares for it.
        unsafe {
            Functions {
                open: objects::cast(address_of(c"dlopen")),
                symbol: objects::cast(address_of(c"dlsym")),
                address: objects::cast(address_of(c"dladdr")),
            }
        }
    }
}

/// By the means that a libc before 2.34 has for itself. The constructor comes here first: what loads at that time is
/// loaded as other libraries load theirs.
fn load_libdl() {
    /// Beside the usual flags: the call is no part of the program's start.
    const AS_DLOPEN: c_int = 0x8000_0000_u32 as c_int;
    // SAFETY: libc gives its function this type.
    let open: Option<Open> =
        unsafe { objects::cast(objects::in_library(LIBC, c"__libc_dlopen_mode")) };
    if let Some(open) = open {
        // SAFETY: the name is NUL-terminated; the library has no constructor of its own that could ask for us.
        unsafe { open(LIBDL.as_ptr(), libc::RTLD_LAZY | AS_DLOPEN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_functions_do_what_they_do_elsewhere() {
        // SAFETY: handles to what is loaded.
        let (program, name) = (
            unsafe { open(None, libc::RTLD_LAZY) },
            c"malloc_usable_size",
        );
        assert!(!program.is_null());
        // SAFETY: the handle is open's, the other one the loader's.
        let (first, next) = unsafe { (symbol(program, name), symbol(libc::RTLD_NEXT, name)) };
        // SAFETY: the name is NUL-terminated.
        let theirs = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.cast_const();
        assert!(!first.is_null());
        assert_eq!(next, theirs);
        // SAFETY: nothing has this name.
        assert!(unsafe { open(Some(c"no-such-library.so"), libc::RTLD_LAZY) }.is_null());
    }

    #[test]
    fn an_address_in_libc_is_known_to_be_there() {
        let about = about(objects::in_libc(c"malloc_usable_size")).unwrap();
        // SAFETY: the loader's names of a loaded object and of what it defines.
        let (library, name) = unsafe {
            (
                CStr::from_ptr(about.dli_fname),
                CStr::from_ptr(about.dli_sname),
            )
        };
        assert!(library.to_bytes().ends_with(b"libc.so.6"), "{library:?}");
        assert!(name.to_bytes().ends_with(b"malloc_usable_size"), "{name:?}");
        assert!(super::about(ptr::null()).is_none());
    }
}
