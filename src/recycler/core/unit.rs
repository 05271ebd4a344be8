//! The unit of movement: 2 MiB, what one page-table page covers, so that `mremap` moves a pointer.

use crate::core::amount::Pages;
pub use crate::core::kind::{Cpu, Flags, FreeKind, Kind};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU8, Ordering::Relaxed};

pub const UNIT_SHIFT: u32 = 21;
pub const UNIT_BYTES: usize = 1 << UNIT_SHIFT;

/// A unit has at most 512 pages.
const CPU_SHIFT: u32 = 10;
const POPULATED: u16 = (1 << CPU_SHIFT) - 1;

/// The number of a unit: its address divided by `UNIT_BYTES`. 0 means none.
pub type UnitId = u32;

pub fn address(id: UnitId) -> usize {
    (id as usize) << UNIT_SHIFT
}

pub fn id_of(address: usize) -> UnitId {
    (address >> UNIT_SHIFT) as UnitId
}

/// Neighbours in a list (`list.rs`); 0 means none.
#[derive(Default)]
pub struct Links {
    prev: AtomicU32,
    next: AtomicU32,
}

/// Book-keeping of one unit. The extent fields hold for the first and the last unit of an extent, the links
/// for the first. Atomics so that `usable_size` may look without the lock.
///
/// Whoever writes holds the lock, or has the extent in its hands: `Busy` or `Purging` by its own doing, or a live block that the
/// program has given back or away. Then nobody else writes to these units, for no pool has them, and who looks takes
/// them for what they were or are. Such a thread writes kinds (`mark_gone`, `Stuck`, back to `Busy`) and flags without the
/// lock, and in a process that gave its books up nobody takes it (`free_unbooked`). Flags change in one step, because a
/// block's owner raises some beside the thread that returns its slack.
#[derive(Default)]
#[repr(C)]
pub struct Unit {
    kind: AtomicU8,
    flags: AtomicU8,
    /// Pages, counted from the start of the unit, that may be resident; above them the processor that freed it last.
    populated: AtomicU16,
    len: AtomicU32,
    /// The list by bin of a free extent, a queue of a live one.
    pub near: Links,
    pub age: Links,
    /// Milliseconds (wrapping) at which the unit fell out of use.
    stamp: AtomicU32,
    /// Head of a live extent: pages handed out. 0 in every other unit.
    pages: AtomicU32,
}

macro_rules! field {
    ($get:ident, $set:ident, $type:ty) => {
        #[inline]
        pub fn $get(&self) -> $type {
            self.$get.load(Relaxed)
        }
        #[inline]
        pub fn $set(&self, value: $type) {
            self.$get.store(value, Relaxed)
        }
    };
}

impl Links {
    const fn blank() -> Self {
        Links {
            prev: AtomicU32::new(0),
            next: AtomicU32::new(0),
        }
    }

    field!(prev, set_prev, UnitId);
    field!(next, set_next, UnitId);
}

impl Unit {
    pub const fn blank() -> Self {
        Unit {
            kind: AtomicU8::new(0),
            flags: AtomicU8::new(0),
            populated: AtomicU16::new(0),
            len: AtomicU32::new(0),
            near: Links::blank(),
            age: Links::blank(),
            stamp: AtomicU32::new(0),
            pages: AtomicU32::new(0),
        }
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.kind.load(Relaxed))
    }

    #[inline]
    pub fn set_kind(&self, kind: Kind) {
        self.kind.store(kind as u8, Relaxed);
    }

    #[inline]
    pub fn flags(&self) -> Flags {
        Flags(self.flags.load(Relaxed))
    }

    #[inline]
    pub fn set_flags(&self, flags: Flags) {
        self.flags.store(flags.0, Relaxed);
    }

    /// The first or the last unit of an extent.
    #[inline]
    pub fn label(&self, kind: Kind, len: u32) {
        self.set_kind(kind);
        self.set_len(len);
    }

    field!(len, set_len, u32);
    field!(stamp, set_stamp, u32);

    #[inline]
    pub fn populated(&self) -> Pages {
        Pages::new((self.populated.load(Relaxed) & POPULATED).into())
    }

    /// At most a unit's pages.
    #[inline]
    pub fn set_populated(&self, pages: Pages) {
        self.set_both(pages.count() as u16, self.cpu());
    }

    #[inline]
    pub fn cpu(&self) -> Cpu {
        Cpu::new((self.populated.load(Relaxed) >> CPU_SHIFT).into())
    }

    #[inline]
    pub fn set_cpu(&self, cpu: Cpu) {
        self.set_both(self.populated.load(Relaxed) & POPULATED, cpu);
    }

    fn set_both(&self, populated: u16, cpu: Cpu) {
        let above = u16::from(cpu.byte()) << CPU_SHIFT;
        self.populated.store(populated | above, Relaxed);
    }

    #[inline]
    pub fn pages(&self) -> Pages {
        Pages::new(self.pages.load(Relaxed).into())
    }

    /// At most a request's pages (`Geometry::need`).
    #[inline]
    pub fn set_pages(&self, pages: Pages) {
        self.pages.store(pages.count() as u32, Relaxed);
    }

    /// The first unit of a live block; its last has the same kind and length.
    #[inline]
    pub fn begins_block(&self) -> bool {
        self.kind() == Kind::Live && self.pages() != Pages::NONE
    }

    /// Any of these.
    pub fn has(&self, flags: Flags) -> bool {
        self.flags().0 & flags.0 != 0
    }

    pub fn add_flags(&self, flags: Flags) {
        self.flags.fetch_or(flags.0, Relaxed);
    }

    pub fn remove_flags(&self, flags: Flags) {
        self.flags.fetch_and(!flags.0, Relaxed);
    }
}
