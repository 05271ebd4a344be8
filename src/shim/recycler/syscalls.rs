//! The system calls that large blocks need, without libc's functions: those may be wrapped by somebody who
//! allocates, and some end a cancelled thread.

use super::unit::UNIT_BYTES;
use crate::process::sandbox;
use libc::c_void;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, MsyncFlags, ProtFlags};
use rustix::time::ClockId;

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// Growing in place to this length is always refused: from wherever a block begins it reaches beyond the stack, which lies
/// at the end of the addresses that are given out unasked. A shorter one fits between the mappings of a program at
/// a fixed address with an unlimited stack, and is granted where memory is overcommitted; a longer one is refused
/// by Linux 6.17 before it looks at the mapping.
const ABSURD_BYTES: usize = (1 << ADDRESS_BITS) - UNIT_BYTES;
/// With five levels of page tables too: addresses above are for those who name one.
const ADDRESS_BITS: u32 = if cfg!(target_arch = "x86_64") { 47 } else { 48 };
/// `MADV_GUARD_REMOVE`, Linux 6.13.
const GUARD_REMOVE: i32 = 103;

fn pointer(address: usize) -> *mut c_void {
    address as *mut c_void
}

pub fn map_at(address: usize, bytes: usize, flags: MapFlags) -> Option<usize> {
    let flags = MapFlags::PRIVATE | flags;
    // SAFETY: an anonymous mapping; only callers that own the range pass FIXED.
    let got = unsafe { rustix::mm::mmap_anonymous(pointer(address), bytes, READ_WRITE, flags) };
    got.ok().map(|start| start as usize)
}

pub fn unmap(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range.
    bytes == 0 || unsafe { rustix::mm::munmap(pointer(address), bytes) }.is_ok()
}

pub fn advise(address: usize, bytes: usize, advice: Advice) -> bool {
    // SAFETY: the caller owns the range; no advice given here faults.
    unsafe { rustix::mm::madvise(pointer(address), bytes, advice) }.is_ok()
}

/// Moves pages between ranges of the caller's.
pub fn shift(from: usize, to: usize, bytes: usize, keep_source: bool) -> Result<(), Errno> {
    let mut flags = MremapFlags::MAYMOVE;
    flags.set(MremapFlags::DONTUNMAP, keep_source);
    // SAFETY: the caller owns both ranges, which do not overlap.
    let got = unsafe { rustix::mm::mremap_fixed(pointer(from), bytes, bytes, flags, pointer(to)) };
    got.map(|_| ())
}

/// One mapping covers the range. Growing in place is refused with EFAULT when the old range crosses mappings,
/// with EAGAIN when it is locked, and else with ENOMEM, for there is no room: the cheapest look at the mappings.
pub fn is_one_mapping(address: usize, bytes: usize) -> bool {
    // SAFETY: the new length can never be granted, so nothing changes.
    let got =
        unsafe { rustix::mm::mremap(pointer(address), bytes, ABSURD_BYTES, MremapFlags::empty()) };
    matches!(got, Err(Errno::NOMEM | Errno::AGAIN))
}

/// A part of the range is locked in memory. Where only a malloc's calls are allowed it is not asked: what was locked
/// before the program closed itself in may then be handed on without the lock.
pub fn is_locked(address: usize, bytes: usize) -> bool {
    if sandbox::is_closed() {
        return false;
    }
    // SAFETY: of memory without a file this asks only whether it is locked.
    let got = unsafe { rustix::mm::msync(pointer(address), bytes, MsyncFlags::INVALIDATE) };
    got == Err(Errno::BUSY)
}

pub fn unlock(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range.
    unsafe { rustix::mm::munlock(pointer(address), bytes) }.is_ok()
}

/// What is mapped now is locked at once: `mlockall(MCL_FUTURE)` is in force.
pub fn locks_new_mappings(page_bytes: usize) -> bool {
    let (none, private) = (ProtFlags::empty(), MapFlags::PRIVATE);
    // SAFETY: a new mapping of our own; without access no page is faulted in.
    let got = unsafe { rustix::mm::mmap_anonymous(pointer(0), page_bytes, none, private) };
    let Ok(page) = got else {
        return true;
    };
    let locked = is_locked(page as usize, page_bytes);
    unmap(page as usize, page_bytes);
    locked
}

/// Reading and writing; the protection key stays as it is.
pub fn unprotect(address: usize, bytes: usize) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: the caller owns the range.
    unsafe { libc::syscall(libc::SYS_mprotect, address, bytes, prot) == 0 }
}

/// The same under the key that every mapping begins with. False: this system has no keys.
pub fn unprotect_key(address: usize, bytes: usize) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: the caller owns the range.
    unsafe { libc::syscall(libc::SYS_pkey_mprotect, address, bytes, prot, 0usize) == 0 }
}

/// The memory policy that every mapping begins with.
pub fn unbind(address: usize, bytes: usize) {
    // SAFETY: a null node mask goes with the default policy. Sandboxes that refuse the call refuse it to the
    // program as well.
    unsafe {
        libc::syscall(
            libc::SYS_mbind,
            address,
            bytes,
            libc::MPOL_DEFAULT as usize,
            0usize,
            0usize,
            0usize,
        );
    }
}

/// Takes guards off the pages. False: the kernel knows none.
pub fn remove_guards(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range, and what is not guarded stays as it is.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes, GUARD_REMOVE as usize) == 0 }
}

/// Tells of each page whether it is resident, a byte each. False: the kernel does not tell.
pub fn residency(address: usize, bytes: usize, answers: &mut [u8], page_bytes: usize) -> bool {
    // SAFETY: the range is mapped, and the slice has a byte for each page of it.
    answers.len() * page_bytes >= bytes
        && unsafe { libc::syscall(libc::SYS_mincore, address, bytes, answers.as_mut_ptr()) == 0 }
}

/// Milliseconds (wrapping), of the clock that costs no system call.
pub fn now_ms() -> u32 {
    let now = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
}
