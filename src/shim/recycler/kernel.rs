//! The map operations of Linux.

use super::map::{Map, Shift};
use super::pagemap::Metadata;
use super::unit::UNIT_BYTES;
use crate::process::{procfs, sandbox};
use libc::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};

/// The kernel's interface to our ranges. Every address it is given belongs to the recycler, whose
/// states say which thread may touch it: that is what makes the calls below sound.
pub struct Kernel {
    page_bytes: AtomicUsize,
    /// `MREMAP_DONTUNMAP` (Linux 5.7) was refused once.
    no_dontunmap: AtomicBool,
    huge_pages: AtomicU8,
    one_node: AtomicU8,
}

const UNKNOWN: u8 = 0;
const ON_REQUEST: u8 = 1;
/// The system makes huge pages by itself: 1.1 MiB would cost 2 MiB unless declined.
const UNASKED: u8 = 2;

const ONE: u8 = 1;
const MANY: u8 = 2;

const MREMAP_DONTUNMAP: c_int = 4;
const MADV_KEEPONFORK: c_int = 19;
const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
const ANONYMOUS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
/// Growing in place to this length is always refused: from wherever a block begins it reaches beyond the stack, which lies
/// at the end of the addresses that are given out unasked. A shorter one fits between the mappings of a program at
/// a fixed address with an unlimited stack, and is granted where memory is overcommitted; a longer one is refused
/// by Linux 6.17 before it looks at the mapping.
const ABSURD_BYTES: usize = (1 << ADDRESS_BITS) - UNIT_BYTES;
/// With five levels of page tables too: addresses above are for those who name one.
const ADDRESS_BITS: u32 = if cfg!(target_arch = "x86_64") { 47 } else { 48 };

fn pointer(address: usize) -> *mut c_void {
    address as *mut c_void
}

fn map_at(address: usize, bytes: usize, flags: c_int) -> Option<usize> {
    // SAFETY: an anonymous mapping; only callers that own the range pass MAP_FIXED.
    let got = unsafe {
        libc::mmap(
            pointer(address),
            bytes,
            PROTECTION,
            ANONYMOUS | flags,
            -1,
            0,
        )
    };
    (got != libc::MAP_FAILED).then_some(got as usize)
}

fn unmap(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range.
    bytes == 0 || unsafe { libc::munmap(pointer(address), bytes) } == 0
}

fn advise(address: usize, bytes: usize, advice: c_int) -> bool {
    // SAFETY: the caller owns the range; the advice given here never faults.
    unsafe { libc::madvise(pointer(address), bytes, advice) == 0 }
}

impl Kernel {
    pub const fn new() -> Self {
        Kernel {
            page_bytes: AtomicUsize::new(4096),
            no_dontunmap: AtomicBool::new(false),
            huge_pages: AtomicU8::new(UNKNOWN),
            one_node: AtomicU8::new(UNKNOWN),
        }
    }

    pub fn set_page_bytes(&self, bytes: usize) {
        self.page_bytes.store(bytes, Relaxed);
    }

    /// Under the policy `always` our aligned mappings would be huge from the first touch.
    fn decline_huge(&self, address: usize, bytes: usize) {
        if self.huge_pages.load(Relaxed) == UNKNOWN {
            self.huge_pages.store(system_policy(), Relaxed);
        }
        if self.huge_pages.load(Relaxed) == UNASKED {
            advise(address, bytes, libc::MADV_NOHUGEPAGE);
        }
    }

    fn reserve_aligned(&self, bytes: usize) -> Option<usize> {
        let padded = bytes.checked_add(UNIT_BYTES)?;
        let start = map_at(0, padded, 0)?;
        let aligned = start.next_multiple_of(UNIT_BYTES);
        let front = aligned - start;
        // Refusals here (vm.max_map_count) leave addresses without pages behind, and nothing else.
        unmap(start, front);
        unmap(aligned + bytes, UNIT_BYTES - front);
        Some(aligned)
    }
}

/// What the system does about huge pages.
fn system_policy() -> u8 {
    if !sandbox::is_closed() && procfs::is_thp_always() {
        UNASKED
    } else {
        ON_REQUEST
    }
}

impl Map for Kernel {
    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize> {
        let address = match map_at(hint, bytes, 0)? {
            aligned if aligned % UNIT_BYTES == 0 => aligned,
            crooked => {
                unmap(crooked, bytes);
                self.reserve_aligned(bytes)?
            }
        };
        self.decline_huge(address, bytes);
        Some(address)
    }

    fn reserve_at(&self, address: usize, bytes: usize) -> bool {
        // Kernels before 4.17 take the flag for a mere hint.
        match map_at(address, bytes, libc::MAP_FIXED_NOREPLACE) {
            Some(got) if got == address => {
                self.decline_huge(address, bytes);
                true
            }
            Some(elsewhere) => {
                unmap(elsewhere, bytes);
                false
            }
            None => false,
        }
    }

    fn renew(&self, address: usize, bytes: usize) -> bool {
        let renewed = map_at(address, bytes, libc::MAP_FIXED).is_some();
        if renewed {
            self.decline_huge(address, bytes);
        }
        renewed
    }

    fn release(&self, address: usize, bytes: usize) -> bool {
        unmap(address, bytes)
    }

    fn discard(&self, address: usize, bytes: usize) -> bool {
        advise(address, bytes, libc::MADV_DONTNEED)
    }

    fn shift(&self, from: usize, to: usize, bytes: usize) -> Shift {
        // A range that crosses mappings is refused, by some kernels after they unmapped the target.
        if !self.is_one_mapping(from, bytes) {
            return Shift::Refused;
        }
        let fixed = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let keep = !self.no_dontunmap.load(Relaxed);
        if keep {
            // SAFETY: the caller owns both ranges, which do not overlap.
            let got = unsafe {
                let flags = fixed | MREMAP_DONTUNMAP;
                libc::mremap(pointer(from), bytes, bytes, flags, pointer(to))
            };
            if got != libc::MAP_FAILED {
                return Shift::Done;
            }
            if procfs::errno() != libc::EINVAL {
                // The kernel may have unmapped the target before it found the reason to refuse.
                return if self.is_mapped_again(to, bytes) {
                    Shift::Refused
                } else {
                    Shift::TargetLost
                };
            }
        }
        // SAFETY: the caller owns both ranges, which do not overlap.
        let got = unsafe { libc::mremap(pointer(from), bytes, bytes, fixed, pointer(to)) };
        if got == libc::MAP_FAILED {
            return if self.is_mapped_again(to, bytes) {
                Shift::Refused
            } else {
                Shift::TargetLost
            };
        }
        if keep {
            self.no_dontunmap.store(true, Relaxed);
        }
        if self.reserve_at(from, bytes) {
            Shift::Done
        } else {
            Shift::DoneSourceGone
        }
    }

    fn has_huge_unasked(&self) -> bool {
        self.huge_pages.load(Relaxed) == UNASKED
    }

    fn advise_huge(&self, address: usize, bytes: usize) {
        advise(address, bytes, libc::MADV_HUGEPAGE);
    }

    fn is_one_mapping(&self, address: usize, bytes: usize) -> bool {
        // Growing in place is refused with EFAULT when the old range crosses mappings, with EAGAIN when
        // it is locked, and else with ENOMEM, for there is no room: the cheapest look at the mappings.
        // SAFETY: the new length can never be granted, so nothing changes.
        let got = unsafe { libc::mremap(pointer(address), bytes, ABSURD_BYTES, 0) };
        got == libc::MAP_FAILED && procfs::errno() == libc::ENOMEM
    }

    fn reset_attributes(&self, address: usize, bytes: usize, huge: bool) -> bool {
        if sandbox::is_closed() {
            // Half of these are no calls of a malloc's.
            return false;
        }
        let at = pointer(address);
        // SAFETY: the program has freed the range; it is ours.
        if unsafe { libc::mprotect(at, bytes, PROTECTION) != 0 || libc::munlock(at, bytes) != 0 } {
            return false;
        }
        for advice in [
            libc::MADV_DOFORK,
            MADV_KEEPONFORK,
            libc::MADV_DODUMP,
            libc::MADV_UNMERGEABLE,
        ] {
            // Refused only by kernels that do not know the opposite either.
            advise(address, bytes, advice);
        }
        if huge {
            advise(address, bytes, libc::MADV_HUGEPAGE);
        }
        if !self.has_one_node() {
            // SAFETY: a null node mask goes with the default policy. Sandboxes that refuse the call
            // refuse it to the program as well.
            unsafe {
                let none = std::ptr::null::<c_void>();
                libc::syscall(
                    libc::SYS_mbind,
                    at,
                    bytes,
                    libc::MPOL_DEFAULT,
                    none,
                    0usize,
                    0u32,
                );
            }
        }
        true
    }

    fn zero(&self, address: usize, bytes: usize) {
        super::zero::zero(self, address, bytes, self.page_bytes.load(Relaxed));
    }

    fn copy(&self, from: usize, to: usize, bytes: usize) {
        // SAFETY: the caller owns both ranges, which do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
    }

    fn now_ms(&self) -> u32 {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: a valid buffer; this clock exists since Linux 2.6.32 and needs no system call.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
        (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000) as u32
    }
}

impl Metadata for Kernel {
    fn metadata(&self, bytes: usize) -> *mut u8 {
        map_at(0, bytes, libc::MAP_NORESERVE).map_or(std::ptr::null_mut(), |start| start as *mut u8)
    }

    fn metadata_unused(&self, start: *mut u8, bytes: usize) {
        unmap(start as usize, bytes);
    }
}

impl Kernel {
    /// With a single node a memory policy changes nothing.
    fn has_one_node(&self) -> bool {
        if self.one_node.load(Relaxed) == UNKNOWN {
            let online = c"/sys/devices/system/node/online";
            let one = procfs::read_file(online, &mut [0; 32]).is_some_and(|text| text == b"0\n");
            self.one_node.store(if one { ONE } else { MANY }, Relaxed);
        }
        self.one_node.load(Relaxed) == ONE
    }

    /// After a refused move: fills the hole that the kernel may have left at the target.
    fn is_mapped_again(&self, to: usize, bytes: usize) -> bool {
        // When something is there it is our empty mapping or, by a rare race, a foreign one; nothing tells
        // them apart, so it is given up: addresses without pages, and the recycler stops moving soon.
        self.reserve_at(to, bytes)
    }
}
