//! Calls by which the program changes its credentials or namespaces. Both belong to a thread, so the governor
//! would keep the old ones:
//!
//! - glibc makes `setuid` and its kin in every thread, and aborts the process if the results differ. They differ
//!   if the capabilities do. Programs change these by raw system calls, too, so each such call compares them.
//! - The kernel refuses some namespaces to a process with several threads.
//!
//! The governor ends first. The next one starts with the program's credentials and namespaces.

use std::ffi::{c_char, c_int, c_long, c_void};

use libc::{gid_t, uid_t};
use rustix::thread::{capabilities, CapabilitySets};

use crate::launch;
use flarena_sys::thread::helper::{self, Patience};
use flarena_sys::{loader::next::Next, proc::procfs, seccomp};

macro_rules! in_every_thread {
    ($(
        $name:ident, $c_name:literal, ($($argument:ident: $type:ty),*)
            $(, [$number:ident, $($value:expr),*])?;
    )*) => {
        #[allow(non_upper_case_globals)]
        mod next_functions {
            use super::*;

            $(
            // SAFETY: libc gives a function of this name this type.
            pub static $name: Next<unsafe extern "C" fn($($type),*) -> c_int> = unsafe { Next::new($c_name) };
            )*
        }

        /// Called by the constructor.
        pub fn configure() {
            $(next_functions::$name.find();)*
        }

        $(
        /// # Safety
        /// As the function of this name in libc.
        pub unsafe fn $name($($argument: $type),*) -> c_int {
            let system_call = None::<[c_long; 4]>$(.or(Some([libc::$number, $($value as c_long),*])))?;
            if let Some([number, a, b, c]) = in_this_thread_alone(system_call) {
                // SAFETY: the arguments are the caller's, by this function's contract.
                return unsafe { libc::syscall(number, a, b, c) as c_int };
            }
            // SAFETY: the arguments are the caller's, by this function's contract.
            next_functions::$name.call(|next| unsafe { next($($argument),*) })
        }
        )*
    };
}

/// Leaves a value of a call as it is.
const KEEP: c_long = -1;

in_every_thread! {
    setuid, c"setuid", (user: uid_t), [SYS_setuid, user, 0, 0];
    seteuid, c"seteuid", (user: uid_t), [SYS_setresuid, KEEP, user, KEEP];
    setreuid, c"setreuid", (real: uid_t, effective: uid_t), [SYS_setreuid, real, effective, 0];
    setresuid, c"setresuid", (real: uid_t, effective: uid_t, saved: uid_t), [SYS_setresuid, real, effective, saved];
    setgid, c"setgid", (group: gid_t), [SYS_setgid, group, 0, 0];
    setegid, c"setegid", (group: gid_t), [SYS_setresgid, KEEP, group, KEEP];
    setregid, c"setregid", (real: gid_t, effective: gid_t), [SYS_setregid, real, effective, 0];
    setresgid, c"setresgid", (real: gid_t, effective: gid_t, saved: gid_t), [SYS_setresgid, real, effective, saved];
    setgroups, c"setgroups", (count: usize, groups: *const gid_t), [SYS_setgroups, count, groups, 0];
    initgroups, c"initgroups", (user: *const c_char, group: gid_t);
}

/// Ends a governor with other credentials. If it cannot end, because a signal handler has interrupted the holder of
/// a lock, a program with one thread makes the system call in this thread, as libc does without a governor.
fn in_this_thread_alone(system_call: Option<[c_long; 4]>) -> Option<[c_long; 4]> {
    let differs = || compare(|governor, caller| governor != caller);
    let has_ended = end_governor_if(differs, || {
        match system_call.is_some() && helper::is_the_only_other_thread() {
            true => Patience::Short,
            false => Patience::Long,
        }
    });
    system_call.filter(|_| !has_ended && helper::is_the_only_other_thread())
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
        let permits_more =
            || compare(|governor, caller| !caller.permitted.contains(governor.permitted));
        end_governor_if(permits_more, || Patience::Short);
    }
    result
}

/// The kernel refuses these to a process with several threads. The others change the calling thread alone.
const OF_PROCESSES: c_int =
    libc::CLONE_NEWUSER | libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
/// Namespaces of later children. The caller of `unshare` stays in its own, and the kernel then refuses it new threads.
const OF_CHILDREN: c_int = libc::CLONE_NEWPID | CLONE_NEWTIME;
/// The value in Linux's sched.h.
const CLONE_NEWTIME: c_int = 0x80;

/// # Safety
/// As Linux's unshare.
pub unsafe fn unshare(flags: c_int) -> c_int {
    if flags & !OF_CHILDREN != 0 {
        end_governor_if(program_has_one_thread, || match flags & OF_PROCESSES {
            0 => Patience::Short,
            _ => Patience::Long,
        });
    }
    // SAFETY: the argument is a plain number.
    unsafe { libc::syscall(libc::SYS_unshare, flags) as c_int }
}

/// # Safety
/// As Linux's setns.
pub unsafe fn setns(fd: c_int, kind: c_int) -> c_int {
    // A process of several threads may enter only a PID namespace, which is that of later children.
    if kind != libc::CLONE_NEWPID {
        end_governor_if(program_has_one_thread, || Patience::Long);
    }
    // SAFETY: the arguments are plain numbers.
    unsafe { libc::syscall(libc::SYS_setns, fd, kind) as c_int }
}

/// False if the governor `is_in_the_way`, and has not ended in time. A vfork child changes its own credentials, but
/// shares its parent's memory. A restricted program has no governor, so its filter sees none of these calls.
fn end_governor_if(
    is_in_the_way: impl FnOnce() -> bool,
    patience: impl FnOnce() -> Patience,
) -> bool {
    !launch::may_run()
        || seccomp::is_vfork_child()
        || !is_in_the_way()
        || launch::end_until_next_start(patience())
}

/// True if the process has one thread beside the governor, which may not have registered yet or be about to end.
fn program_has_one_thread() -> bool {
    procfs::threads().is_some_and(|count| count <= 2)
}

/// Compares the capabilities of the governor with the caller's. True, too, if the governor's thread has not registered or the kernel does not answer.
fn compare(is_different: impl FnOnce(CapabilitySets, CapabilitySets) -> bool) -> bool {
    let Some(governor) = helper::id() else {
        return true;
    };
    match (capabilities(Some(governor)), capabilities(None)) {
        (Ok(governor), Ok(caller)) => is_different(governor, caller),
        _ => true,
    }
}
