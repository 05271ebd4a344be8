//! An estimate of the recycler's VMAs.
//!
//! The kernel limits the VMAs of a process. A process at the limit can start no thread and load no
//! library. Each moved piece may become a VMA, so above a share of the limit no pages move: they
//! are purged and faulted in again instead. They are also purged in place, because an unmap would
//! split a VMA.

use crate::core::unit::{Flags, Kind};
use crate::state::space::Space;

/// The recycler may have one VMA in `SHARE` of those that the kernel allows.
const SHARE: u32 = 4;
/// A recount walks over all units, so there is at most one in this time.
const RECOUNT_MS: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub struct VmaCount {
    /// The last count plus the VMAs that moves and unmaps may have added. The count ignores
    /// `MAYBE_BOUNDARY`, so the true number may be a little higher.
    estimate: u32,
    counted_ms: u32,
}

impl VmaCount {
    pub const fn new() -> Self {
        VmaCount {
            estimate: 0,
            counted_ms: 0,
        }
    }

    /// A move or an unmap may split the VMAs of the source and of the target.
    pub fn record_splits(&mut self) {
        self.estimate = self.estimate.saturating_add(4);
    }

    /// True if the recycler has more than its share of the `allowed` VMAs.
    pub fn is_near_limit(&mut self, space: &Space, allowed: u32) -> bool {
        let limit = allowed / SHARE;
        let since_ms = space.now_ms.wrapping_sub(self.counted_ms);
        if self.estimate > limit && since_ms >= RECOUNT_MS {
            self.estimate = count_boundaries(space);
            self.counted_ms = space.now_ms;
        }
        self.estimate > limit
    }
}

fn count_boundaries(space: &Space) -> u32 {
    let mut boundaries = 0;
    space.pagemap.walk(|_, unit| {
        let is_mapped = !matches!(unit.kind(), Kind::None | Kind::Hole | Kind::Gone);
        boundaries += u32::from(is_mapped && unit.has(Flags::VMA_BOUNDARY));
        1
    });
    boundaries
}
