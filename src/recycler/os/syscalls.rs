//! The system calls that large blocks need, one function each. They keep errno. They bypass libc's
//! functions: another library may interpose those and allocate, and some are cancellation points.

use flarena_sys::errno::{self, SavedErrno};
use flarena_sys::{seccomp, unmap_hooks};
use libc::c_void;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, MsyncFlags, ProtFlags};

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// `MADV_GUARD_REMOVE`, Linux 6.13.
const GUARD_REMOVE: usize = 103;

fn pointer(address: usize) -> *mut c_void {
    address as *mut c_void
}

/// A system call that rustix does not have. Keeps errno, as the calls of rustix do.
///
/// # Safety
/// As for the system call.
unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<(), Errno> {
    let _errno = SavedErrno::save();
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller keeps the contract of the system call, which ignores surplus arguments.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        0 => Ok(()),
        _ => Err(Errno::from_raw_os_error(errno::get())),
    }
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
    // SAFETY: the caller owns the range that FIXED replaces, and its contents are not needed.
    unsafe { unmap_hooks::report(address, bytes) };
    // SAFETY: the caller owns the range that FIXED replaces.
    unsafe { rustix::mm::mmap_anonymous(pointer(address), bytes, READ_WRITE, flags) }.is_ok()
}

/// # Safety
/// The caller owns the range, and no code accesses it after the call.
pub unsafe fn munmap(address: usize, bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    // SAFETY: the caller owns the range, and no code accesses it after the call.
    unsafe {
        unmap_hooks::report(address, bytes);
        rustix::mm::munmap(pointer(address), bytes).is_ok()
    }
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

/// The call that restores read and write access.
#[derive(Clone, Copy)]
#[repr(i64)]
pub enum Unprotect {
    /// The protection key stays.
    Access = libc::SYS_mprotect,
    /// It becomes the default key. Fails on a system without protection keys.
    AccessAndKey = libc::SYS_pkey_mprotect,
}

/// # Safety
/// The caller owns the range.
pub unsafe fn unprotect(address: usize, bytes: usize, by: Unprotect) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: the caller owns the range.
    unsafe { call(by as libc::c_long, [address, bytes, prot, 0, 0, 0]) }.is_ok()
}

/// Restores the default memory policy. False: the kernel lacks memory, or the seccomp filter may
/// kill the process for the call. If a sandbox refuses the call, the program could not set a policy
/// either.
pub fn reset_mempolicy(address: usize, bytes: usize) -> bool {
    if !seccomp::allows_rare_calls() {
        return false;
    }
    let (policy, mask, nodes, flags) = (libc::MPOL_DEFAULT as usize, 0, 0, 0);
    // SAFETY: the default policy takes a null node mask.
    let answer = unsafe {
        call(
            libc::SYS_mbind,
            [address, bytes, policy, mask, nodes, flags],
        )
    };
    answer != Err(Errno::NOMEM)
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
    unsafe { call(libc::SYS_madvise, [address, bytes, GUARD_REMOVE, 0, 0, 0]) }.is_ok()
}

/// Sets one byte per page: the lowest bit is 1 for a resident page. False: the kernel refuses.
pub fn residency(address: usize, bytes: usize, answers: &mut [u8], page_bytes: usize) -> bool {
    let to = answers.as_mut_ptr().expose_provenance();
    // SAFETY: the slice has a byte per page of the range; the call fails on an unmapped range.
    answers.len() * page_bytes >= bytes
        && unsafe { call(libc::SYS_mincore, [address, bytes, to, 0, 0, 0]) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn a_refused_call_keeps_errno() {
        errno::set(7);
        // An odd address is refused before anything else.
        // SAFETY: no call changes memory at an address that it refuses.
        unsafe {
            assert!(!unprotect(1, 4096, Unprotect::Access));
            assert!(!remove_guards(1, 4096));
            assert!(!munmap(1, 4096));
        }
        assert!(!residency(1, 4096, &mut [0], 4096));
        assert!(!munlock(1, usize::MAX - 4096));
        assert_eq!(errno::get(), 7);
    }
}
