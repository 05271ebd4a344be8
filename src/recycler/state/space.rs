//! All extents: free ones in their pools, live blocks and their slack, and the page ledger.
//!
//! These functions make no system call. Callers hold the lock of the state, and own the extents
//! that they pass as `Busy` or `Purging` ones.
//!
//! Invariant: labels, pools, lists and ledger agree whenever the lock is free. Debug builds check
//! this after each operation (`check_ledger`).

use crate::core::extent_pool::{BeingPurged, List, Pool, WithSlack};
use crate::core::geometry::{Bytes, Geometry, Need, Pages};
use crate::core::page_ledger::{Allocation, Column, Ledger};
use crate::core::pagemap::{Pagemap, Unit};
use crate::core::unit::{Cpu, Extent, Flags, FreeKind, Kind, UnitId};
use crate::policy::budget::Tolerance;

pub struct Space {
    pub geometry: Geometry,
    pub pagemap: &'static Pagemap,
    pub cached: Pool,
    pub empty: Pool,
    pub holes: Pool,
    pub ledger: Ledger,
    pub tolerance: Tolerance,
    /// Live blocks with slack, the longest unused slack first.
    pub with_slack: List<WithSlack>,
    /// Live blocks whose slack a thread is returning to the system.
    pub pinned: List<BeingPurged>,
    /// The time of the current operation in milliseconds, wrapping.
    pub now_ms: u32,
    /// The CPU of the current operation.
    pub cpu: Cpu,
    /// Bytes that one page fault may populate, if that is more than a page.
    pub fault_bytes: Bytes,
}

impl Space {
    pub const fn new(pagemap: &'static Pagemap) -> Self {
        let geometry = Geometry { page_shift: 12 };
        Space {
            geometry,
            pagemap,
            cached: Pool::new(),
            empty: Pool::new(),
            holes: Pool::new(),
            ledger: Ledger::new(),
            tolerance: Tolerance::new(geometry),
            with_slack: List::new(),
            pinned: List::new(),
            now_ms: 0,
            cpu: Cpu::new(0),
            fault_bytes: Bytes::NONE,
        }
    }

    pub fn unit(&self, id: UnitId) -> &'static Unit {
        self.pagemap.unit(id)
    }

    pub fn populated(&self, extent: Extent) -> Pages {
        self.pagemap.units(extent).map(Unit::populated).sum()
    }

    /// True if a VMA in the extent may have attributes that a program set. Such an extent must be
    /// mapped again before it serves another block.
    pub fn is_altered(&self, extent: Extent) -> bool {
        self.pagemap
            .units(extent)
            .any(|unit| unit.has(Flags::ALTERED))
    }

    /// The extent of `kind` whose first unit is `head`.
    pub fn extent_at(&self, head: UnitId, kind: Kind) -> Option<Extent> {
        let unit = self.pagemap.find(head)?;
        (unit.kind() == kind).then(|| Extent::new(head, unit.len()))
    }

    /// The extent of `kind` that ends at `end`.
    fn extent_before(&self, end: UnitId, kind: Kind) -> Option<Extent> {
        let last = self.pagemap.find(end.checked_sub(1)?)?;
        (last.kind() == kind).then(|| Extent::new(end - last.len(), last.len()))
    }

    // Mapped and owned extents.

    /// Adds an extent that was mapped just now, as `Busy`.
    pub fn track_new(&self, extent: Extent) {
        for id in extent.units() {
            self.reset_unit(id, Kind::Busy);
        }
        self.pagemap.label(extent, Kind::Busy);
        self.pagemap.add_boundaries(extent, Flags::MAYBE_BOUNDARY);
    }

    /// Removes an extent that the recycler no longer maps.
    pub fn forget(&self, extent: Extent) {
        for id in extent.units() {
            self.reset_unit(id, Kind::None);
        }
    }

    fn reset_unit(&self, id: UnitId, kind: Kind) {
        let unit = self.unit(id);
        unit.set_kind(kind);
        unit.set_flags(Flags::NONE);
        unit.set_populated(Pages::NONE);
        unit.set_pages(Pages::NONE);
        unit.set_len(0);
    }

    /// Splits a `Busy` extent after `len` units. Either part may be empty.
    pub fn split(&self, extent: Extent, len: u32) -> (Extent, Extent) {
        let (front, back) = (extent.prefix(len), extent.suffix_from(len));
        self.pagemap.label(front, Kind::Busy);
        self.pagemap.label(back, Kind::Busy);
        (front, back)
    }

    /// Makes each unit of an extent a `Busy` extent, so that each can be freed alone. Lost units
    /// (`None`, `Stuck`, `Gone`) keep their kind.
    pub fn split_to_busy_units(&self, extent: Extent) {
        for id in extent.units() {
            if !matches!(self.unit(id).kind(), Kind::None | Kind::Stuck | Kind::Gone) {
                self.unit(id).set_kind(Kind::Busy);
                self.unit(id).set_len(1);
            }
        }
    }

    // Free extents.

    pub fn pool(&mut self, free: FreeKind) -> (&mut Pool, &'static Pagemap) {
        match free {
            FreeKind::Cached => (&mut self.cached, self.pagemap),
            FreeKind::Empty => (&mut self.empty, self.pagemap),
            FreeKind::Hole => (&mut self.holes, self.pagemap),
        }
    }

    /// Puts an owned extent into the pool of a kind, merged with neighbours of that kind.
    pub fn insert_free(&mut self, extent: Extent, free: FreeKind) {
        let kind = free.kind();
        if extent.len == 0 {
            return;
        }
        let (now_ms, cpu) = (self.now_ms, self.cpu);
        for unit in self.pagemap.units(extent) {
            unit.set_stamp(now_ms);
            unit.set_cpu(cpu);
            unit.set_kind(kind);
        }
        let mut merged = extent;
        if let Some(before) = self.extent_before(extent.head, kind) {
            self.remove_free(before, free);
            merged = before.prefix(before.len + extent.len);
        }
        if let Some(after) = self.extent_at(extent.end(), kind) {
            self.remove_free(after, free);
            merged.len += after.len;
        }
        self.pagemap.label(merged, kind);
        let (pool, pagemap) = self.pool(free);
        pool.insert(pagemap, merged);
    }

    fn remove_free(&mut self, extent: Extent, free: FreeKind) {
        let (pool, pagemap) = self.pool(free);
        pool.remove(pagemap, extent);
    }

    /// Takes `units` from the best fitting free extent of a kind. Prefers cached units that the
    /// current CPU freed.
    pub fn take_best_fit(&mut self, units: u32, free: FreeKind) -> Option<Extent> {
        let cpu = self.cpu;
        let (pool, pagemap) = self.pool(free);
        if free == FreeKind::Cached
            && let Some((whole, warm)) = pool.warm_fit(pagemap, units, cpu)
        {
            return Some(self.take_part(whole, warm, free));
        }
        let whole = pool.fit(pagemap, units)?;
        Some(self.take_part(whole, whole.prefix(units), free))
    }

    /// Takes `part` out of the free extent `whole`. The rest stays free and keeps its age. The
    /// caller owns the part, which becomes `Busy`, or `Gone` if it is from a hole (not mapped).
    pub fn take_part(&mut self, whole: Extent, part: Extent, free: FreeKind) -> Extent {
        let (pool, pagemap) = self.pool(free);
        let previous = pool.remove(pagemap, whole);
        let front = Extent::between(whole.head, part.head);
        let back = Extent::between(part.end(), whole.end());
        for rest in [back, front] {
            if rest.len > 0 {
                pool.insert_after(pagemap, rest, previous);
                pagemap.label(rest, free.kind());
            }
        }
        if free == FreeKind::Hole {
            pagemap.set_kind_of_each(part, Kind::Gone);
        } else {
            pagemap.label(part, Kind::Busy);
        }
        part
    }

    // Live blocks.

    /// Makes an owned extent the block for `need`. `from` is the column that counts its pages now.
    pub fn mark_live(&mut self, extent: Extent, need: Need, from: Column) -> Allocation {
        let full = self.geometry.pages_per_unit();
        let (mut recycled_pages, mut fresh_pages) = (Pages::NONE, Pages::NONE);
        let head = self.unit(extent.head);
        let (mut last, mut units_left) = (head, extent.len);
        for unit in self.pagemap.units(extent) {
            units_left -= 1;
            let before = unit.populated();
            let after = if units_left == 0 {
                self.populated_after_touch(before, need.last_unit_pages)
            } else {
                full
            };
            last = unit;
            recycled_pages += before;
            if after > before {
                fresh_pages += after - before;
                unit.set_populated(after);
            }
        }
        for end in [head, last] {
            end.label(Kind::Live, extent.len);
        }
        head.set_pages(need.pages);
        head.set_stamp(self.now_ms);
        head.remove_flags(Flags::PINNED.with(Flags::FREED));
        self.ledger.live_blocks += 1;
        self.ledger.transfer(Column::System, from, fresh_pages);
        self.ledger.transfer(from, Column::Live, need.pages);
        self.add_slack(extent, (head, last), need, from);
        Allocation {
            recycled_pages,
            fresh_pages,
        }
    }

    /// The same for a block that realloc resized: it keeps the time of its allocation.
    pub fn mark_live_resized(
        &mut self,
        extent: Extent,
        need: Need,
        allocated_ms: u32,
    ) -> Allocation {
        let allocation = self.mark_live(extent, need, Column::Moving);
        self.unit(extent.head).set_stamp(allocated_ms);
        allocation
    }

    /// Pages of a block's last unit that may be resident once the program has touched `used` of
    /// them. The last fault may populate a large page that reaches behind the block.
    fn populated_after_touch(&self, before: Pages, used: Pages) -> Pages {
        if before >= used {
            return before;
        }
        let pages_per_fault = self.geometry.pages(self.fault_bytes).max(Pages::new(1));
        used.next_multiple_of(pages_per_fault)
    }

    /// Makes a live block `Busy`, owned by the caller. Counts its pages in `to` and returns their
    /// number.
    pub fn mark_busy(&mut self, extent: Extent, to: Column) -> Pages {
        self.end_block(extent, to);
        self.pagemap.label(extent, Kind::Busy);
        self.populated(extent)
    }

    /// Ends a live block and counts all its pages in `to`. The caller must label the extent.
    pub fn end_block(&mut self, extent: Extent, to: Column) {
        let head = self.unit(extent.head);
        let need = self.need_of(extent);
        self.remove_slack(extent, need, to);
        self.ledger.live_blocks -= 1;
        self.ledger.transfer(Column::Live, to, need.pages);
        head.set_pages(Pages::NONE);
    }

    /// The request that a live block serves.
    pub fn need_of(&self, extent: Extent) -> Need {
        let pages = self.unit(extent.head).pages();
        self.geometry.need_of(pages, extent.len)
    }

    // Slack: pages in the last unit of a live block, behind the block's end.

    pub fn slack_of(&self, extent: Extent, need: Need) -> Pages {
        need.slack(self.unit(extent.end() - 1))
    }

    /// Counts a block's slack, and appends the block to the queue of blocks with slack. `ends` are
    /// the block's first and last unit.
    #[inline]
    fn add_slack(&mut self, extent: Extent, ends: (&Unit, &Unit), need: Need, from: Column) {
        let (head, last) = ends;
        let slack = need.slack(last);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(from, Column::Slack, slack);
        last.set_stamp(self.now_ms);
        self.with_slack.push_last(self.pagemap, extent.head, head);
    }

    /// Undoes `add_slack`. Must come before the block or its pages change.
    pub fn remove_slack(&mut self, extent: Extent, need: Need, to: Column) {
        let slack = self.slack_of(extent, need);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(Column::Slack, to, slack);
        let head = self.unit(extent.head);
        self.with_slack.remove(self.pagemap, head);
    }

    /// Records slack again after a purge that the system refused, or that a fork interrupted.
    /// Afterwards `populated` pages of the block's last unit may be resident.
    pub fn restore_slack(&mut self, extent: Extent, populated: Pages, from: Column) {
        let (head, last) = (self.unit(extent.head), self.unit(extent.end() - 1));
        last.set_populated(populated);
        self.add_slack(extent, (head, last), self.need_of(extent), from);
    }

    /// Pins a live block while a thread returns its slack to the system.
    pub fn pin(&mut self, head: UnitId) {
        let unit = self.unit(head);
        unit.add_flags(Flags::PINNED);
        self.pinned.push_last(self.pagemap, head, unit);
    }

    pub fn unpin(&mut self, head: UnitId) {
        let unit = self.unit(head);
        unit.remove_flags(Flags::PINNED);
        self.pinned.remove(self.pagemap, unit);
    }

    // Churn.

    /// Records pages that are faulted in and pages that were purged for the budget. A cached page
    /// that moved counts as both.
    pub fn record_churn(&mut self, fresh: Pages, purged: Pages) {
        let peak = self.ledger.peak_live();
        let scale = self.tolerance.churn_scale(peak);
        let churn = &mut self.tolerance.churn;
        churn.record(self.now_ms, fresh, purged, peak, scale);
    }

    // Debug builds.

    /// Panics if the pagemap and the ledger disagree. Moving and purging pages are not compared, as
    /// extents do not show which of the two counts their pages.
    #[cfg(debug_assertions)]
    pub fn check_ledger(&self) {
        let (mut blocks, mut live, mut slack, mut cached) =
            (0, Pages::NONE, Pages::NONE, Pages::NONE);
        self.pagemap.walk(|head, unit| {
            let extent = Extent::new(head, unit.len());
            match unit.kind() {
                Kind::Live => {
                    blocks += 1;
                    live += unit.pages();
                    slack += self.slack_of(extent, self.need_of(extent));
                }
                Kind::Cached => cached += self.populated(extent),
                Kind::Empty => assert_eq!(self.populated(extent), Pages::NONE, "empty: {extent:?}"),
                Kind::Hole | Kind::Busy | Kind::Purging => {}
                _ => return 1,
            }
            extent.len
        });
        let ledger = &self.ledger;
        assert_eq!(
            (blocks, live, slack, cached),
            (
                ledger.live_blocks,
                ledger.live(),
                ledger.slack(),
                ledger.cached()
            ),
            "blocks, live, slack and cached pages: the pagemap, then {ledger:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::world::{World, MIB};

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the pagemap, then")]
    fn a_page_in_the_wrong_column_is_detected() {
        let mut world = World::new();
        assert!(world.alloc(4 * MIB, false));
        let page = Pages::new(1);
        let mut state = world.recycler.state.lock();
        state
            .space
            .ledger
            .transfer(Column::Live, Column::Cached, page);
        drop(state);
        world.recycler.check();
    }
}
