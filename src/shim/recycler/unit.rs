//! The unit of movement: 2 MiB, what one page-table page covers, so that `mremap` moves a pointer.

use super::amount::{Bytes, Pages};
pub use super::kind::{Flags, Free, Kind};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU8, Ordering::Relaxed};

pub const UNIT_SHIFT: u32 = 21;
pub const UNIT_BYTES: usize = 1 << UNIT_SHIFT;
/// More than what a process can map beside itself.
const MOST_BYTES: usize = 1 << 46;

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
    /// Pages, counted from the start of the unit, that may be resident.
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

    field!(len, set_len, u32);
    field!(stamp, set_stamp, u32);

    #[inline]
    pub fn populated(&self) -> Pages {
        Pages::new(self.populated.load(Relaxed).into())
    }

    /// At most a unit's pages.
    #[inline]
    pub fn set_populated(&self, pages: Pages) {
        self.populated.store(pages.count() as u16, Relaxed);
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

    pub fn raise(&self, flags: Flags) {
        self.flags.fetch_or(flags.0, Relaxed);
    }

    pub fn lower(&self, flags: Flags) {
        self.flags.fetch_and(!flags.0, Relaxed);
    }
}

/// What a request needs: accounting is by page, moves are by unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub units: u32,
    pub pages: Pages,
    /// Pages needed of the last unit, at least one.
    pub tail: Pages,
}

/// Page geometry of the running system.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    pub page_shift: u32,
}

impl Geometry {
    pub fn page_bytes(self) -> usize {
        1 << self.page_shift
    }

    pub fn pages_per_unit(self) -> Pages {
        Pages::new(1 << (UNIT_SHIFT - self.page_shift))
    }

    /// Whole pages.
    pub fn pages(self, bytes: Bytes) -> Pages {
        Pages::new(bytes.count() >> self.page_shift)
    }

    pub fn bytes(self, pages: Pages) -> Bytes {
        Bytes::new(pages.count() << self.page_shift)
    }

    /// The same as a size of memory.
    pub fn size(self, pages: Pages) -> usize {
        (pages.count() as usize) << self.page_shift
    }

    /// The largest request: 64 TiB, or as many pages as a unit's book-keeping counts.
    pub const fn most_bytes(self) -> usize {
        let counted = (u32::MAX as usize) << self.page_shift;
        if counted < MOST_BYTES {
            counted
        } else {
            MOST_BYTES
        }
    }

    /// None for zero and for more than the largest request.
    pub fn need(self, bytes: usize) -> Option<Need> {
        if bytes == 0 || bytes > self.most_bytes() {
            return None;
        }
        let pages = ((bytes - 1) >> self.page_shift) as u32 + 1;
        let units = pages.div_ceil(self.pages_per_unit().count() as u32);
        let pages = Pages::new(pages.into());
        let tail = pages - self.pages_per_unit() * u64::from(units - 1);
        Some(Need { units, pages, tail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_rounded_to_pages_and_to_units() {
        let four_kib = Geometry { page_shift: 12 };
        let need = |bytes| four_kib.need(bytes);
        assert_eq!(
            need(1 << 20),
            Some(Need {
                units: 1,
                pages: Pages::new(256),
                tail: Pages::new(256)
            })
        );
        assert_eq!(
            need(2 << 20),
            Some(Need {
                units: 1,
                pages: Pages::new(512),
                tail: Pages::new(512)
            })
        );
        assert_eq!(
            need((2 << 20) + 1),
            Some(Need {
                units: 2,
                pages: Pages::new(513),
                tail: Pages::new(1)
            })
        );
        assert_eq!(need(0), None);
        assert_eq!(need(usize::MAX), None);
    }

    /// arm64 kernels have pages of 4, 16 or 64 KiB.
    const PAGE_SHIFTS: [u32; 3] = [12, 14, 16];

    #[test]
    fn a_unit_is_whole_pages_of_every_size() {
        let pages = PAGE_SHIFTS.map(|page_shift| Geometry { page_shift }.pages_per_unit());
        assert_eq!(pages, [Pages::new(512), Pages::new(128), Pages::new(32)]);
    }

    #[test]
    fn the_largest_request_is_the_last_that_is_not_refused() {
        for page_shift in PAGE_SHIFTS {
            let geometry = Geometry { page_shift };
            let most = geometry.most_bytes();
            assert_eq!(geometry.size(geometry.need(most).unwrap().pages), most);
            assert_eq!(geometry.need(most + 1), None);
        }
        assert_eq!(Geometry { page_shift: 16 }.most_bytes(), MOST_BYTES);
    }

    #[test]
    fn the_same_request_takes_the_same_units_and_less_than_a_page_more_on_every_system() {
        for page_shift in PAGE_SHIFTS {
            let geometry = Geometry { page_shift };
            let (page, mib) = (geometry.page_bytes(), 1 << 20);
            for bytes in [
                1,
                page,
                page + 1,
                mib,
                2 * mib - 1,
                2 * mib,
                3 * mib,
                5 * mib + 1,
            ] {
                let need = geometry.need(bytes).unwrap();
                assert_eq!(need.units as usize, bytes.div_ceil(UNIT_BYTES), "{bytes}");
                assert!((bytes..bytes + page).contains(&geometry.size(need.pages)));
                assert!((Pages::new(1)..=geometry.pages_per_unit()).contains(&need.tail));
                let before = geometry.pages_per_unit() * u64::from(need.units - 1);
                assert_eq!(before + need.tail, need.pages);
                assert_eq!(geometry.pages(geometry.bytes(need.pages)), need.pages);
            }
        }
    }
}
