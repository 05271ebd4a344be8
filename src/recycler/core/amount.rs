//! Numbers of pages and of bytes, as two types. Only `Geometry` converts between them.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

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
