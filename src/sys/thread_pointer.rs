//! The thread pointer of the calling thread: it names the thread, and leads to the number of its processor.
//!
//! Invariant: nothing in this file allocates, takes a lock or makes a system call, so the malloc path may call it.

use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use crate::loader::objects;

/// Identifies the calling thread within the process: its thread pointer. Not zero; the two lowest
/// bits are. The thread that forks has the same token in the child.
#[inline(always)]
pub fn token() -> u64 {
    let token: u64;
    #[cfg(miri)]
    {
        // Miri does not support inline assembly.
        thread_local!(static HERE: u64 = const { 0 });
        token = HERE.with(|here| std::ptr::from_ref(here).addr() as u64);
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the psABI stores the thread pointer at the address that it points to. libc sets it
    // before any code of a library runs.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) token, options(nostack, preserves_flags, readonly, pure));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: every program may read this register.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) token, options(nostack, preserves_flags, nomem, pure));
    }
    token
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
    let pointer = std::ptr::with_exposed_provenance::<u32>(token() as usize);
    // SAFETY: each glibc thread has an aligned `struct rseq` there. The kernel writes it only while the thread does
    // not run.
    unsafe { pointer.wrapping_byte_offset(offset).read_volatile() }
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
