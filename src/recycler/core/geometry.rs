//! Bytes, pages and units: what a request comes to, where the system has pages of 4, 16 or 64 KiB.

use crate::core::amount::{Bytes, Pages};
use crate::core::unit::{Unit, UNIT_SHIFT};

/// More than what a process can map beside itself.
const MAX_BYTES: usize = 1 << 46;

/// What a request needs: accounting is by page, moves are by unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub units: u32,
    pub pages: Pages,
    /// Pages needed of the last unit, at least one.
    pub tail: Pages,
}

impl Need {
    /// Pages beyond the need in a block's last unit.
    #[inline]
    pub fn slack(self, last: &Unit) -> Pages {
        last.populated().saturating_sub(self.tail)
    }
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
    pub const fn max_bytes(self) -> usize {
        let counted = (u32::MAX as usize) << self.page_shift;
        if counted < MAX_BYTES {
            counted
        } else {
            MAX_BYTES
        }
    }

    /// None for zero and for more than the largest request.
    pub fn need(self, bytes: usize) -> Option<Need> {
        if bytes == 0 || bytes > self.max_bytes() {
            return None;
        }
        let pages = ((bytes - 1) >> self.page_shift) as u32 + 1;
        let units = ((bytes - 1) >> UNIT_SHIFT) as u32 + 1;
        Some(self.need_of(Pages::new(pages.into()), units))
    }

    /// That of a block with so many pages in so many units.
    #[inline]
    pub fn need_of(self, pages: Pages, units: u32) -> Need {
        let tail = pages - self.pages_per_unit() * u64::from(units - 1);
        Need { units, pages, tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::unit::UNIT_BYTES;

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
            let most = geometry.max_bytes();
            assert_eq!(geometry.size(geometry.need(most).unwrap().pages), most);
            assert_eq!(geometry.need(most + 1), None);
        }
        assert_eq!(Geometry { page_shift: 16 }.max_bytes(), MAX_BYTES);
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
