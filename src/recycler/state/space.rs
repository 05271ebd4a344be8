//! The extents of units and how they split and join. Pure book-keeping, always under the lock.

use crate::core::amount::{Bytes, Pages};
use crate::core::extent::Extent;
use crate::core::extent_list::{BeingPurged, ByAge, List, WithSlack};
use crate::core::extent_pool::Pool;
use crate::core::geometry::{Geometry, Need};
use crate::core::page_ledger::Ledger;
use crate::core::pagemap::{Pagemap, Units};
use crate::core::unit::{Cpu, Flags, FreeKind, Kind, Unit, UnitId};
use crate::policy::budget::Tolerance;
use crate::policy::churn::ChurnDetector;

/// What `Space::note_seams` does, for a thread that has the extent in its hands and not the lock. A hint: that nothing
/// was done to a block the kernel confirms (`witness`, `attributes`).
pub fn note_boundaries(pagemap: &Pagemap, extent: Extent, boundary: Flags) {
    pagemap.unit(extent.head).add_flags(boundary);
    if let Some(behind) = pagemap.find(extent.end()) {
        behind.add_flags(boundary);
    }
}

pub struct Space {
    pub geometry: Geometry,
    pub pagemap: &'static Pagemap,
    pub cached: Pool,
    pub empty: Pool,
    pub holes: Pool,
    pub ledger: Ledger,
    pub tolerance: Tolerance,
    /// Live blocks with slack, the one that has it longest first.
    pub with_slack: List<WithSlack>,
    /// Blocks whose slack is on its way back.
    pub pinned: List<BeingPurged>,
    /// The time of the current operation, milliseconds (wrapping).
    pub now_ms: u32,
    /// Where it runs.
    pub cpu: Cpu,
    /// What a fault may bring, where that is more than a page.
    pub fault_bytes: Bytes,
}

impl Space {
    pub const fn new(pagemap: &'static Pagemap) -> Self {
        Space {
            geometry: Geometry { page_shift: 12 },
            pagemap,
            cached: Pool::new(),
            empty: Pool::new(),
            holes: Pool::new(),
            ledger: Ledger::new(),
            tolerance: Tolerance {
                geometry: Geometry { page_shift: 12 },
                memory_limit: None,
                near_limit: false,
                churn: ChurnDetector::new(),
            },
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

    #[inline]
    pub fn units(&self, extent: Extent) -> Units<'static> {
        self.pagemap.units(extent.head, extent.len)
    }

    /// The extent of `kind` that begins here.
    pub fn extent_at(&self, head: UnitId, kind: Kind) -> Option<Extent> {
        let unit = self.pagemap.find(head)?;
        (unit.kind() == kind).then(|| Extent::new(head, unit.len()))
    }

    /// The extent of `kind` that ends before here.
    fn extent_before(&self, end: UnitId, kind: Kind) -> Option<Extent> {
        let last = self.pagemap.find(end.checked_sub(1)?)?;
        (last.kind() == kind).then(|| Extent::new(end - last.len(), last.len()))
    }

    /// Cuts a `Busy` extent in two, either of which may be empty.
    pub fn split(&self, extent: Extent, len: u32) -> (Extent, Extent) {
        let front = extent.prefix(len);
        let back = extent.suffix_from(len);
        self.label(front, Kind::Busy);
        self.label(back, Kind::Busy);
        (front, back)
    }

    /// Labels units as one extent.
    pub fn label(&self, extent: Extent, kind: Kind) {
        self.pagemap.label(extent.head, extent.len, kind);
    }

    pub fn pool(&mut self, free: FreeKind) -> (&mut Pool, &'static Pagemap) {
        match free {
            FreeKind::Cached => (&mut self.cached, self.pagemap),
            FreeKind::Empty => (&mut self.empty, self.pagemap),
            FreeKind::Hole => (&mut self.holes, self.pagemap),
        }
    }

    /// The free extents of a kind by age.
    pub fn free_list(&mut self, free: FreeKind) -> &List<ByAge> {
        self.pool(free).0.ages()
    }

    /// Puts an extent into the pool of its kind, joined with its neighbours of that kind.
    pub fn insert_free(&mut self, extent: Extent, free: FreeKind) {
        let kind = free.kind();
        if extent.len == 0 {
            return;
        }
        let (now_ms, cpu) = (self.now_ms, self.cpu);
        for unit in self.units(extent) {
            unit.set_stamp(now_ms);
            unit.set_cpu(cpu);
            unit.set_kind(kind);
        }
        let mut joined = extent;
        if let Some(before) = self.extent_before(extent.head, kind) {
            self.remove_free(before, free);
            joined = Extent::new(before.head, before.len + joined.len);
        }
        if let Some(after) = self.extent_at(extent.end(), kind) {
            self.remove_free(after, free);
            joined.len += after.len;
        }
        self.label(joined, kind);
        let (pool, pagemap) = self.pool(free);
        pool.insert(pagemap, joined.head, joined.len);
    }

    fn remove_free(&mut self, extent: Extent, free: FreeKind) {
        let (pool, pagemap) = self.pool(free);
        pool.remove(pagemap, extent.head, extent.len);
    }

    /// Takes `part` out of the free extent `whole`; what is left keeps its age. The part becomes `Busy`, or
    /// `Gone` out of a hole, which is not mapped.
    pub fn take_part(&mut self, whole: Extent, part: Extent, free: FreeKind) -> Extent {
        let (pool, pagemap) = self.pool(free);
        let elder = pool.remove(pagemap, whole.head, whole.len);
        let front = Extent::between(whole.head, part.head);
        let back = Extent::between(part.end(), whole.end());
        for rest in [back, front] {
            if rest.len > 0 {
                pool.insert_after(pagemap, rest.head, rest.len, elder);
                // The links are in place; the labels follow.
                pagemap.label(rest.head, rest.len, free.kind());
            }
        }
        if free == FreeKind::Hole {
            pagemap.mark(part.head, part.len, Kind::Gone);
        } else {
            self.label(part, Kind::Busy);
        }
        part
    }

    /// A mapping in it may carry marks of a program: it must be mapped anew before it is anybody's.
    pub fn is_altered(&self, extent: Extent) -> bool {
        self.units(extent).any(|unit| unit.has(Flags::ALTERED))
    }

    pub fn populated(&self, extent: Extent) -> Pages {
        self.units(extent).map(Unit::populated).sum()
    }

    /// A block gathered from many mappings costs more at every free (see `attributes`). So fresh pages are the better
    /// choice where they stay within the tolerance; and while blocks come and go steadily even if others go back for them.
    pub fn prefers_fresh(&self, need: Need) -> bool {
        let tolerance = &self.tolerance;
        tolerance.is_churning(&self.ledger, need.pages, self.now_ms)
            || tolerance.may_grow(&self.ledger, need.pages)
    }

    /// Books pages that were, or are about to be, faulted in, and pages given back for the budget; cached ones that moved as both.
    pub fn note_churn(&mut self, fresh: Pages, returned: Pages) {
        let peak = self.ledger.peak_live();
        self.tolerance
            .note_churn(self.now_ms, fresh, returned, peak);
    }

    pub fn excess(&self) -> Pages {
        self.tolerance.excess(&self.ledger)
    }

    /// Marks every unit of an extent, so that its parts can be given away one by one. What is
    /// not ours to give stays marked.
    pub fn split_to_busy_units(&self, extent: Extent) {
        for id in extent.units() {
            if !matches!(self.unit(id).kind(), Kind::None | Kind::Stuck | Kind::Gone) {
                self.unit(id).set_kind(Kind::Busy);
                self.unit(id).set_len(1);
            }
        }
    }

    /// Forgets an extent that is no longer mapped by us.
    pub fn forget(&self, extent: Extent) {
        for id in extent.units() {
            self.blank(id, Kind::None);
        }
    }

    /// Takes in an extent that was mapped just now.
    pub fn track_new(&self, extent: Extent) {
        for id in extent.units() {
            self.blank(id, Kind::Busy);
        }
        self.label(extent, Kind::Busy);
        self.note_boundaries(extent, Flags::MAYBE_BOUNDARY);
    }

    /// Notes seams at both ends of an extent: its mapping may be another than those of its neighbours.
    pub fn note_boundaries(&self, extent: Extent, boundary: Flags) {
        note_boundaries(self.pagemap, extent, boundary);
    }

    fn blank(&self, id: UnitId, kind: Kind) {
        let unit = self.unit(id);
        unit.set_kind(kind);
        unit.set_flags(Flags::NONE);
        unit.set_populated(Pages::NONE);
        unit.set_pages(Pages::NONE);
        unit.set_len(0);
    }
}
