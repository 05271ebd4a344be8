//! The map operations of Linux.

use crate::core::pagemap::Metadata;
use crate::core::unit::UNIT_BYTES;
use crate::os::capabilities::Limits;
use crate::os::huge_pages::HugePages;
use crate::os::new_locks::NewLocks;
use crate::os::syscalls::{self, advise, map_new, munmap};
use crate::os::vm::{MoveOutcome, RemapOutcome, Vm};
use flarena_sys::{seccomp, thread, thread::cpu};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The kernel's interface to our ranges.
pub struct LinuxVm {
    page_bytes: AtomicUsize,
    /// `MREMAP_DONTUNMAP` (Linux 5.7) was refused once.
    no_dontunmap: AtomicBool,
    /// `pkey_mprotect` was refused once: nothing has a key of its own.
    no_keys: AtomicBool,
    pub huge_pages: HugePages,
    limits: Limits,
    new_locks: NewLocks,
}

/// Advice that a program may have given, taken back.
const PLAIN: [Advice; 4] = [
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
            limits: Limits::new(),
            new_locks: NewLocks::new(),
        }
    }

    pub fn set_page_bytes(&self, bytes: usize) {
        self.page_bytes.store(bytes, Relaxed);
    }

    /// What every mapping of ours is told; with the first, the system's limits are read.
    fn prepare(&self, address: usize, bytes: usize) {
        if !self.huge_pages.is_decided() {
            self.limits.read();
        }
        self.huge_pages.advise_fresh(address, bytes);
    }

    fn reserve_aligned(&self, bytes: usize) -> Option<usize> {
        let padded = bytes.checked_add(UNIT_BYTES)?;
        let start = map_new(0, padded, MapFlags::empty())?;
        let aligned = start.next_multiple_of(UNIT_BYTES);
        let front = aligned - start;
        // Refusals here (vm.max_map_count) leave addresses without pages behind, and nothing else.
        // SAFETY: mapped just now, before and behind what is kept.
        unsafe {
            munmap(start, front);
            munmap(aligned + bytes, UNIT_BYTES - front);
        }
        Some(aligned)
    }
}

// SAFETY: mappings are private, anonymous, and replace none but in `renew` and `move_pages`; each call is for the range
// that it was given; whether pages moved is what the kernel said.
unsafe impl Vm for LinuxVm {
    fn default_address(&self) -> usize {
        let page_bytes = self.page_bytes.load(Relaxed);
        let Some(page) = map_new(0, page_bytes, MapFlags::empty()) else {
            return 0;
        };
        // SAFETY: mapped just now.
        unsafe { munmap(page, page_bytes) };
        page
    }

    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize> {
        let address = match map_new(hint, bytes, MapFlags::empty())? {
            aligned if aligned % UNIT_BYTES == 0 => aligned,
            misaligned => {
                // SAFETY: mapped just now.
                unsafe { munmap(misaligned, bytes) };
                self.reserve_aligned(bytes)?
            }
        };
        self.prepare(address, bytes);
        Some(address)
    }

    fn reserve_at(&self, address: usize, bytes: usize) -> bool {
        // Kernels before 4.17 take the flag for a mere hint.
        match map_new(address, bytes, MapFlags::FIXED_NOREPLACE) {
            Some(got) if got == address => {
                self.prepare(address, bytes);
                true
            }
            Some(elsewhere) => {
                // SAFETY: mapped just now.
                unsafe { munmap(elsewhere, bytes) };
                false
            }
            None => false,
        }
    }

    unsafe fn remap_fresh(&self, address: usize, bytes: usize) -> RemapOutcome {
        // Kernels before 6.12 unmap first, and find then that there is no memory: what is there afterwards may be
        // another thread's. Where that is likely it takes two calls, and the first tells.
        let in_two = self.limits.overcommit_is_off();
        if in_two {
            // SAFETY: the caller owns the range and needs nothing of it.
            if !unsafe { syscalls::munmap(address, bytes) } {
                return RemapOutcome::Refused;
            }
        // SAFETY: the caller owns the range and needs nothing of it: no memory of others is replaced.
        } else if unsafe { syscalls::map_over(address, bytes) } {
            self.prepare(address, bytes);
            return RemapOutcome::Done;
        }
        if self.reserve_at(address, bytes) {
            RemapOutcome::Done
        } else if !in_two && syscalls::spans_one_mapping(address, self.page_bytes.load(Relaxed)) {
            RemapOutcome::Refused
        } else {
            RemapOutcome::Lost
        }
    }

    unsafe fn unmap(&self, address: usize, bytes: usize) -> bool {
        // SAFETY: the caller owns the range and counts on nothing there from now on.
        unsafe { munmap(address, bytes) }
    }

    unsafe fn discard(&self, address: usize, bytes: usize) -> bool {
        // SAFETY: the caller owns the pages and needs nothing that is in them.
        unsafe { advise(address, bytes, Advice::LinuxDontNeed) }
    }

    unsafe fn move_pages(&self, from: usize, to: usize, bytes: usize) -> MoveOutcome {
        // A range that crosses mappings is refused, by some kernels after they unmapped the target.
        if !self.is_one_vma(from, bytes) {
            return MoveOutcome::Refused;
        }
        // The source of locked memory that moved is not locked, as a new mapping might be: it goes.
        let locked = syscalls::is_locked(from, bytes);
        let keep = !locked && !self.no_dontunmap.load(Relaxed);
        if keep {
            // SAFETY: the caller owns both ranges, which are apart, and needs nothing of the target.
            match unsafe { syscalls::remap(from, to, bytes, true) } {
                Ok(()) => return MoveOutcome::Done,
                Err(Errno::INVAL) => {}
                Err(_) => return self.classify_refusal(to, bytes),
            }
        }
        // SAFETY: the caller owns both ranges, which are apart, and needs nothing of the target; a refused
        // call before this one moved nothing.
        if unsafe { syscalls::remap(from, to, bytes, false) }.is_err() {
            return self.classify_refusal(to, bytes);
        }
        if keep {
            self.no_dontunmap.store(true, Relaxed);
        }
        if !locked && self.reserve_at(from, bytes) {
            MoveOutcome::Done
        } else {
            MoveOutcome::DoneSourceGone
        }
    }

    fn max_map_count(&self) -> u32 {
        self.limits.max_map_count()
    }

    fn full_blocks_use_huge_pages(&self) -> bool {
        self.huge_pages.full_blocks_use_huge_pages()
    }

    fn fault_bytes(&self) -> usize {
        self.huge_pages.fault_bytes()
    }

    unsafe fn advise_huge(&self, address: usize, bytes: usize) {
        // SAFETY: the caller owns the range; the advice changes nothing of what is in it.
        unsafe { advise(address, bytes, Advice::LinuxHugepage) };
    }

    fn is_one_vma(&self, address: usize, bytes: usize) -> bool {
        syscalls::spans_one_mapping(address, bytes)
    }

    unsafe fn reset_attributes(&self, address: usize, bytes: usize) -> bool {
        if seccomp::is_closed() {
            // Half of these are no calls of a malloc's.
            return false;
        }
        // SAFETY: the caller owns the range: whatever protects it protects nothing of others.
        let unprotect_key = || unsafe { syscalls::unprotect_key(address, bytes) };
        // Behind a list that may kill for it only a program that has a key shows that the list allows keys.
        let may_ask = seccomp::has_keys() || !seccomp::may_kill();
        let with_key = may_ask && !self.no_keys.load(Relaxed) && unprotect_key();
        if !with_key {
            // SAFETY: the caller owns the range: whatever protects it protects nothing of others.
            if !unsafe { syscalls::unprotect(address, bytes) } {
                return false;
            }
            // Now it was not the range that the system refused.
            self.no_keys.fetch_or(may_ask, Relaxed);
        }
        if !self.munlock_if_locked(address, bytes) {
            return false;
        }
        for advice in PLAIN {
            // SAFETY: the caller owns the range, and each advice is what a mapping begins with: none drops a page.
            if syscalls::is_short(unsafe { syscalls::advise_or(address, bytes, advice) }) {
                return false;
            }
        }
        self.huge_pages.advise_again(address, bytes);
        if !self.limits.has_one_node() && !syscalls::reset_mempolicy(address, bytes) {
            return false;
        }
        // SAFETY: the caller owns the range, and no child needs what is in it.
        unsafe { syscalls::is_private_anonymous(address, bytes) }
    }

    unsafe fn remove_guards(&self, address: usize, bytes: usize) {
        if self.limits.has_guards(self.page_bytes.load(Relaxed)) {
            // SAFETY: the caller owns the range: whoever set guards there has given it back.
            unsafe { syscalls::remove_guards_raw(address, bytes) };
        }
    }

    unsafe fn zero(&self, address: usize, bytes: usize) {
        // SAFETY: the caller owns the range, and it is mapped for reading and writing.
        unsafe {
            crate::os::zeroing::zero_resident(self, address, bytes, self.page_bytes.load(Relaxed))
        };
    }

    unsafe fn copy(&self, from: usize, to: usize, bytes: usize) {
        // SAFETY: both are mapped and apart; the caller owns the target, and nobody writes to the source.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
    }

    fn now_ms(&self) -> u32 {
        syscalls::clock_ms()
    }

    fn cpu(&self) -> u32 {
        cpu::current()
    }

    fn yield_now(&self) {
        thread::give_way();
    }
}

// SAFETY: a private anonymous mapping of its own is zero, aligned to pages, and stays until it is unmapped.
unsafe impl Metadata for LinuxVm {
    fn metadata(&self, bytes: usize) -> *mut u8 {
        map_new(0, bytes, MapFlags::NORESERVE)
            .map_or(std::ptr::null_mut(), |start| start as *mut u8)
    }

    unsafe fn metadata_unused(&self, start: *mut u8, bytes: usize) {
        // SAFETY: `metadata` mapped it, and its address never left the caller's hands.
        unsafe { munmap(start as usize, bytes) };
    }
}

impl LinuxVm {
    /// True: the range is locked no more, as a new mapping would not be. Asks nothing of the range where the system takes
    /// locks off: whoever asks sleeps while another thread changes the address space, whoever changes it seldom.
    fn munlock_if_locked(&self, address: usize, bytes: usize) -> bool {
        let page_bytes = self.page_bytes.load(Relaxed);
        let stay = self.new_locks.are_wanted(self.now_ms(), page_bytes);
        !stay && (syscalls::munlock(address, bytes) || !syscalls::is_locked(address, bytes))
    }

    /// After a refused move the kernel may have left a hole at the target: fills it.
    #[cold]
    fn classify_refusal(&self, to: usize, bytes: usize) -> MoveOutcome {
        // When something is there it is our empty mapping or, by a rare race, a foreign one; nothing tells
        // them apart, so it is given up: addresses without pages, and the recycler stops moving soon.
        if self.reserve_at(to, bytes) {
            MoveOutcome::Refused
        } else {
            MoveOutcome::TargetLost
        }
    }
}
