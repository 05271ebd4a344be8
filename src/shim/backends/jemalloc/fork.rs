//! jemalloc's own fork handlers, which it registers by `pthread_atfork` when it initialises.

use std::ffi::c_void;
use std::sync::OnceLock;

unsafe extern "C" {
    #[link_name = "_rjem_je_arena_emap_global"]
    static EMAP: c_void;
    #[link_name = "_rjem_je_b0get"]
    fn first_base() -> *mut c_void;
    #[link_name = "_rjem_je_emap_init"]
    fn init_emap(emap: *const c_void, base: *mut c_void, zeroed: bool) -> bool;
}

pub type Handler = Option<unsafe extern "C" fn()>;

static HANDLERS: OnceLock<[Handler; 3]> = OnceLock::new();

/// Replaces `pthread_atfork` for jemalloc: `backends::fork` calls the handlers when they are needed.
pub fn keep(handlers: [Handler; 3]) {
    HANDLERS.get_or_init(|| handlers);
}

/// Waits for a purge: in the child it would never end, and no other would begin.
pub fn await_purge() {
    drop(super::PURGING.lock_within(super::PURGE_MS));
    super::PURGING.quiesce_for_fork();
}

/// Takes jemalloc's locks.
pub fn take_locks() {
    run(0);
}

pub fn release_locks() {
    run(1);
    super::PURGING.resume_after_fork();
}

/// In the child, which has no other thread.
pub fn renew_locks() {
    renew_emap_lock();
    run(2);
    // SAFETY: the child has no other thread.
    unsafe { super::PURGING.reset_after_fork() };
    super::PURGING.resume_after_fork();
}

/// Resets a lock that jemalloc's handlers miss: a thread that maps a new leaf of the page map holds it across the
/// system call. A child that inherits it locked would deadlock at its first block in a new leaf.
fn renew_emap_lock() {
    if HANDLERS.get().is_none() {
        return; // jemalloc is not initialised
    }
    // SAFETY: jemalloc created this map from this base. With `zeroed` the call changes only the lock. The child has
    // no other thread, and leaves are published by one atomic store.
    unsafe { init_emap(&raw const EMAP, first_base(), true) };
}

fn run(index: usize) {
    if let Some(handler) = HANDLERS.get().and_then(|handlers| handlers[index]) {
        // SAFETY: jemalloc's handlers only require their place around a fork, which the callers keep.
        unsafe { handler() };
    }
}
