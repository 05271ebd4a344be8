//! `Vm` on Linux: the raw calls of `syscalls.rs`, and the kernel's behaviour around them. Holds no
//! list of ranges; the caller owns the ranges that it passes.

use crate::core::pagemap::Metadata;
use crate::core::unit::UNIT_BYTES;
use crate::os::capabilities::Capabilities;
use crate::os::huge_pages::HugePages;
use crate::os::syscalls::{self, advise, map_new, munmap, Unprotect};
use crate::os::vm::{MoveOutcome, RemapOutcome, Vm};
use crate::os::zeroing;
use flarena_sys::{attention, limits, seccomp, thread, thread_pointer, unmap_hooks};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags};
use rustix::time::ClockId;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

pub struct LinuxVm {
    page_bytes: AtomicUsize,
    /// The kernel refused `MREMAP_DONTUNMAP` (Linux 5.7).
    no_dontunmap: AtomicBool,
    /// The system refused `pkey_mprotect`: no mapping has a protection key.
    no_keys: AtomicBool,
    pub huge_pages: HugePages,
    capabilities: Capabilities,
}

/// The size of the x86-64 address space without a hint, also with five levels of page tables.
const X86_ADDRESS_BITS: u32 = 47;
/// The most on other systems.
const MAX_ADDRESS_BITS: u32 = 48;

/// Each of these undoes an advice that a program may have given.
const DEFAULT_ADVICE: [Advice; 4] = [
    Advice::LinuxDoFork,
    Advice::LinuxDoDump,
    Advice::LinuxUnmergeable,
    Advice::Normal,
];

impl LinuxVm {
    pub const fn new() -> Self {
        LinuxVm {
            page_bytes: AtomicUsize::new(4096),
            no_dontunmap: AtomicBool::new(false),
            no_keys: AtomicBool::new(false),
            huge_pages: HugePages::new(),
            capabilities: Capabilities::new(),
        }
    }

    pub fn set_page_bytes(&self, bytes: usize) {
        self.page_bytes.store(bytes, Relaxed);
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes.load(Relaxed)
    }

    /// Prepares a new mapping; the first one also reads the system's limits.
    fn prepare(&self, address: usize, bytes: usize) {
        if !self.huge_pages.is_decided() {
            self.capabilities.read_max_map_count();
        }
        self.huge_pages.advise_fresh(address, bytes);
    }

    fn reserve_aligned(&self, bytes: usize) -> Option<usize> {
        let padded = bytes.checked_add(UNIT_BYTES)?;
        let start = map_new(0, padded, MapFlags::empty())?;
        let aligned = start.next_multiple_of(UNIT_BYTES);
        let front = aligned - start;
        // If the system refuses (vm.max_map_count), only addresses without pages are lost.
        // SAFETY: the call above mapped both ranges; no other thread has their addresses.
        unsafe {
            munmap(start, front);
            munmap(aligned + bytes, UNIT_BYTES - front);
        }
        Some(aligned)
    }

    /// Restores read and write access, and removes a protection key.
    ///
    /// # Safety
    /// The caller owns the range.
    unsafe fn reset_protection(&self, address: usize, bytes: usize) -> bool {
        // Where the seccomp filter may kill the process for `pkey_mprotect`, the call is safe only
        // after the program has used protection keys itself.
        let may_try = seccomp::allows_protection_keys();
        if may_try && !self.no_keys.load(Relaxed) {
            // SAFETY: the caller owns the range.
            if unsafe { syscalls::unprotect(address, bytes, Unprotect::AccessAndKey) } {
                return true;
            }
        }
        // SAFETY: the caller owns the range.
        if !unsafe { syscalls::unprotect(address, bytes, Unprotect::Access) } {
            return false;
        }
        // `mprotect` accepts the range, so the system refuses `pkey_mprotect` itself.
        self.no_keys.fetch_or(may_try, Relaxed);
        true
    }

    /// True: the range is not locked, and a new mapping would not be locked either. `munlock` runs
    /// without a query first: the query sleeps while another thread changes the address space,
    /// `munlock` of an unlocked range rarely.
    fn munlock_if_locked(&self, address: usize, bytes: usize) -> bool {
        let page_bytes = self.page_bytes();
        let keep = self
            .capabilities
            .locks_new_mappings(self.now_ms(), page_bytes);
        !keep && (syscalls::munlock(address, bytes) || !syscalls::is_locked(address, bytes))
    }

    fn reset_mempolicy(&self, address: usize, bytes: usize) -> bool {
        self.capabilities.has_one_node() || syscalls::reset_mempolicy(address, bytes)
    }

    /// After a refused move the kernel may have unmapped the target. Maps it again where possible.
    #[cold]
    fn classify_refusal(&self, to: usize, bytes: usize) -> MoveOutcome {
        // If the range is in use, it is the recycler's empty mapping or, in a rare race, one of
        // another thread. No call distinguishes the two, so the target counts as lost. After a few
        // losses the recycler stops moving.
        if self.reserve_at(to, bytes) {
            MoveOutcome::Refused
        } else {
            MoveOutcome::TargetLost
        }
    }
}

/// # Safety
/// The caller owns the range, and no child needs its contents.
unsafe fn reset_advice(address: usize, bytes: usize) -> bool {
    DEFAULT_ADVICE.into_iter().all(|advice| {
        // SAFETY: the caller owns the range; none of these drops a page.
        let answer = unsafe { syscalls::advise_or(address, bytes, advice) };
        !syscalls::is_out_of_memory(answer)
    })
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

// SAFETY: mappings are private and anonymous. Only `remap_fresh` and `move_pages` replace a
// mapping, in ranges that the caller owns. Each call covers its argument range. The outcomes follow
// from the kernel's answers.
unsafe impl Vm for LinuxVm {
    fn default_address(&self) -> usize {
        let page_bytes = self.page_bytes();
        let Some(page) = map_new(0, page_bytes, MapFlags::empty()) else {
            return 0;
        };
        // SAFETY: the call above mapped the page; no other thread has its address.
        unsafe { munmap(page, page_bytes) };
        page
    }

    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize> {
        let address = match map_new(hint, bytes, MapFlags::empty())? {
            aligned if aligned % UNIT_BYTES == 0 => aligned,
            misaligned => {
                // SAFETY: the call above mapped the range; no other thread has its address.
                unsafe { munmap(misaligned, bytes) };
                self.reserve_aligned(bytes)?
            }
        };
        self.prepare(address, bytes);
        Some(address)
    }

    fn reserve_at(&self, address: usize, bytes: usize) -> bool {
        // Kernels before 4.17 ignore the flag and treat the address as a hint.
        match map_new(address, bytes, MapFlags::FIXED_NOREPLACE) {
            Some(got) if got == address => {
                self.prepare(address, bytes);
                true
            }
            Some(elsewhere) => {
                // SAFETY: the call above mapped the range; no other thread has its address.
                unsafe { munmap(elsewhere, bytes) };
                false
            }
            None => false,
        }
    }

    unsafe fn remap_fresh(&self, address: usize, bytes: usize) -> RemapOutcome {
        // Kernels before 6.12 unmap the range before they find that memory is short. Another thread
        // may then map it. Under strict commit this is likely, so unmapping is a call of its own,
        // whose refusal is known.
        let unmaps_first = limits::has_strict_commit();
        if unmaps_first {
            // SAFETY: the caller owns the range, and its contents are not needed.
            if !unsafe { syscalls::munmap(address, bytes) } {
                return RemapOutcome::Refused;
            }
        // SAFETY: the caller owns the range, and its contents are not needed.
        } else if unsafe { syscalls::map_over(address, bytes) } {
            self.prepare(address, bytes);
            return RemapOutcome::Done;
        }
        if self.reserve_at(address, bytes) {
            RemapOutcome::Done
        } else if !unmaps_first && self.is_one_vma(address, self.page_bytes()) {
            RemapOutcome::Refused
        } else {
            RemapOutcome::Lost
        }
    }

    unsafe fn unmap(&self, address: usize, bytes: usize) -> bool {
        // SAFETY: the caller owns the range, and no code accesses it after the call.
        unsafe { munmap(address, bytes) }
    }

    unsafe fn discard(&self, address: usize, bytes: usize) -> bool {
        // SAFETY: the caller owns the pages, and their contents are not needed.
        unsafe {
            unmap_hooks::report(address, bytes);
            advise(address, bytes, Advice::LinuxDontNeed)
        }
    }

    unsafe fn offer(&self, address: usize, bytes: usize) {
        if seccomp::allows_common_calls() {
            // SAFETY: the caller owns the range, and its contents are not needed.
            unsafe {
                unmap_hooks::report(address, bytes);
                advise(address, bytes, Advice::LinuxFree)
            };
        }
    }

    unsafe fn move_pages(&self, from: usize, to: usize, bytes: usize) -> MoveOutcome {
        // The pages at the source are needed, so their move cannot be reported. Some kernels unmap the target before they
        // refuse a source of several VMAs.
        if unmap_hooks::are_installed() || !self.is_one_vma(from, bytes) {
            return MoveOutcome::Refused;
        }
        // With `MREMAP_DONTUNMAP` the source of locked pages stays mapped without the lock, and a
        // new mapping might be locked. So the source of locked pages is unmapped.
        let is_locked = syscalls::is_locked(from, bytes);
        let keep_source = !is_locked && !self.no_dontunmap.load(Relaxed);
        if keep_source {
            // SAFETY: the caller owns both ranges, they do not overlap, and the target's contents
            // are not needed.
            match unsafe { syscalls::remap(from, to, bytes, syscalls::Source::StaysMapped) } {
                Ok(()) => return MoveOutcome::Done,
                Err(Errno::INVAL) => {}
                Err(_) => return self.classify_refusal(to, bytes),
            }
        }
        // SAFETY: the caller owns both ranges, they do not overlap, and the target's contents are
        // not needed. The refused call above moved no page.
        if unsafe { syscalls::remap(from, to, bytes, syscalls::Source::IsUnmapped) }.is_err() {
            return self.classify_refusal(to, bytes);
        }
        if keep_source {
            self.no_dontunmap.store(true, Relaxed);
        }
        if !is_locked && self.reserve_at(from, bytes) {
            MoveOutcome::Done
        } else {
            MoveOutcome::DoneSourceGone
        }
    }

    fn is_limited(&self) -> bool {
        attention::may_want(attention::ROOM) && limits::is_any_set()
    }

    fn left_bytes(&self) -> u64 {
        limits::left_bytes()
    }

    fn max_map_count(&self) -> u32 {
        self.capabilities.max_map_count()
    }

    fn full_blocks_use_huge_pages(&self) -> bool {
        self.huge_pages.full_blocks_use_huge_pages()
    }

    fn fault_bytes(&self) -> usize {
        self.huge_pages.fault_bytes()
    }

    unsafe fn advise_huge(&self, address: usize, bytes: usize) {
        // SAFETY: the caller owns the range; the advice does not change its contents.
        unsafe { advise(address, bytes, Advice::LinuxHugepage) };
    }

    fn is_one_vma(&self, address: usize, bytes: usize) -> bool {
        // The kernel refuses to grow a range in place with EFAULT if the range crosses VMAs, with
        // EAGAIN if it is locked, and otherwise with ENOMEM, because the new length does not fit.
        // This is the cheapest probe.
        // SAFETY: the kernel always refuses the new length, so no mapping changes.
        let got = unsafe {
            rustix::mm::mremap(
                std::ptr::without_provenance_mut(address),
                bytes,
                absurd_bytes(),
                MremapFlags::empty(),
            )
        };
        matches!(got, Err(Errno::NOMEM | Errno::AGAIN))
    }

    unsafe fn reset_attributes(&self, address: usize, bytes: usize) -> bool {
        // A strict seccomp filter allows only the calls of a typical malloc, and half of these are
        // not among them.
        if !seccomp::allows_common_calls() {
            return false;
        }
        // SAFETY: the caller owns the range, and no child needs its contents.
        unsafe {
            if !self.reset_protection(address, bytes)
                || !self.munlock_if_locked(address, bytes)
                || !reset_advice(address, bytes)
            {
                return false;
            }
            self.huge_pages.repeat_request(address, bytes);
            self.reset_mempolicy(address, bytes) && syscalls::is_private_anonymous(address, bytes)
        }
    }

    unsafe fn remove_guards(&self, address: usize, bytes: usize) {
        if self.capabilities.can_remove_guards(self.page_bytes()) {
            // SAFETY: the caller owns the range, so the guard regions in it are not needed.
            unsafe { syscalls::remove_guards(address, bytes) };
        }
    }

    unsafe fn zero(&self, address: usize, bytes: usize) {
        // SAFETY: the caller owns the range, and it is mapped readable and writable.
        unsafe { zeroing::zero_resident(self, address, bytes, self.page_bytes()) };
    }

    unsafe fn fault_in(&self, address: usize) {
        // SAFETY: the caller owns the page, and it is mapped readable and writable.
        unsafe { (address as *mut u8).write_volatile(0) };
    }

    unsafe fn copy(&self, from: usize, to: usize, bytes: usize) {
        // SAFETY: both ranges are mapped and do not overlap; the caller owns the target; no thread
        // writes to the source.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
    }

    fn now_ms(&self) -> u32 {
        // The coarse clock needs no system call.
        let now = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
        (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
    }

    fn cpu(&self) -> u32 {
        thread_pointer::cpu()
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn sleep(&self) {
        thread::sleep(Duration::from_micros(100));
    }
}

// SAFETY: a private anonymous mapping reads as zero, is page-aligned, and exists until it is
// unmapped.
unsafe impl Metadata for LinuxVm {
    fn metadata(&self, bytes: usize) -> *mut u8 {
        map_new(0, bytes, MapFlags::NORESERVE)
            .map_or(std::ptr::null_mut(), |start| start as *mut u8)
    }

    unsafe fn metadata_unused(&self, start: *mut u8, bytes: usize) {
        // SAFETY: `metadata` mapped the range, and only the caller has its address.
        unsafe { munmap(start as usize, bytes) };
    }
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
