//! The system calls that large blocks need, without libc's functions: those may be wrapped by somebody who
//! allocates, and some end a cancelled thread.

use crate::core::unit::UNIT_BYTES;
use flarena_sys::errno;
use flarena_sys::seccomp;
use libc::c_void;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, MsyncFlags, ProtFlags};
use rustix::time::ClockId;

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// Addresses that are given out unasked, on x86-64: with five levels of page tables, too.
const X86_ADDRESS_BITS: u32 = 47;
/// On other systems at most.
const MAX_ADDRESS_BITS: u32 = 48;
/// `MADV_GUARD_REMOVE`, Linux 6.13.
const GUARD_REMOVE: i32 = 103;

fn pointer(address: usize) -> *mut c_void {
    address as *mut c_void
}

/// Maps memory where there is none, near `hint`.
pub fn map_new(hint: usize, bytes: usize, flags: MapFlags) -> Option<usize> {
    let flags = (MapFlags::PRIVATE | flags).difference(MapFlags::FIXED);
    // SAFETY: an anonymous mapping that replaces nothing, as FIXED is taken out.
    let got = unsafe { rustix::mm::mmap_anonymous(pointer(hint), bytes, READ_WRITE, flags) };
    got.ok().map(|start| start as usize)
}

/// Maps new memory over what is there.
///
/// # Safety
/// The caller owns the range, and nobody needs what is in it.
pub unsafe fn map_over(address: usize, bytes: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the caller owns the range: FIXED replaces no mapping of others.
    unsafe { rustix::mm::mmap_anonymous(pointer(address), bytes, READ_WRITE, flags) }.is_ok()
}

/// # Safety
/// The caller owns the range, and from now on counts on nothing being there.
pub unsafe fn munmap(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range: nobody else has what goes.
    bytes == 0 || unsafe { rustix::mm::munmap(pointer(address), bytes) }.is_ok()
}

/// # Safety
/// The caller owns the range, and needs nothing of what this advice takes away.
pub unsafe fn advise(address: usize, bytes: usize, advice: Advice) -> bool {
    // SAFETY: the caller owns the range, and needs nothing that the advice takes away.
    unsafe { advise_or(address, bytes, advice) }.is_ok()
}

/// The same, and why it was refused.
///
/// # Safety
/// As for `advise`.
pub unsafe fn advise_or(address: usize, bytes: usize, advice: Advice) -> Result<(), Errno> {
    // SAFETY: the caller owns the range, and needs nothing that the advice takes away.
    unsafe { rustix::mm::madvise(pointer(address), bytes, advice) }
}

/// There was no memory, or no mapping left, to do it with. Otherwise a kernel or a sandbox that does not take an advice does not
/// take its opposite.
pub fn is_short(answer: Result<(), Errno>) -> bool {
    matches!(answer, Err(Errno::NOMEM | Errno::AGAIN))
}

/// The kernel wipes no other memory on fork, and says so. True leaves later children the pages; so does false, unless the
/// kernel refused that.
///
/// # Safety
/// The caller owns the range, and no child needs what is in it.
pub unsafe fn is_private_anonymous(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range, and a child that is forked now needs nothing of it.
    let wiped = unsafe { advise_or(address, bytes, Advice::LinuxWipeOnFork) };
    // SAFETY: the caller owns the range, and children get what every mapping gives them.
    let kept = unsafe { advise_or(address, bytes, Advice::LinuxKeepOnFork) };
    wiped == kept && !is_short(wiped) // before 4.14 neither is known
}

/// Moves pages between ranges of the caller's.
///
/// # Safety
/// The caller owns both ranges, which do not overlap; nobody needs what is in the target.
pub unsafe fn remap(from: usize, to: usize, bytes: usize, keep_source: bool) -> Result<(), Errno> {
    // rustix has no name for it where Miri makes it speak through libc.
    let stay = MremapFlags::from_bits_retain(libc::MREMAP_DONTUNMAP.cast_unsigned());
    let mut flags = MremapFlags::MAYMOVE;
    flags.set(stay, keep_source);
    // SAFETY: the caller owns both ranges, which are apart, and needs nothing of the target.
    let got = unsafe { rustix::mm::mremap_fixed(pointer(from), bytes, bytes, flags, pointer(to)) };
    got.map(|_| ())
}

/// Growing in place to this length is always refused: from wherever a block begins it reaches beyond the stack, which lies
/// at the end of the addresses that are given out unasked. A shorter one fits between the mappings of a program at
/// a fixed address with an unlimited stack, and is granted where memory is overcommitted; a longer one is refused
/// by Linux 6.17 before it looks at the mapping.
fn absurd_bytes() -> usize {
    let bits = if cfg!(target_arch = "x86_64") {
        X86_ADDRESS_BITS
    } else {
        // SAFETY: a value of the auxiliary vector, 0 where there is none.
        address_bits(unsafe { libc::getauxval(libc::AT_RANDOM) } as usize)
    };
    (1 << bits) - UNIT_BYTES
}

/// An arm64 kernel gives out 36 to 48 bits, as its pages and whoever built it want. The stack, whose top half has the
/// highest of them, tells.
fn address_bits(on_the_stack: usize) -> u32 {
    match usize::BITS - on_the_stack.leading_zeros() {
        bits @ 36..MAX_ADDRESS_BITS => bits,
        _ => MAX_ADDRESS_BITS,
    }
}

/// One mapping covers the range. Growing in place is refused with EFAULT when the old range crosses mappings,
/// with EAGAIN when it is locked, and else with ENOMEM, for there is no room: the cheapest look at the mappings.
pub fn spans_one_mapping(address: usize, bytes: usize) -> bool {
    // SAFETY: the new length can never be granted, so nothing changes.
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

/// A part of the range is locked in memory. Where only a malloc's calls are allowed it is not asked: what was locked
/// before the program closed itself in may then be handed on without the lock.
pub fn is_locked(address: usize, bytes: usize) -> bool {
    if seccomp::is_closed() {
        return false;
    }
    // SAFETY: of memory without a file this asks only whether it is locked.
    let got = unsafe { rustix::mm::msync(pointer(address), bytes, MsyncFlags::INVALIDATE) };
    got == Err(Errno::BUSY)
}

pub fn munlock(address: usize, bytes: usize) -> bool {
    // SAFETY: where memory is kept changes nothing of what is in it.
    unsafe { rustix::mm::munlock(pointer(address), bytes) }.is_ok()
}

/// What is mapped now is locked at once: `mlockall(MCL_FUTURE)` is in force. Also where that leaves no more to be locked.
pub fn locks_new_mappings(page_bytes: usize) -> bool {
    let (none, private) = (ProtFlags::empty(), MapFlags::PRIVATE);
    // SAFETY: a new mapping of our own; without access no page is faulted in.
    let got = unsafe { rustix::mm::mmap_anonymous(pointer(0), page_bytes, none, private) };
    match got {
        Ok(page) => {
            let locked = is_locked(page as usize, page_bytes);
            // SAFETY: mapped above, and nobody knows of it.
            unsafe { munmap(page as usize, page_bytes) };
            locked
        }
        Err(refused) => refused == Errno::AGAIN,
    }
}

/// Reading and writing; the protection key stays as it is.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn unprotect(address: usize, bytes: usize) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: the caller owns the range: no protection of others is taken off.
    unsafe { libc::syscall(libc::SYS_mprotect, address, bytes, prot) == 0 }
}

/// The same under the key that every mapping begins with. False: this system has no keys.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn unprotect_key(address: usize, bytes: usize) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: the caller owns the range: no protection and no key of others is taken off.
    unsafe { libc::syscall(libc::SYS_pkey_mprotect, address, bytes, prot, 0usize) == 0 }
}

/// The memory policy that every mapping begins with. False: there was no memory to say so with, or a list may kill for it.
/// Sandboxes that refuse the call refuse it to the program as well.
pub fn reset_mempolicy(address: usize, bytes: usize) -> bool {
    if seccomp::may_kill() {
        return false;
    }
    let (policy, mask, nodes, flags) = (libc::MPOL_DEFAULT as usize, 0usize, 0usize, 0usize);
    // SAFETY: a null node mask goes with the default policy.
    let answer =
        unsafe { libc::syscall(libc::SYS_mbind, address, bytes, policy, mask, nodes, flags) };
    answer == 0 || errno::get() != libc::ENOMEM
}

/// The kernel can take guards off; none when there is no memory to ask with.
pub fn supports_guards(page_bytes: usize) -> Option<bool> {
    let page = map_new(0, page_bytes, MapFlags::NORESERVE)?;
    // SAFETY: mapped above, and nobody knows of it.
    let knows = unsafe { remove_guards_raw(page, page_bytes) };
    // SAFETY: mapped above, and nobody knows of it.
    unsafe { munmap(page, page_bytes) };
    Some(knows)
}

/// Takes guards off the pages. False: the kernel knows none, or not for all that is there.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn remove_guards_raw(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range: the guards are nobody else's; what is not guarded stays as it is.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes, GUARD_REMOVE as usize) == 0 }
}

/// Tells of each page whether it is resident, a byte each. False: the kernel does not tell.
pub fn residency(address: usize, bytes: usize, answers: &mut [u8], page_bytes: usize) -> bool {
    // SAFETY: the slice has a byte for each page of the range; where nothing is mapped the call fails.
    answers.len() * page_bytes >= bytes
        && unsafe { libc::syscall(libc::SYS_mincore, address, bytes, answers.as_mut_ptr()) == 0 }
}

/// Milliseconds (wrapping), of the clock that costs no system call.
pub fn clock_ms() -> u32 {
    let now = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_tells_how_many_addresses_an_arm64_kernel_gives_out() {
        // 4 KiB pages with 39 and 48 bits, 16 KiB with 36 and 47, 64 KiB with 42 and 52, of which 48 unasked.
        for bits in [39, 48, 36, 47, 42] {
            assert_eq!(address_bits((1 << bits) - 0x3fff_0123), bits);
        }
        assert_eq!(address_bits(0), 48);
    }
}
