//! Calls during which the governor does nothing.
//!
//! `_Fork` and `clone` make a copy of the process without fork handlers. In a program with one thread the copy may
//! use malloc. So the governor must not hold a lock then, or be in the middle of a change (docs/design/fork.md).
//!
//! `dlclose` closes a library while the governor uses none, so that the governor's reference is never the last one.
//! Destructors would run in the governor's thread, which has other descriptors, and the library would still be loaded
//! when `dlclose` returns.
//!
//! A signal handler may call `_Fork`. The wait is bounded, also if the handler has interrupted the holder of a lock
//! that the governor waits for.

use std::ffi::c_int;

use crate::abi::Ptr;
use flarena_sys::loader::next::Next;
use flarena_sys::loader::{dl, symbols};
use flarena_sys::{proc::sharing, thread::helper};
use libc::pid_t;

type Fork = unsafe extern "C" fn() -> pid_t;
pub type Child = Option<unsafe extern "C" fn(Ptr) -> c_int>;
type Clone = unsafe extern "C" fn(Child, Ptr, c_int, Ptr, Ptr, Ptr, Ptr) -> c_int;

/// glibc 2.34.
// SAFETY: libc gives the function this type.
static FORK: Next<Fork> = unsafe { Next::new(c"_Fork") };
// SAFETY: libc gives the function this type.
static CLONE: Next<Clone> = unsafe { Next::new(c"clone") };

/// Called by the constructor.
pub fn configure() {
    CLONE.find();
    if FORK.find().is_none() {
        // Programs ask dlsym whether libc has it.
        symbols::hide(&[c"_Fork"]);
    }
}

/// # Safety
/// As POSIX `_Fork`.
pub unsafe fn fork_without_handlers() -> pid_t {
    // SAFETY: the caller keeps the contract of the function.
    FORK.call(|next| make_copy(|| unsafe { next() }))
}

/// The last three arguments are optional in C. The kernel and libc look at those that the flags name.
///
/// # Safety
/// As glibc's clone.
pub unsafe fn clone(
    child: Child,
    stack: Ptr,
    flags: c_int,
    argument: Ptr,
    parent_id: Ptr,
    tls: Ptr,
    child_id: Ptr,
) -> c_int {
    CLONE.call(|next| {
        // SAFETY: the arguments are the caller's, by this function's contract.
        let call = || unsafe { next(child, stack, flags, argument, parent_id, tls, child_id) };
        match flags & libc::CLONE_VM {
            0 => make_copy(call),
            _ => call(),
        }
    })
}

fn make_copy(copy: impl FnOnce() -> c_int) -> c_int {
    while_quiesced(|| {
        let result = copy();
        if result >= 0 {
            sharing::note_fork();
        }
        result
    })
}

/// # Safety
/// As POSIX dlclose.
pub unsafe fn dlclose(handle: Ptr) -> c_int {
    // SAFETY: the handle is the caller's, by this function's contract.
    while_quiesced(|| unsafe { dl::close(handle) })
}

/// A child of `clone` never returns here. It has no governor, so the state that it inherits keeps nothing waiting.
fn while_quiesced(call: impl FnOnce() -> c_int) -> c_int {
    helper::quiesce();
    let result = call();
    helper::resume();
    result
}
