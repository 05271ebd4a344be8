//! Numbers of pages and of bytes, as two types, for page sizes of 4, 16 and 64 KiB. `Geometry` alone converts between
//! them, and sizes requests.

use crate::core::pagemap::Unit;
use crate::core::unit::UNIT_SHIFT;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// No process can map more.
const MAX_BYTES: usize = 1 << 46;

/// A number of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pages(u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(u64);

impl Pages {
    pub const NONE: Pages = Pages(0);

    pub const fn new(count: u64) -> Pages {
        Pages(count)
    }

    pub const fn count(self) -> u64 {
        self.0
    }

    pub fn next_multiple_of(self, step: Pages) -> Pages {
        Pages(self.0.next_multiple_of(step.0))
    }

    pub fn saturating_sub(self, other: Pages) -> Pages {
        Pages(self.0.saturating_sub(other.0))
    }
}

impl Bytes {
    pub const NONE: Bytes = Bytes(0);

    pub const fn new(count: u64) -> Bytes {
        Bytes(count)
    }

    pub const fn count(self) -> u64 {
        self.0
    }
}

impl Add for Pages {
    type Output = Pages;
    fn add(self, other: Pages) -> Pages {
        Pages(self.0 + other.0)
    }
}

impl AddAssign for Pages {
    fn add_assign(&mut self, other: Pages) {
        self.0 += other.0;
    }
}

impl Sub for Pages {
    type Output = Pages;
    fn sub(self, other: Pages) -> Pages {
        Pages(self.0 - other.0)
    }
}

impl Mul<u64> for Pages {
    type Output = Pages;
    fn mul(self, times: u64) -> Pages {
        Pages(self.0 * times)
    }
}

impl Div<u64> for Pages {
    type Output = Pages;
    fn div(self, parts: u64) -> Pages {
        Pages(self.0 / parts)
    }
}

impl Sum for Pages {
    fn sum<I: Iterator<Item = Pages>>(each: I) -> Pages {
        each.fold(Pages::NONE, Add::add)
    }
}

/// The size of a request: in pages, which the ledger counts, and in units, which an extent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub units: u32,
    pub pages: Pages,
    /// Pages needed of the last unit, at least one.
    pub last_unit_pages: Pages,
}

impl Need {
    /// The slack of a block: pages in its last unit, behind the block's end.
    #[inline]
    pub fn slack(self, last: &Unit) -> Pages {
        last.populated().saturating_sub(self.last_unit_pages)
    }
}

/// The contents that a new block must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Any bytes, as for malloc.
    Any,
    /// Zeros, as for calloc.
    Zeroed,
}

/// The page size of the running system.
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

    /// Rounded down to whole pages.
    pub fn pages(self, bytes: Bytes) -> Pages {
        Pages::new(bytes.count() >> self.page_shift)
    }

    pub fn bytes(self, pages: Pages) -> Bytes {
        Bytes::new(pages.count() << self.page_shift)
    }

    /// The same, as the size of a memory range.
    pub fn size(self, pages: Pages) -> usize {
        (pages.count() as usize) << self.page_shift
    }

    /// The largest request: 64 TiB, or the most pages that a unit's field can count.
    pub fn max_bytes(self) -> usize {
        ((u32::MAX as usize) << self.page_shift).min(MAX_BYTES)
    }

    /// The size of a request. `None` for zero bytes and for more than `max_bytes`.
    pub fn need(self, bytes: usize) -> Option<Need> {
        if bytes == 0 || bytes > self.max_bytes() {
            return None;
        }
        let pages = ((bytes - 1) >> self.page_shift) as u32 + 1;
        let units = ((bytes - 1) >> UNIT_SHIFT) as u32 + 1;
        Some(self.need_of(Pages::new(pages.into()), units))
    }

    /// The request that a block of these pages and units serves.
    #[inline]
    pub fn need_of(self, pages: Pages, units: u32) -> Need {
        let last_unit_pages = pages - self.pages_per_unit() * u64::from(units - 1);
        Need {
            units,
            pages,
            last_unit_pages,
        }
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
                last_unit_pages: Pages::new(256)
            })
        );
        assert_eq!(
            need(2 << 20),
            Some(Need {
                units: 1,
                pages: Pages::new(512),
                last_unit_pages: Pages::new(512)
            })
        );
        assert_eq!(
            need((2 << 20) + 1),
            Some(Need {
                units: 2,
                pages: Pages::new(513),
                last_unit_pages: Pages::new(1)
            })
        );
        assert_eq!(need(0), None);
        assert_eq!(need(usize::MAX), None);
    }

    /// arm64 kernels have pages of 4, 16 or 64 KiB.
    const PAGE_SHIFTS: [u32; 3] = [12, 14, 16];

    #[test]
    fn a_unit_is_a_whole_number_of_pages_of_each_size() {
        let pages = PAGE_SHIFTS.map(|page_shift| Geometry { page_shift }.pages_per_unit());
        assert_eq!(pages, [Pages::new(512), Pages::new(128), Pages::new(32)]);
    }

    #[test]
    fn a_request_larger_than_max_bytes_is_refused() {
        for page_shift in PAGE_SHIFTS {
            let geometry = Geometry { page_shift };
            let max = geometry.max_bytes();
            assert_eq!(geometry.size(geometry.need(max).unwrap().pages), max);
            assert_eq!(geometry.need(max + 1), None);
        }
        assert_eq!(Geometry { page_shift: 16 }.max_bytes(), MAX_BYTES);
    }

    #[test]
    fn a_request_takes_the_same_units_and_less_than_one_page_more_with_each_page_size() {
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
                let last = need.last_unit_pages;
                assert!((Pages::new(1)..=geometry.pages_per_unit()).contains(&last));
                let before = geometry.pages_per_unit() * u64::from(need.units - 1);
                assert_eq!(before + need.last_unit_pages, need.pages);
                assert_eq!(geometry.pages(geometry.bytes(need.pages)), need.pages);
            }
        }
    }
}
