//! The processor that the calling thread runs on.
//!
//! glibc 2.35 and later register an rseq area, where the kernel writes the number. Reading it needs no system
//! call. Without it the module does not ask the kernel, because a seccomp filter may kill for the call.

use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use crate::loader::objects;

/// Offset of the number from the thread pointer; 0: not available.
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Offset of `cpu_id` in the kernel's `struct rseq`.
const CPU_ID: isize = 4;

/// Called once by the constructor.
pub fn configure() {
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
        OFFSET.store(offset + CPU_ID, Relaxed);
    }
}

/// The processor's number; 0 if not available. The thread may have moved since the read.
#[inline]
pub fn current() -> u32 {
    let offset = OFFSET.load(Relaxed);
    if offset == 0 {
        return 0;
    }
    let number = crate::thread::pointer().wrapping_byte_offset(offset);
    // SAFETY: each glibc thread has an aligned `struct rseq` there. The kernel writes it only while the thread does
    // not run.
    unsafe { number.cast::<u32>().read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_thread_reads_the_number_of_its_processor_if_glibc_provides_it() {
        configure();
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
                let read = current() as usize;
                assert_eq!(read, if known { cpu } else { 0 });
            }
            assert_eq!(libc::sched_setaffinity(0, bytes, &all), 0);
        }
    }
}
