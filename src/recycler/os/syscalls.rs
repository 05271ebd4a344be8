//! The system calls that large blocks need, one function each. They bypass libc's functions:
//! another library may interpose those and allocate, and some of them are cancellation points.

use crate::core::unit::UNIT_BYTES;
use flarena_sys::errno;
use flarena_sys::seccomp;
use libc::c_void;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, MsyncFlags, ProtFlags};
use rustix::time::ClockId;

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// The size of the x86-64 address space without a hint, also with five levels of page tables.
const X86_ADDRESS_BITS: u32 = 47;
/// The most on other systems.
const MAX_ADDRESS_BITS: u32 = 48;
/// `MADV_GUARD_REMOVE`, Linux 6.13.
const GUARD_REMOVE: i32 = 103;

fn pointer(address: usize) -> *mut c_void {
    address as *mut c_void
}

/// Makes a new mapping near `hint`.
pub fn map_new(hint: usize, bytes: usize, flags: MapFlags) -> Option<usize> {
    let flags = (MapFlags::PRIVATE | flags).difference(MapFlags::FIXED);
    // SAFETY: without FIXED, an anonymous mapping replaces no other.
    let got = unsafe { rustix::mm::mmap_anonymous(pointer(hint), bytes, READ_WRITE, flags) };
    got.ok().map(|start| start as usize)
}

/// Replaces the mappings of a range by a new one.
///
/// # Safety
/// The caller owns the range, and its contents are not needed.
pub unsafe fn map_over(address: usize, bytes: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the caller owns the range that FIXED replaces.
    unsafe { rustix::mm::mmap_anonymous(pointer(address), bytes, READ_WRITE, flags) }.is_ok()
}

/// # Safety
/// The caller owns the range, and no code accesses it after the call.
pub unsafe fn munmap(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range, and no code accesses it after the call.
    bytes == 0 || unsafe { rustix::mm::munmap(pointer(address), bytes) }.is_ok()
}

/// # Safety
/// The caller owns the range, and does not need the contents that this advice drops.
pub unsafe fn advise(address: usize, bytes: usize, advice: Advice) -> bool {
    // SAFETY: the caller owns the range, and does not need the contents that this advice drops.
    unsafe { advise_or(address, bytes, advice) }.is_ok()
}

/// `advise` with the reason of a refusal.
///
/// # Safety
/// As for `advise`.
pub unsafe fn advise_or(address: usize, bytes: usize, advice: Advice) -> Result<(), Errno> {
    // SAFETY: the caller owns the range, and does not need the contents that this advice drops.
    unsafe { rustix::mm::madvise(pointer(address), bytes, advice) }
}

/// The call lacked memory, or a VMA. After any other error the range has the default: a kernel or
/// sandbox that refuses an advice also refuses its opposite.
pub fn is_out_of_memory(answer: Result<(), Errno>) -> bool {
    matches!(answer, Err(Errno::NOMEM | Errno::AGAIN))
}

/// Tests with `MADV_WIPEONFORK`, which the kernel refuses for other memory, and undoes it. Only if
/// the kernel refuses to undo it, later children lack the pages.
///
/// # Safety
/// The caller owns the range, and no child needs its contents.
pub unsafe fn is_private_anonymous(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range, and a child forked now does not need its contents.
    let wiped = unsafe { advise_or(address, bytes, Advice::LinuxWipeOnFork) };
    // SAFETY: the caller owns the range; this restores the default.
    let kept = unsafe { advise_or(address, bytes, Advice::LinuxKeepOnFork) };
    wiped == kept && !is_out_of_memory(wiped) // kernels before 4.14 refuse both
}

/// The state of the source range after `remap`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `MREMAP_DONTUNMAP`, Linux 5.7.
    StaysMapped,
    IsUnmapped,
}

/// Moves the pages of a range.
///
/// # Safety
/// The caller owns both ranges. They do not overlap, and the contents of the target are not needed.
pub unsafe fn remap(from: usize, to: usize, bytes: usize, source: Source) -> Result<(), Errno> {
    // rustix has no name for the flag in its libc backend, which Miri uses.
    let dont_unmap = MremapFlags::from_bits_retain(libc::MREMAP_DONTUNMAP.cast_unsigned());
    let mut flags = MremapFlags::MAYMOVE;
    flags.set(dont_unmap, source == Source::StaysMapped);
    // SAFETY: the caller owns both ranges, they do not overlap, and the target's contents are not
    // needed.
    let got = unsafe { rustix::mm::mremap_fixed(pointer(from), bytes, bytes, flags, pointer(to)) };
    got.map(|_| ())
}

/// A length to which no block can grow in place: from any block it reaches beyond the stack, which
/// lies at the end of the address space. A shorter one could fit between the mappings of a program
/// with a fixed address and an unlimited stack. Linux 6.17 refuses a longer one before it checks
/// the VMAs.
fn absurd_bytes() -> usize {
    let bits = if cfg!(target_arch = "x86_64") {
        X86_ADDRESS_BITS
    } else {
        // SAFETY: getauxval only reads; it returns 0 for a missing value.
        address_bits(unsafe { libc::getauxval(libc::AT_RANDOM) } as usize)
    };
    (1 << bits) - UNIT_BYTES
}

/// An arm64 kernel has 36 to 48 address bits, depending on its configuration. The stack lies in the
/// top half, so the highest bit of an address there shows the number.
fn address_bits(stack_address: usize) -> u32 {
    match usize::BITS - stack_address.leading_zeros() {
        bits @ 36..MAX_ADDRESS_BITS => bits,
        _ => MAX_ADDRESS_BITS,
    }
}

/// One VMA covers the range. The kernel refuses to grow a range in place with EFAULT if the range
/// crosses VMAs, with EAGAIN if it is locked, and otherwise with ENOMEM, because the new length
/// does not fit. This is the cheapest probe.
pub fn is_one_vma(address: usize, bytes: usize) -> bool {
    // SAFETY: the kernel always refuses the new length, so no mapping changes.
    let got = unsafe {
        rustix::mm::mremap(
            pointer(address),
            bytes,
            absurd_bytes(),
            MremapFlags::empty(),
        )
    };
    matches!(got, Err(Errno::NOMEM | Errno::AGAIN))
}

/// A part of the range is locked in memory. Under a strict seccomp filter the answer is always
/// false; a range that was locked before the filter may then be reused without the lock.
pub fn is_locked(address: usize, bytes: usize) -> bool {
    if !seccomp::allows_common_calls() {
        return false;
    }
    // SAFETY: for anonymous memory this call only tests whether it is locked.
    let got = unsafe { rustix::mm::msync(pointer(address), bytes, MsyncFlags::INVALIDATE) };
    got == Err(Errno::BUSY)
}

pub fn munlock(address: usize, bytes: usize) -> bool {
    // SAFETY: a memory lock does not affect the contents.
    unsafe { rustix::mm::munlock(pointer(address), bytes) }.is_ok()
}

/// `mlockall(MCL_FUTURE)` is in force. EAGAIN means that it is, and that the limit for locked
/// memory is reached.
pub fn locks_new_mappings(page_bytes: usize) -> bool {
    let (none, private) = (ProtFlags::empty(), MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let got = unsafe { rustix::mm::mmap_anonymous(pointer(0), page_bytes, none, private) };
    match got {
        Ok(page) => {
            let locked = is_locked(page as usize, page_bytes);
            // SAFETY: the call above mapped the page; no other thread has its address.
            unsafe { munmap(page as usize, page_bytes) };
            locked
        }
        Err(refused) => refused == Errno::AGAIN,
    }
}

/// Restores read and write access. The protection key stays.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn unprotect(address: usize, bytes: usize) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: the caller owns the range.
    unsafe { libc::syscall(libc::SYS_mprotect, address, bytes, prot) == 0 }
}

/// `unprotect` that also restores the default protection key. False: this system has no protection
/// keys.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn unprotect_key(address: usize, bytes: usize) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: the caller owns the range.
    unsafe { libc::syscall(libc::SYS_pkey_mprotect, address, bytes, prot, 0usize) == 0 }
}

/// Restores the default memory policy. False: the kernel lacks memory, or the seccomp filter may
/// kill the process for the call. If a sandbox refuses the call, the program could not set a policy
/// either.
pub fn reset_mempolicy(address: usize, bytes: usize) -> bool {
    if !seccomp::allows_rare_calls() {
        return false;
    }
    let (policy, mask, nodes, flags) = (libc::MPOL_DEFAULT as usize, 0usize, 0usize, 0usize);
    // SAFETY: the default policy takes a null node mask.
    let answer =
        unsafe { libc::syscall(libc::SYS_mbind, address, bytes, policy, mask, nodes, flags) };
    answer == 0 || errno::get() != libc::ENOMEM
}

/// The kernel knows `MADV_GUARD_REMOVE`. None: the kernel has no memory for the test page.
pub fn can_remove_guards(page_bytes: usize) -> Option<bool> {
    let page = map_new(0, page_bytes, MapFlags::NORESERVE)?;
    // SAFETY: the call above mapped the page; no other thread has its address.
    let accepted = unsafe { remove_guards(page, page_bytes) };
    // SAFETY: the call above mapped the page; no other thread has its address.
    unsafe { munmap(page, page_bytes) };
    Some(accepted)
}

/// Removes guard regions. False: the kernel does not know the call, or refuses it for a part of the
/// range.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn remove_guards(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range; pages without a guard do not change.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes, GUARD_REMOVE as usize) == 0 }
}

/// Sets one byte per page: the lowest bit is 1 for a resident page. False: the kernel refuses.
pub fn residency(address: usize, bytes: usize, answers: &mut [u8], page_bytes: usize) -> bool {
    // SAFETY: the slice has a byte per page of the range; the call fails on an unmapped range.
    answers.len() * page_bytes >= bytes
        && unsafe { libc::syscall(libc::SYS_mincore, address, bytes, answers.as_mut_ptr()) == 0 }
}

/// Milliseconds (wrapping) of the coarse clock, which needs no system call.
pub fn clock_ms() -> u32 {
    let now = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_bits_of_arm64_follow_from_a_stack_address() {
        // Pages of 4 KiB have 39 or 48 bits, of 16 KiB 36 or 47, of 64 KiB 42 or 52 (48 without a
        // hint).
        for bits in [39, 48, 36, 47, 42] {
            assert_eq!(address_bits((1 << bits) - 0x3fff_0123), bits);
        }
        assert_eq!(address_bits(0), 48);
    }
}
