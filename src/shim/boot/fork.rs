//! What fork needs of us. Registered once, by the constructor.
//!
//! Every lock of ours is held across a fork, so that the child, which has only the forking
//! thread, finds none of them taken by a thread that it does not have.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::choice::{choose, jemalloc};
use crate::report::{garbage, mark, sites};
use crate::{governor, launch, recycler};

extern "C" {
    /// What `pthread_atfork` is made of; that name is jemalloc's here (`choice::jemalloc`).
    fn __register_atfork(
        prepare: unsafe extern "C" fn(),
        parent: unsafe extern "C" fn(),
        child: unsafe extern "C" fn(),
        dso: *const c_void,
    ) -> c_int;
}

/// Registers the handlers of this process.
pub fn register() {
    if choose::is_jemalloc() {
        // Its own handlers are registered when it wakes, and must come before ours.
        jemalloc::wake();
    }
    // SAFETY: the handlers are functions of this library, which is never unloaded: no handle of
    // it need be given, by which they would be taken back.
    unsafe { __register_atfork(prepare, in_parent, in_child, ptr::null()) };
}

unsafe extern "C" fn prepare() {
    mark::lock_for_fork();
    recycler::fork_prepare();
}

unsafe extern "C" fn in_parent() {
    // SAFETY: fork calls this after prepare() and before any other handler of ours.
    unsafe {
        recycler::fork_parent();
        mark::unlock_after_fork();
    }
}

unsafe extern "C" fn in_child() {
    // SAFETY: fork calls this in the child, after prepare() in the parent.
    unsafe {
        recycler::fork_child();
        mark::unlock_after_fork();
    }
    garbage::after_fork_in_child();
    mark::after_fork_in_child();
    sites::after_fork_in_child();
    launch::after_fork_in_child();
    governor::after_fork_in_child();
}
