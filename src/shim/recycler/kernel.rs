//! The map operations of Linux.

use super::map::{Map, Shift};
use super::pagemap::Metadata;
use super::syscalls::{self, advise, map_at, unmap};
use super::unit::UNIT_BYTES;
use crate::process::{procfs, sandbox};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU8, AtomicUsize, Ordering::Relaxed};

/// The kernel's interface to our ranges. Every address it is given belongs to the recycler, whose
/// states say which thread may touch it: that is what makes the calls below sound.
pub struct Kernel {
    page_bytes: AtomicUsize,
    /// `MREMAP_DONTUNMAP` (Linux 5.7) was refused once.
    no_dontunmap: AtomicBool,
    /// `MADV_GUARD_REMOVE` (Linux 6.13) was refused once.
    no_guards: AtomicBool,
    /// `pkey_mprotect` was refused once: nothing has a key of its own.
    no_keys: AtomicBool,
    /// `vm.max_map_count`; 0: not yet read.
    mappings_allowed: AtomicU32,
    huge_pages: AtomicU8,
    one_node: AtomicU8,
}

const UNKNOWN: u8 = 0;
const ON_REQUEST: u8 = 1;
/// The system makes huge pages by itself: 1.1 MiB would cost 2 MiB unless declined.
const UNASKED: u8 = 2;

const ONE: u8 = 1;
const MANY: u8 = 2;

/// Advice that a program may have given, taken back. Refused only by kernels that do not know the opposite either.
const PLAIN: [Advice; 5] = [
    Advice::LinuxDoFork,
    Advice::LinuxKeepOnFork,
    Advice::LinuxDoDump,
    Advice::LinuxUnmergeable,
    Advice::Normal,
];

impl Kernel {
    pub const fn new() -> Self {
        Kernel {
            page_bytes: AtomicUsize::new(4096),
            no_dontunmap: AtomicBool::new(false),
            no_guards: AtomicBool::new(false),
            no_keys: AtomicBool::new(false),
            mappings_allowed: AtomicU32::new(0),
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
            self.mappings_allowed.store(max_map_count(), Relaxed);
        }
        if self.huge_pages.load(Relaxed) == UNASKED {
            advise(address, bytes, Advice::LinuxNoHugepage);
        }
    }

    fn reserve_aligned(&self, bytes: usize) -> Option<usize> {
        let padded = bytes.checked_add(UNIT_BYTES)?;
        let start = map_at(0, padded, MapFlags::empty())?;
        let aligned = start.next_multiple_of(UNIT_BYTES);
        let front = aligned - start;
        // Refusals here (vm.max_map_count) leave addresses without pages behind, and nothing else.
        unmap(start, front);
        unmap(aligned + bytes, UNIT_BYTES - front);
        Some(aligned)
    }
}

/// The kernel's default, unless the system has another number.
const MAPPINGS_ALLOWED: u32 = 65_530;

fn max_map_count() -> u32 {
    let mut buffer = [0; 32];
    let file = c"/proc/sys/vm/max_map_count";
    let text = (!sandbox::is_closed()).then(|| procfs::read_file(file, &mut buffer));
    let number = text.flatten().and_then(procfs::leading_number);
    number.map_or(MAPPINGS_ALLOWED, |number| {
        u32::try_from(number).unwrap_or(u32::MAX)
    })
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
        let address = match map_at(hint, bytes, MapFlags::empty())? {
            aligned if aligned % UNIT_BYTES == 0 => aligned,
            misaligned => {
                unmap(misaligned, bytes);
                self.reserve_aligned(bytes)?
            }
        };
        self.decline_huge(address, bytes);
        Some(address)
    }

    fn reserve_at(&self, address: usize, bytes: usize) -> bool {
        // Kernels before 4.17 take the flag for a mere hint.
        match map_at(address, bytes, MapFlags::FIXED_NOREPLACE) {
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
        let renewed = map_at(address, bytes, MapFlags::FIXED).is_some();
        if renewed {
            self.decline_huge(address, bytes);
        }
        renewed
    }

    fn release(&self, address: usize, bytes: usize) -> bool {
        unmap(address, bytes)
    }

    fn discard(&self, address: usize, bytes: usize) -> bool {
        advise(address, bytes, Advice::LinuxDontNeed)
    }

    fn shift(&self, from: usize, to: usize, bytes: usize) -> Shift {
        // A range that crosses mappings is refused, by some kernels after they unmapped the target.
        if !self.is_one_mapping(from, bytes) {
            return Shift::Refused;
        }
        // The source of locked memory that moved is not locked, as a new mapping might be: it goes.
        let locked = syscalls::is_locked(from, bytes);
        let keep = !locked && !self.no_dontunmap.load(Relaxed);
        if keep {
            match syscalls::shift(from, to, bytes, true) {
                Ok(()) => return Shift::Done,
                Err(Errno::INVAL) => {}
                Err(_) => return self.look_after_refusal(to, bytes),
            }
        }
        if syscalls::shift(from, to, bytes, false).is_err() {
            return self.look_after_refusal(to, bytes);
        }
        if keep {
            self.no_dontunmap.store(true, Relaxed);
        }
        if !locked && self.reserve_at(from, bytes) {
            Shift::Done
        } else {
            Shift::DoneSourceGone
        }
    }

    fn mappings_allowed(&self) -> u32 {
        match self.mappings_allowed.load(Relaxed) {
            0 => MAPPINGS_ALLOWED,
            number => number,
        }
    }

    fn has_huge_unasked(&self) -> bool {
        self.huge_pages.load(Relaxed) == UNASKED
    }

    fn advise_huge(&self, address: usize, bytes: usize) {
        advise(address, bytes, Advice::LinuxHugepage);
    }

    fn is_one_mapping(&self, address: usize, bytes: usize) -> bool {
        syscalls::is_one_mapping(address, bytes)
    }

    fn is_private_anonymous(&self, address: usize, bytes: usize) -> bool {
        // The kernel wipes no other memory on fork, and says so.
        // A kernel before 4.14 knows neither advice.
        let wiped = advise(address, bytes, Advice::LinuxWipeOnFork);
        let kept = advise(address, bytes, Advice::LinuxKeepOnFork);
        wiped == kept
    }

    fn reset_attributes(&self, address: usize, bytes: usize) -> bool {
        if sandbox::is_closed() {
            // Half of these are no calls of a malloc's.
            return false;
        }
        let with_key = !self.no_keys.load(Relaxed) && syscalls::unprotect_key(address, bytes);
        if !with_key {
            self.no_keys.store(true, Relaxed);
            if !syscalls::unprotect(address, bytes) {
                return false;
            }
        }
        if syscalls::is_locked(address, bytes) {
            let wanted = syscalls::locks_new_mappings(self.page_bytes.load(Relaxed));
            if wanted || !syscalls::unlock(address, bytes) {
                return false;
            }
        }
        for advice in PLAIN {
            advise(address, bytes, advice);
        }
        if !self.has_one_node() {
            syscalls::unbind(address, bytes);
        }
        true
    }

    fn remove_guards(&self, address: usize, bytes: usize) {
        if !self.no_guards.load(Relaxed) && !syscalls::remove_guards(address, bytes) {
            self.no_guards.store(true, Relaxed);
        }
    }

    fn zero(&self, address: usize, bytes: usize) {
        super::zero::zero(self, address, bytes, self.page_bytes.load(Relaxed));
    }

    fn copy(&self, from: usize, to: usize, bytes: usize) {
        // SAFETY: the caller owns both ranges, which do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
    }

    fn now_ms(&self) -> u32 {
        syscalls::now_ms()
    }
}

impl Metadata for Kernel {
    fn metadata(&self, bytes: usize) -> *mut u8 {
        map_at(0, bytes, MapFlags::NORESERVE).map_or(std::ptr::null_mut(), |start| start as *mut u8)
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

    /// After a refused move the kernel may have left a hole at the target: fills it.
    #[cold]
    fn look_after_refusal(&self, to: usize, bytes: usize) -> Shift {
        // When something is there it is our empty mapping or, by a rare race, a foreign one; nothing tells
        // them apart, so it is given up: addresses without pages, and the recycler stops moving soon.
        if self.reserve_at(to, bytes) {
            Shift::Refused
        } else {
            Shift::TargetLost
        }
    }
}
