//! jemalloc's own fork handlers, which it hands to `pthread_atfork` when it wakes.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

extern "C" {
    #[link_name = "_rjem_je_arena_emap_global"]
    static EMAP: c_void;
    #[link_name = "_rjem_je_b0get"]
    fn first_base() -> *mut c_void;
    #[link_name = "_rjem_je_emap_init"]
    fn init_emap(emap: *const c_void, base: *mut c_void, zeroed: bool) -> bool;
}

pub type Handler = Option<unsafe extern "C" fn()>;

static HANDLERS: [AtomicPtr<()>; 3] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 3];

/// `pthread_atfork` for jemalloc: `choice::fork` calls them when there is need.
pub fn keep(handlers: [Handler; 3]) {
    for (slot, handler) in HANDLERS.iter().zip(handlers) {
        slot.store(
            handler.map_or(std::ptr::null_mut(), |f| f as *mut ()),
            Relaxed,
        );
    }
}

/// Takes jemalloc's locks.
pub fn take_locks() {
    run(0);
}

pub fn release_locks() {
    run(1);
}

pub fn renew_locks() {
    renew_emap_lock();
    run(2);
}

/// jemalloc forgets one lock: whoever maps a new piece of its page map holds it, across the system call. A
/// child that inherits it taken would wait for ever at its first block in a new piece.
fn renew_emap_lock() {
    if HANDLERS[2].load(Relaxed).is_null() {
        return; // no jemalloc is awake
    }
    // SAFETY: jemalloc made this map of this base when it woke, and the call changes nothing in it but the lock,
    // told that the rest is zeroed. Pieces appear by one atomic store; no other thread lives in the child.
    unsafe { init_emap(&raw const EMAP, first_base(), true) };
}

fn run(index: usize) {
    let address = HANDLERS[index].load(Relaxed);
    // SAFETY: null, or stored by keep(), where it was a Handler.
    let handler: Handler = unsafe { std::mem::transmute(address) };
    if let Some(handler) = handler {
        // SAFETY: jemalloc's handlers ask for nothing but their place around a fork, which is the callers'.
        unsafe { handler() };
    }
}
