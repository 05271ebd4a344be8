//! What fork needs of us. Registered once, by the constructor.
//!
//! Every lock of ours is held across a fork, so that the child, which has only the forking
//! thread, finds none of them taken by a thread that it does not have.

use crate::choice::{choose, jemalloc};
use crate::report::mark;
use crate::{governor, launch, recycler};

/// Registers the handlers of this process.
pub fn register() {
    if choose::is_jemalloc() {
        // Its own handlers are registered when it wakes, and must come before ours.
        jemalloc::wake();
    }
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
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
    mark::after_fork_in_child();
    launch::after_fork_in_child();
    governor::after_fork_in_child();
}
