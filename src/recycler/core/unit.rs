//! The metadata of one unit: 2 MiB of addresses, which one page-table page covers.
//!
//! `mremap` moves a whole unit by moving one pointer to its page-table page.
//!
//! Invariant: a thread writes a unit's metadata only under the lock of the state, or while it owns
//! the unit's extent. A thread owns an extent that it made `Busy` or `Purging`, and a live block
//! that the program has just passed to free or realloc. No pool and no list contains an owned
//! extent, so no other thread writes to it. Fields are atomics because `usable_size` and `free`
//! read them without the lock. Flags change with single atomic instructions: the owner of a live
//! block and the thread that returns the block's slack both set some.

use crate::core::amount::Pages;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU8, Ordering::Relaxed};

pub const UNIT_SHIFT: u32 = 21;
pub const UNIT_BYTES: usize = 1 << UNIT_SHIFT;

/// `populated_and_cpu`: page count below this bit, CPU number above. A unit has at most 512 pages.
const CPU_SHIFT: u32 = 10;
const POPULATED_MASK: u16 = (1 << CPU_SHIFT) - 1;

/// The address of a unit divided by `UNIT_BYTES`. 0 means none.
pub type UnitId = u32;

pub fn address(id: UnitId) -> usize {
    (id as usize) << UNIT_SHIFT
}

pub fn id_of(address: usize) -> UnitId {
    (address >> UNIT_SHIFT) as UnitId
}

/// The state of an extent. Units outside all extents are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    None,
    /// Handed out to the program.
    Live,
    /// Free, with pages.
    Cached,
    /// Free, mapped, without pages.
    Empty,
    /// Unmapped by the recycler: addresses to try first for the next mapping.
    Hole,
    /// Owned by one thread, which is in a system call.
    Busy,
    /// The system can neither unmap nor empty it (the program sealed it). It is never used again.
    Stuck,
    /// No longer mapped by the recycler. The thread that lost it has yet to update the state.
    Gone,
    /// Owned by one thread, which is about to unmap or empty it. Still mapped.
    Purging,
}

impl Kind {
    pub fn from_byte(byte: u8) -> Kind {
        match byte {
            0 => Kind::None,
            1 => Kind::Live,
            2 => Kind::Cached,
            3 => Kind::Empty,
            4 => Kind::Hole,
            5 => Kind::Busy,
            6 => Kind::Stuck,
            7 => Kind::Gone,
            _ => Kind::Purging,
        }
    }
}

/// The kinds of free extents. Each has a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeKind {
    Cached,
    Empty,
    Hole,
}

impl FreeKind {
    pub fn kind(self) -> Kind {
        match self {
            FreeKind::Cached => Kind::Cached,
            FreeKind::Empty => Kind::Empty,
            FreeKind::Hole => Kind::Hole,
        }
    }
}

/// A CPU number modulo 64. It only selects pages that the CPU's caches may hold, so a collision
/// does no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu(u8);

impl Cpu {
    pub const fn new(number: u32) -> Cpu {
        Cpu((number % 64) as u8)
    }
}

/// Facts about one unit, in addition to the kind of its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// The mapping has advice for huge pages.
    pub const HUGE: Flags = Flags(1);
    /// A VMA may end between the previous unit and this one.
    pub const VMA_BOUNDARY: Flags = Flags(2);
    /// Head of a live extent: a thread returns its slack outside the lock.
    pub const PINNED: Flags = Flags(4);
    /// Head of a live extent: freed while pinned.
    pub const FREED: Flags = Flags(8);
    /// The VMA's attributes may differ from the default: map it again before pages fault in.
    pub const ALTERED: Flags = Flags(16);
    /// Head of a live extent: realloc made it shorter, so the pages behind its end may have
    /// attributes that the program set.
    pub const SHRUNK: Flags = Flags(32);
    /// The previous unit was mapped by another call. The kernel may have merged the two VMAs.
    pub const MAYBE_BOUNDARY: Flags = Flags(64);
    pub const ANY_BOUNDARY: Flags = Flags::VMA_BOUNDARY.with(Flags::MAYBE_BOUNDARY);

    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// The neighbours of an extent in a list (`extent_list`). 0 means none.
#[derive(Default)]
pub struct Links {
    prev: AtomicU32,
    next: AtomicU32,
}

/// `kind` and `len` are valid for the first and the last unit of an extent, the links only for the
/// first.
#[derive(Default)]
#[repr(C)]
pub struct Unit {
    kind: AtomicU8,
    flags: AtomicU8,
    /// The number of pages, from the start of the unit, that may be resident; in the upper bits
    /// the CPU that freed the unit last.
    populated_and_cpu: AtomicU16,
    len: AtomicU32,
    /// Of a free extent: its list of one bin. Of a live one: a queue of blocks with slack.
    pub bin_links: Links,
    pub age_links: Links,
    /// Head of a live extent: when the program allocated it. Free unit: when it was freed. Last
    /// unit of a live extent with slack: when the slack arose. Milliseconds, wrapping.
    stamp: AtomicU32,
    /// Head of a live extent: pages handed out. 0 in all other units.
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
            populated_and_cpu: AtomicU16::new(0),
            len: AtomicU32::new(0),
            bin_links: Links::blank(),
            age_links: Links::blank(),
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

    field!(len, set_len, u32);
    field!(stamp, set_stamp, u32);

    /// Labels the first or the last unit of an extent.
    #[inline]
    pub fn label(&self, kind: Kind, len: u32) {
        self.set_kind(kind);
        self.set_len(len);
    }

    #[inline]
    pub fn populated(&self) -> Pages {
        Pages::new((self.populated_and_cpu.load(Relaxed) & POPULATED_MASK).into())
    }

    /// `pages` is at most the number of a unit's pages.
    #[inline]
    pub fn set_populated(&self, pages: Pages) {
        self.set_populated_and_cpu(pages.count() as u16, self.cpu());
    }

    #[inline]
    pub fn cpu(&self) -> Cpu {
        Cpu::new((self.populated_and_cpu.load(Relaxed) >> CPU_SHIFT).into())
    }

    #[inline]
    pub fn set_cpu(&self, cpu: Cpu) {
        self.set_populated_and_cpu(self.populated_and_cpu.load(Relaxed) & POPULATED_MASK, cpu);
    }

    fn set_populated_and_cpu(&self, populated: u16, cpu: Cpu) {
        let cpu_bits = u16::from(cpu.0) << CPU_SHIFT;
        self.populated_and_cpu.store(populated | cpu_bits, Relaxed);
    }

    #[inline]
    pub fn pages(&self) -> Pages {
        Pages::new(self.pages.load(Relaxed).into())
    }

    /// `pages` is at most the pages of the largest request (`Geometry::max_bytes`).
    #[inline]
    pub fn set_pages(&self, pages: Pages) {
        self.pages.store(pages.count() as u32, Relaxed);
    }

    /// True for the first unit of a live block. The last unit has the same kind and length, but no
    /// pages.
    #[inline]
    pub fn begins_block(&self) -> bool {
        self.kind() == Kind::Live && self.pages() != Pages::NONE
    }

    #[inline]
    pub fn flags(&self) -> Flags {
        Flags(self.flags.load(Relaxed))
    }

    #[inline]
    pub fn set_flags(&self, flags: Flags) {
        self.flags.store(flags.0, Relaxed);
    }

    /// True if the unit has at least one of these flags.
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
