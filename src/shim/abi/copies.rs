//! `_Fork` and `clone` make a copy of the process without fork handlers. In a program with one thread the copy may
//! use malloc. So the governor must not hold a lock then, or be in the middle of a change (docs/design/fork.md).
//!
//! A signal handler may call `_Fork`. The wait is bounded, also if the handler has interrupted the holder of a lock
//! that the governor waits for.

use std::ffi::{c_int, c_void};

use flarena_sys::loader::next::Next;
use flarena_sys::loader::{objects, symbols};
use flarena_sys::{errno, proc::sharing, thread::helper};
use libc::pid_t;

/// glibc 2.34.
static FORK: Next = Next::new(c"_Fork");
static CLONE: Next = Next::new(c"clone");

type Fork = unsafe extern "C" fn() -> pid_t;
pub type Child = Option<unsafe extern "C" fn(*mut c_void) -> c_int>;
type Clone = unsafe extern "C" fn(
    Child,
    *mut c_void,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
) -> c_int;

/// Called by the constructor.
pub fn configure() {
    CLONE.find();
    if FORK.find().is_null() {
        // Programs ask dlsym whether libc has it.
        symbols::hide(&[c"_Fork"]);
    }
}

/// # Safety
/// As POSIX `_Fork`.
pub unsafe fn fork_without_handlers() -> pid_t {
    // SAFETY: null or libc's function with this name, which has this type.
    let next = unsafe { objects::cast::<Fork>(FORK.get()) };
    // SAFETY: the caller keeps the contract of the function.
    next.map_or_else(refuse, |next| while_quiesced(|| unsafe { next() }))
}

/// The last three arguments are optional in C. The kernel and libc look at those that the flags name.
///
/// # Safety
/// As glibc's clone.
pub unsafe fn clone(
    child: Child,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_id: *mut c_void,
    tls: *mut c_void,
    child_id: *mut c_void,
) -> c_int {
    // SAFETY: null or libc's function with this name, which has this type.
    let Some(next) = (unsafe { objects::cast::<Clone>(CLONE.get()) }) else {
        return refuse();
    };
    // SAFETY: the arguments are the caller's, by this function's contract.
    let call = || unsafe { next(child, stack, flags, argument, parent_id, tls, child_id) };
    match flags & libc::CLONE_VM {
        0 => while_quiesced(call),
        _ => call(),
    }
}

/// A child of `clone` never returns here. It has no governor, so the state that it inherits keeps nothing waiting.
fn while_quiesced(copy: impl FnOnce() -> c_int) -> c_int {
    helper::quiesce();
    let result = copy();
    if result >= 0 {
        sharing::note_fork();
    }
    helper::resume();
    result
}

fn refuse() -> c_int {
    errno::set(libc::ENOSYS);
    -1
}
