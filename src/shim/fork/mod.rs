//! The fork handlers: they call every module that has state to protect or to reset in the child.
//!
//! Handlers that are registered first run last before the fork and first after it. So handlers of other
//! libraries may still allocate, and join threads that allocate. The constructor of a preload runs after
//! those of the program's libraries, which is too late. Therefore this module exports
//! `__register_atfork` and registers its own handlers before the first of another library.
//! `docs/design/fork.md` describes the whole protocol.

mod main_thread;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::backends::{fork, glibc};
use crate::garbage;
use crate::pools::python_pools;
use crate::report::{mark, sites};
use crate::{at_limit, governor, launch, memory_limit};
use flarena_recycler as recycler;
use flarena_sys::{
    identity, limits, loader::dl, loader::objects::cast, proc::sharing, sync::stdio,
    thread::helper, thread::signals,
};

/// The type of `__register_atfork`, the function behind `pthread_atfork`.
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
        // SAFETY: the handlers are functions of this library, which is never unloaded. So they need no
        // library handle, by which libc would remove them at dlclose.
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

/// The exported `__register_atfork`: registers this library's handlers first, then the caller's.
///
/// # Safety
/// As libc's `__register_atfork`.
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
    // SAFETY: the arguments are passed on unchanged, and the caller keeps this function's contract.
    unsafe { next(prepare, parent, child, library) }
}

/// Looked up at each call, because few libraries register handlers, at their load.
fn next_register() -> Option<Register> {
    // SAFETY: libc gives the function this type.
    unsafe { cast(dl::symbol(libc::RTLD_NEXT, c"__register_atfork")) }
}

unsafe extern "C" fn prepare() {
    signals::block_for_fork();
    let is_governor_quiet = helper::quiesce();
    fork::before_fork(is_governor_quiet);
    recycler::quiesce_for_fork();
}

unsafe extern "C" fn in_parent() {
    recycler::resume_after_fork();
    fork::after_fork_in_parent();
    sharing::note_fork();
    helper::resume();
    signals::restore_after_fork();
}

unsafe extern "C" fn in_child() {
    fork::after_fork_in_child();
    sharing::note_fork();
    // SAFETY: the child has no other thread before fork returns in it.
    unsafe {
        recycler::after_fork_in_child();
        glibc::after_fork_in_child();
        memory_limit::after_fork_in_child();
        at_limit::after_fork_in_child();
        mark::after_fork_in_child();
        garbage::after_fork_in_child();
        sites::after_fork_in_child();
    }
    identity::after_fork_in_child();
    python_pools::after_fork_in_child();
    limits::after_fork_in_child();
    helper::after_fork_in_child();
    launch::after_fork_in_child();
    governor::after_fork_in_child();
    main_thread::follow_fork();
    signals::restore_after_fork();
}
