//! jemalloc's own fork handlers, which it hands to `pthread_atfork` when it wakes.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

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
pub fn prepare() {
    run(0);
}

pub fn in_parent() {
    run(1);
}

pub fn in_child() {
    run(2);
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
