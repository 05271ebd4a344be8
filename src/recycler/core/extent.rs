//! An extent: a range of adjacent units that the recycler treats as one object.

use crate::core::unit::{address, UnitId, UNIT_BYTES};

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
