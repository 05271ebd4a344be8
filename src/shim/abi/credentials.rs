//! Calls by which the program changes its credentials or namespaces. Both belong to a thread, so the governor
//! would keep the old ones:
//!
//! - glibc makes `setuid` and its kin in every thread, and aborts the process if the results differ. They differ
//!   if the capabilities do. Programs change these by raw system calls, too, so each such call compares them.
//! - The kernel refuses some namespaces to a process with several threads.
//!
//! The governor ends first. The next one starts with the program's credentials and namespaces.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{gid_t, uid_t};
use rustix::thread::{capabilities, CapabilitySets};

use crate::launch;
use flarena_sys::{errno, loader::dl, loader::objects, seccomp, thread::helper};

/// The function that a call would reach without this library: of another preload or of libc, which may be musl.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        let address = AtomicPtr::new(ptr::null_mut());
        Next { name, address }
    }

    fn find(&self) -> *const c_void {
        // SAFETY: RTLD_NEXT is a handle that dlsym accepts.
        let mut found = unsafe { dl::symbol(libc::RTLD_NEXT, self.name) };
        if found.is_null() {
            found = objects::in_other_libc(self.name);
        }
        self.address.store(found.cast_mut(), Relaxed);
        found
    }

    /// The constructor has found it, unless another constructor calls.
    fn get(&self) -> *const c_void {
        match self.address.load(Relaxed) {
            unknown if unknown.is_null() => self.find(),
            found => found,
        }
    }
}

macro_rules! in_every_thread {
    ($($name:ident, $c_name:literal, ($($argument:ident: $type:ty),*);)*) => {
        #[allow(non_upper_case_globals)]
        mod next {
            $(pub static $name: super::Next = super::Next::new($c_name);)*
        }

        /// Called by the constructor: a signal handler may call these functions, and a thread that waits for the loader.
        pub fn configure() {
            $(next::$name.find();)*
        }

        $(
        /// # Safety
        /// As the function of this name in libc.
        pub unsafe fn $name($($argument: $type),*) -> c_int {
            type Function = unsafe extern "C" fn($($type),*) -> c_int;
            end_governor_if(differs_from_caller);
            // SAFETY: null or a function with this name, to which libc gives this type.
            match unsafe { objects::cast::<Function>(next::$name.get()) } {
                // SAFETY: the arguments are the caller's, by this function's contract.
                Some(next) => unsafe { next($($argument),*) },
                None => {
                    errno::set(libc::ENOSYS);
                    -1
                }
            }
        }
        )*
    };
}

in_every_thread! {
    setuid, c"setuid", (user: uid_t);
    seteuid, c"seteuid", (user: uid_t);
    setreuid, c"setreuid", (real: uid_t, effective: uid_t);
    setresuid, c"setresuid", (real: uid_t, effective: uid_t, saved: uid_t);
    setgid, c"setgid", (group: gid_t);
    setegid, c"setegid", (group: gid_t);
    setregid, c"setregid", (real: gid_t, effective: gid_t);
    setresgid, c"setresgid", (real: gid_t, effective: gid_t, saved: gid_t);
    setgroups, c"setgroups", (count: usize, groups: *const gid_t);
    initgroups, c"initgroups", (user: *const c_char, group: gid_t);
}

/// The governor must not keep what the program gives up.
///
/// # Safety
/// As Linux's capset.
pub unsafe fn capset(header: *mut c_void, data: *const c_void) -> c_int {
    let permitted = || capabilities(None).map(|sets| sets.permitted);
    let before = permitted();
    // SAFETY: the arguments are capset's own, by this function's contract.
    let result = unsafe { libc::syscall(libc::SYS_capset, header, data) } as c_int;
    if result == 0 && permitted() != before {
        end_governor_if(permits_more_than_caller);
    }
    result
}

/// Namespaces of later children. The caller of `unshare` stays in its own, and the kernel then refuses it new threads.
const OF_CHILDREN: c_int = libc::CLONE_NEWPID | CLONE_NEWTIME;
/// The value in Linux's sched.h.
const CLONE_NEWTIME: c_int = 0x80;

/// # Safety
/// As Linux's unshare.
pub unsafe fn unshare(flags: c_int) -> c_int {
    if flags & !OF_CHILDREN != 0 {
        end_governor_if(helper::program_has_one_thread);
    }
    // SAFETY: the argument is a plain number.
    unsafe { libc::syscall(libc::SYS_unshare, flags) as c_int }
}

/// # Safety
/// As Linux's setns.
pub unsafe fn setns(fd: c_int, kind: c_int) -> c_int {
    // A process of several threads may enter only a PID namespace, which is that of later children.
    if kind != libc::CLONE_NEWPID {
        end_governor_if(helper::program_has_one_thread);
    }
    // SAFETY: the arguments are plain numbers.
    unsafe { libc::syscall(libc::SYS_setns, fd, kind) as c_int }
}

/// A vfork child changes its own credentials, but shares its parent's memory. A restricted program has no governor,
/// so its filter sees none of these calls.
fn end_governor_if(is_in_the_way: impl FnOnce() -> bool) {
    if launch::may_run() && !seccomp::is_vfork_child() && is_in_the_way() {
        launch::end_until_next_start();
    }
}

fn differs_from_caller() -> bool {
    compare(|governor, caller| governor != caller)
}

fn permits_more_than_caller() -> bool {
    compare(|governor, caller| !caller.permitted.contains(governor.permitted))
}

/// True, too, if the governor's thread has not registered or the kernel does not answer.
fn compare(is_different: impl FnOnce(CapabilitySets, CapabilitySets) -> bool) -> bool {
    let Some(governor) = helper::id() else {
        return true;
    };
    match (capabilities(Some(governor)), capabilities(None)) {
        (Ok(governor), Ok(caller)) => is_different(governor, caller),
        _ => true,
    }
}
