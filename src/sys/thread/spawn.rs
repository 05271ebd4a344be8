//! Creates the helper thread with libc's `pthread_create`, even if another library interposes it.
//!
//! A profiler's wrapper may take a lock that the profiler holds while it calls malloc. Pinning tools count
//! threads in their wrapper. The helper thread starts inside a malloc and must not be counted.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::loader::objects;

/// libc's own `pthread_create`; null if it was not found.
static CREATE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Enough for JSON and for the static TLS, which glibc takes from it. Untouched pages cost nothing.
const STACK_BYTES: usize = 512 << 10;

/// The thread's main function.
pub type Body = extern "C" fn(*mut c_void) -> *mut c_void;

type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Body,
    *mut c_void,
) -> c_int;

/// Called once by the constructor.
pub fn configure() {
    let found = objects::in_libc(c"pthread_create");
    CREATE.store(found.cast_mut().cast(), Relaxed);
}

/// Creates a detached thread with all signals blocked, so it receives none of the program's. False: it failed.
pub fn create(body: Body) -> bool {
    let create = CREATE.load(Relaxed).cast_const().cast();
    // SAFETY: configure() stores libc's function of this type, or null.
    let create: Create = unsafe { objects::cast(create) }.unwrap_or(libc::pthread_create);
    // SAFETY: the attributes and masks are locals that the calls initialise, and `body` ignores its argument.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_attr_init(&mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&mut attributes, STACK_BYTES);
        // The thread inherits the mask of its creator.
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let mut thread = 0;
        let error = create(&mut thread, &attributes, body, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut());
        libc::pthread_attr_destroy(&mut attributes);
        error == 0
    }
}
