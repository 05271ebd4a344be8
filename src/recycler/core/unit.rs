//! Units: 2 MiB of addresses each, which one page-table page covers. `mremap` moves a whole unit by
//! moving one pointer to its page-table page. An extent is a range of adjacent units.
//!
//! This file has the values that describe both. `core::pagemap` stores them for each unit.

pub const UNIT_SHIFT: u32 = 21;
pub const UNIT_BYTES: usize = 1 << UNIT_SHIFT;

/// The address of a unit divided by `UNIT_BYTES`. 0 means none.
pub type UnitId = u32;

pub fn address(id: UnitId) -> usize {
    (id as usize) << UNIT_SHIFT
}

pub fn id_of(address: usize) -> UnitId {
    (address >> UNIT_SHIFT) as UnitId
}

/// A range of adjacent units that the recycler treats as one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub head: UnitId,
    /// In units.
    pub len: u32,
}

impl Extent {
    #[inline]
    pub const fn new(head: UnitId, len: u32) -> Self {
        Extent { head, len }
    }

    #[inline]
    pub const fn unit(id: UnitId) -> Self {
        Extent::new(id, 1)
    }

    /// The units from `start` up to, and without, `end`.
    #[inline]
    pub const fn between(start: UnitId, end: UnitId) -> Self {
        Extent::new(start, end - start)
    }

    /// The first `len` units.
    #[inline]
    pub const fn prefix(self, len: u32) -> Self {
        Extent::new(self.head, len)
    }

    /// The units after the first `len` ones.
    #[inline]
    pub const fn suffix_from(self, len: u32) -> Self {
        Extent::new(self.head + len, self.len - len)
    }

    /// The unit after the last one.
    pub fn end(self) -> UnitId {
        self.head + self.len
    }

    /// The address of the first byte.
    pub fn start(self) -> usize {
        address(self.head)
    }

    pub fn bytes(self) -> usize {
        self.len as usize * UNIT_BYTES
    }

    pub fn units(self) -> std::ops::Range<UnitId> {
        self.head..self.head + self.len
    }

    /// Each unit as an extent of length 1.
    pub fn extents(self) -> impl Iterator<Item = Extent> {
        self.units().map(Extent::unit)
    }
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
    /// Another thread may have mapped these addresses: the owner unmaps them, has lost them, or is
    /// about to map a hole. The owner has yet to record the result.
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
pub struct Cpu(pub u8);

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
