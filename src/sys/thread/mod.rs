//! The calling thread, without thread-local variables: its identity, its processor, yielding, sleeping, signal stack.
//!
//! Invariant: nothing in this file allocates or takes a lock, so the malloc path may call it.

pub mod cancellation;
pub mod helper;
pub mod signals;
pub mod spawn;

use std::ptr;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::time::Duration;

use crate::loader::objects;
use crate::seccomp;
pub use crate::sync::primitives::{sleep, token};

/// The thread pointer as an address. libc keeps the thread's own data around it.
#[inline(always)]
pub fn pointer() -> *const u8 {
    std::ptr::with_exposed_provenance(token() as usize)
}

/// Lets other threads of the same or a higher priority run. For a thread that waits for another thread's
/// system call. A wait that does not end after some yields must sleep, because that thread may have a
/// lower priority.
pub fn yield_now() {
    if seccomp::allows_common_calls() {
        std::thread::yield_now();
    } else {
        // glibc's malloc does not call sched_yield, so a filter may kill for it.
        std::hint::spin_loop();
    }
}

/// Sleeps a millisecond. A signal may end the sleep.
pub fn sleep_1ms() {
    sleep(Duration::from_millis(1));
}

/// The size of the alternate stack on which the calling thread handles a signal. `None` on its usual stack,
/// and where a filter may kill for the question.
pub fn signal_stack_bytes() -> Option<usize> {
    let mut stack = libc::stack_t {
        ss_sp: ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: the call only fills `stack`.
    let is_known = seccomp::allows_common_calls()
        && unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) } == 0;
    (is_known && stack.ss_flags & libc::SS_ONSTACK != 0).then_some(stack.ss_size)
}

/// Offset of the processor's number from the thread pointer; 0: not available. glibc 2.35 and later register an rseq area,
/// where the kernel writes the number, so reading it needs no system call.
static CPU_OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Offset of `cpu_id` in the kernel's `struct rseq`.
const CPU_ID: isize = 4;

/// Called once by the constructor.
pub fn find_cpu_number() {
    let (offset, size) = (
        objects::in_libc(c"__rseq_offset"),
        objects::in_libc(c"__rseq_size"),
    );
    if offset.is_null() || size.is_null() {
        return;
    }
    // SAFETY: glibc's constants have these types and are set before any constructor runs.
    let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<u32>()) };
    if size > 0 {
        CPU_OFFSET.store(offset + CPU_ID, Relaxed);
    }
}

/// The number of the processor that the calling thread runs on. 0 if glibc does not provide it: a seccomp filter may kill
/// for asking the kernel. The thread may have moved since the read.
#[inline]
pub fn cpu() -> u32 {
    let offset = CPU_OFFSET.load(Relaxed);
    if offset == 0 {
        return 0;
    }
    let number = pointer().wrapping_byte_offset(offset);
    // SAFETY: each glibc thread has an aligned `struct rseq` there. The kernel writes it only while the thread does
    // not run.
    unsafe { number.cast::<u32>().read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_different_tokens() {
        let here = token();
        assert_eq!(here, token());
        assert!(here != 0 && here.is_multiple_of(4));
        let there = std::thread::scope(|scope| scope.spawn(token).join().unwrap());
        assert_ne!(here, there);
    }

    #[test]
    fn a_bound_thread_reads_the_number_of_its_processor_if_glibc_provides_it() {
        find_cpu_number();
        // SAFETY: the sets of processors live on this stack and have the size that is passed. The symbol, if glibc has
        // it, is a number.
        unsafe {
            let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
            let known = size.as_ref().is_some_and(|size| *size > 0);
            let mut all: libc::cpu_set_t = std::mem::zeroed();
            let bytes = size_of::<libc::cpu_set_t>();
            assert_eq!(libc::sched_getaffinity(0, bytes, &mut all), 0);
            for cpu in (0..64).filter(|cpu| libc::CPU_ISSET(*cpu, &all)) {
                let mut one: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut one);
                assert_eq!(libc::sched_setaffinity(0, bytes, &one), 0);
                let read = super::cpu() as usize;
                assert_eq!(read, if known { cpu } else { 0 });
            }
            assert_eq!(libc::sched_setaffinity(0, bytes, &all), 0);
        }
    }
}
