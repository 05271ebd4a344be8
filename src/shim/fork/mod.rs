//! What fork needs of us: handlers that call every room with something to say to a child. A room beside `boot`, as
//! libraries may register theirs before the constructor runs.
//!
//! Handlers that are registered first run last before the fork, and first after it: then everybody else's may
//! still allocate, and join threads that do. jemalloc and the preload's constructor come too late for that, for
//! the constructors of the libraries that the program is linked to have run by then. So we stand where
//! handlers are registered, and register ours before the first.

mod main_thread;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::choice::{fork, glibc};
use crate::garbage;
use crate::report::{hibernation, mark, sites};
use crate::{governor, launch};
use flarena_recycler as recycler;
use flarena_sys::{loader::symbols, sync::stdio, thread, thread::signals};

/// What `pthread_atfork` is made of.
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;
pub type Handler = Option<unsafe extern "C" fn()>;

static REGISTERED: AtomicBool = AtomicBool::new(false);

pub use main_thread::watch as watch_main_thread;

/// Registers the handlers of this process, once.
pub fn register() {
    if let Some(next) = next_register() {
        register_with(next);
    }
}

fn register_with(next: Register) {
    if !REGISTERED.swap(true, Relaxed) {
        stdio::configure();
        // SAFETY: the handlers are functions of this library, which is never unloaded: no handle of
        // it need be given, by which they would be taken back.
        unsafe {
            next(
                Some(prepare),
                Some(in_parent),
                Some(in_child),
                std::ptr::null_mut(),
            );
        }
    }
}

/// `__register_atfork`, for everybody.
///
/// # Safety
/// That function's own contract.
pub unsafe fn register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    library: *mut c_void,
) -> c_int {
    let Some(next) = next_register() else {
        return libc::ENOSYS;
    };
    register_with(next);
    // SAFETY: functions and object of the library that registers, passed on as they came.
    unsafe { next(prepare, parent, child, library) }
}

/// Looked up at each call: libraries register at their load, a few in a process.
fn next_register() -> Option<Register> {
    // SAFETY: libc gives the function this type.
    unsafe { symbols::lookup(libc::RTLD_NEXT, c"__register_atfork") }
}

unsafe extern "C" fn prepare() {
    signals::hold_for_fork();
    fork::before_fork();
    recycler::quiesce_for_fork();
}

unsafe extern "C" fn in_parent() {
    recycler::resume_after_fork();
    fork::after_fork_in_parent();
    signals::end_hold();
}

unsafe extern "C" fn in_child() {
    fork::after_fork_in_child();
    // SAFETY: the child has no other thread before fork returns in it.
    unsafe {
        recycler::after_fork_in_child();
        glibc::after_fork_in_child();
        mark::after_fork_in_child();
        garbage::after_fork_in_child();
    }
    hibernation::after_fork_in_child();
    sites::after_fork_in_child();
    thread::after_fork_in_child();
    launch::after_fork_in_child();
    governor::after_fork_in_child();
    main_thread::follow_fork();
    signals::end_hold();
}
