//! Makes recycled pages read as zero: writes to the resident ones and drops the others.
//!
//! A write to every page would fault in pages that the previous block never touched. A sparse table
//! that is recycled as another sparse table would then occupy its full size.

use crate::core::unit::UNIT_BYTES;
use crate::os::syscalls::residency;
use crate::os::vm::Vm;
use flarena_sys::seccomp;

/// Pages per query of residency.
const WINDOW_PAGES: usize = 512;

const _: () = assert!(WINDOW_PAGES * 4096 == UNIT_BYTES);

/// Makes `[address, address + bytes)` read as zero; both are multiples of the page size.
///
/// # Safety
/// The caller owns the range, and it is mapped readable and writable.
pub unsafe fn zero_resident(vm: &impl Vm, address: usize, bytes: usize, page_bytes: usize) {
    let end = address + bytes;
    if !seccomp::allows_rare_calls() {
        // Seccomp filters rarely allow mincore.
        // SAFETY: the caller owns the range, and it is mapped readable and writable.
        return unsafe { drop_pages(vm, address, end) };
    }
    let mut at = address;
    let mut absent_from = address;
    let mut resident = [0u8; WINDOW_PAGES];
    while at < end {
        let window = (end - at).min(WINDOW_PAGES * page_bytes);
        let known = residency(at, window, &mut resident, page_bytes);
        for (index, page) in resident.iter().take(window / page_bytes).enumerate() {
            let here = at + index * page_bytes;
            if !known || page & 1 != 0 {
                // SAFETY: both parts lie in the range, which the caller owns.
                unsafe {
                    drop_pages(vm, absent_from, here);
                    clear(here, page_bytes);
                }
                absent_from = here + page_bytes;
            }
        }
        at += window;
    }
    // SAFETY: the part lies in the range, which the caller owns.
    unsafe { drop_pages(vm, absent_from, end) };
}

/// Drops pages that are not resident, because they may be in swap. Clears them if the system
/// refuses.
///
/// # Safety
/// As for `zero_resident`.
unsafe fn drop_pages(vm: &impl Vm, from: usize, to: usize) {
    // SAFETY: the caller of `zero_resident` owns the range and does not need its contents.
    if from < to && !unsafe { vm.discard(from, to - from) } {
        // SAFETY: the caller of `zero_resident` owns the range, and it is mapped writable.
        unsafe { clear(from, to - from) };
    }
}

/// # Safety
/// As for `zero_resident`.
unsafe fn clear(address: usize, bytes: usize) {
    // SAFETY: the caller of `zero_resident` owns the range, and it is mapped writable.
    unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
}
