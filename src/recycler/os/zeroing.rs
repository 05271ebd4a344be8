//! Clearing recycled pages: those that are resident are written, the others stay absent.

use crate::core::unit::UNIT_BYTES;
use crate::os::syscalls::residency;
use crate::os::vm::Vm;
use flarena_sys::seccomp;

/// Residency of this many pages is asked for at once.
const WINDOW_PAGES: usize = 512;

/// Makes `[address, address + bytes)` read as zero; both are multiples of the page size.
///
/// Writing everything would make pages resident that the last user never touched: a sparse table
/// recycled as another sparse table would cost its full size.
///
/// # Safety
/// The caller owns the range, and it is mapped for reading and writing.
pub unsafe fn zero_resident(map: &impl Vm, address: usize, bytes: usize, page_bytes: usize) {
    let end = address + bytes;
    if seccomp::may_kill() {
        // Lists leave mincore out.
        // SAFETY: the whole range, which is the caller's.
        return unsafe { drop_absent(map, address, end) };
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
                // SAFETY: parts of the range, which is the caller's.
                unsafe {
                    drop_absent(map, absent_from, here);
                    clear(here, page_bytes);
                }
                absent_from = here + page_bytes;
            }
        }
        at += window;
    }
    // SAFETY: the rest of the range, which is the caller's.
    unsafe { drop_absent(map, absent_from, end) };
}

/// A page that is not resident may be in swap: dropping it makes it zero in either case.
///
/// # Safety
/// As for `zero_resident`.
unsafe fn drop_absent(map: &impl Vm, from: usize, to: usize) {
    // SAFETY: a part of the range that `zero_resident` was given, of whose contents its owner wants zeros alone.
    if from < to && !unsafe { map.discard(from, to - from) } {
        // SAFETY: a part of the range that `zero_resident` was given: mapped, writable, and its caller's alone.
        unsafe { clear(from, to - from) };
    }
}

/// # Safety
/// As for `zero_resident`.
unsafe fn clear(address: usize, bytes: usize) {
    // SAFETY: the range is mapped and writable, and its owner is in this call: nobody else sees it.
    unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
}

const _: () = assert!(WINDOW_PAGES * 4096 == UNIT_BYTES);
