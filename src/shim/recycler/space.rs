//! The spans of units and how they split and join. Pure book-keeping, always under the lock.

use super::amount::Pages;
use super::budget::Tolerance;
use super::ledger::Ledger;
use super::pool::Pool;
use super::queue::Queue;
use super::table::Table;
use super::thrash::Thrash;
use super::unit::{kind, Geometry, Need, Unit, UnitId};

/// A run of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub head: UnitId,
    pub len: u32,
}

impl Run {
    pub fn end(self) -> UnitId {
        self.head + self.len
    }

    pub fn units(self) -> std::ops::Range<UnitId> {
        self.head..self.head + self.len
    }
}

pub struct Space {
    pub geometry: Geometry,
    pub table: &'static Table,
    pub cached: Pool,
    pub empty: Pool,
    pub holes: Pool,
    pub ledger: Ledger,
    pub tolerance: Tolerance,
    /// Live blocks with slack, the one that has it longest first.
    pub slack_queue: Queue,
    /// Blocks whose slack is on its way back.
    pub pinned: Queue,
    /// The time of the current operation, milliseconds (wrapping).
    pub now_ms: u32,
}

impl Space {
    pub const fn new(table: &'static Table) -> Self {
        Space {
            geometry: Geometry { page_shift: 12 },
            table,
            cached: Pool::new(),
            empty: Pool::new(),
            holes: Pool::new(),
            ledger: Ledger::new(),
            tolerance: Tolerance {
                geometry: Geometry { page_shift: 12 },
                memory_limit: None,
                near_limit: false,
                thrash: Thrash::new(),
            },
            slack_queue: Queue::new(),
            pinned: Queue::new(),
            now_ms: 0,
        }
    }

    pub fn unit(&self, id: UnitId) -> &'static Unit {
        self.table.unit(id)
    }

    /// The span of `kind` that begins here.
    pub fn span_at(&self, head: UnitId, kind: u8) -> Option<Run> {
        let unit = self.table.find(head)?;
        (unit.kind() == kind).then(|| Run {
            head,
            len: unit.len(),
        })
    }

    /// The span of `kind` that ends before here.
    fn span_before(&self, end: UnitId, kind: u8) -> Option<Run> {
        let last = self.table.find(end.checked_sub(1)?)?;
        (last.kind() == kind).then(|| Run {
            head: end - last.len(),
            len: last.len(),
        })
    }

    /// Cuts a `BUSY` run in two, either of which may be empty.
    pub fn split(&self, run: Run, len: u32) -> (Run, Run) {
        let front = Run {
            head: run.head,
            len,
        };
        let back = Run {
            head: run.head + len,
            len: run.len - len,
        };
        self.label(front, kind::BUSY);
        self.label(back, kind::BUSY);
        (front, back)
    }

    /// Labels a run as one span.
    pub fn label(&self, run: Run, kind: u8) {
        if run.len == 0 {
            return;
        }
        for end in [run.head, run.end() - 1] {
            let unit = self.unit(end);
            unit.set_kind(kind);
            unit.set_len(run.len);
        }
    }

    fn pool(&mut self, kind: u8) -> Option<(&mut Pool, &'static Table)> {
        match kind {
            kind::CACHED => Some((&mut self.cached, self.table)),
            kind::EMPTY => Some((&mut self.empty, self.table)),
            kind::HOLE => Some((&mut self.holes, self.table)),
            _ => None,
        }
    }

    /// Puts a run into the pool of its kind, joined with its neighbours of that kind.
    pub fn give(&mut self, run: Run, kind: u8) {
        if run.len == 0 {
            return;
        }
        for id in run.units() {
            self.unit(id).set_stamp(self.now_ms);
            self.unit(id).set_kind(kind);
        }
        let mut joined = run;
        if let Some(before) = self.span_before(run.head, kind) {
            self.withdraw(before, kind);
            joined = Run {
                head: before.head,
                len: before.len + joined.len,
            };
        }
        if let Some(after) = self.span_at(run.end(), kind) {
            self.withdraw(after, kind);
            joined.len += after.len;
        }
        self.label(joined, kind);
        if let Some((pool, table)) = self.pool(kind) {
            pool.insert(table, joined.head, joined.len);
        }
    }

    fn withdraw(&mut self, run: Run, kind: u8) {
        if let Some((pool, table)) = self.pool(kind) {
            pool.remove(table, run.head, run.len);
        }
    }

    /// Takes `part` out of the free span `whole`; what is left keeps its age. The part becomes `BUSY`.
    pub fn carve(&mut self, whole: Run, part: Run, kind: u8) -> Run {
        let Some((pool, table)) = self.pool(kind) else {
            return part;
        };
        let elder = table.unit(whole.head).older();
        pool.remove(table, whole.head, whole.len);
        let front = Run {
            head: whole.head,
            len: part.head - whole.head,
        };
        let back = Run {
            head: part.end(),
            len: whole.end() - part.end(),
        };
        for rest in [back, front] {
            if rest.len > 0 {
                pool.insert_after(table, rest.head, rest.len, elder);
                // The links are in place; the labels follow.
                for end in [rest.head, rest.end() - 1] {
                    table.unit(end).set_kind(kind);
                    table.unit(end).set_len(rest.len);
                }
            }
        }
        self.label(part, kind::BUSY);
        part
    }

    /// Carves `units` from the best fitting span of a kind.
    pub fn take_fit(&mut self, units: u32, kind: u8) -> Option<Run> {
        let (pool, table) = self.pool(kind)?;
        let (head, len) = pool.best_fit(table, units)?;
        Some(self.carve(Run { head, len }, Run { head, len: units }, kind))
    }

    pub fn populated(&self, run: Run) -> Pages {
        run.units().map(|id| self.unit(id).populated()).sum()
    }

    /// Fresh pages for the whole request would still be within the tolerance. Then they are the better
    /// choice: a block gathered from many mappings costs more at every free (see `clean`).
    pub fn may_grow(&self, need: Need) -> bool {
        self.tolerance.may_grow(&self.ledger, need.pages)
    }

    /// Books pages that were, or are about to be, faulted in, and pages given back for the budget.
    pub fn note_churn(&mut self, fresh: Pages, returned: Pages) {
        let thrash = &mut self.tolerance.thrash;
        thrash.note(self.now_ms, fresh, returned, self.ledger.peak_live());
    }

    pub fn excess(&self) -> Pages {
        self.tolerance.excess(&self.ledger)
    }

    /// Marks every unit of a run, so that its parts can be given away one by one. What is
    /// not ours to give stays marked.
    pub fn mark_busy(&self, run: Run) {
        for id in run.units() {
            if !matches!(self.unit(id).kind(), kind::NONE | kind::STUCK | kind::GONE) {
                self.unit(id).set_kind(kind::BUSY);
                self.unit(id).set_len(1);
            }
        }
    }

    /// Forgets a run that is no longer mapped by us.
    pub fn disown(&self, run: Run) {
        for id in run.units() {
            self.blank(id, kind::NONE);
        }
    }

    /// Takes in a run that was mapped just now.
    pub fn adopt(&self, run: Run) {
        for id in run.units() {
            self.blank(id, kind::BUSY);
        }
        self.label(run, kind::BUSY);
    }

    fn blank(&self, id: UnitId, kind: u8) {
        let unit = self.unit(id);
        unit.set_kind(kind);
        unit.set_flags(0);
        unit.set_populated(Pages::NONE);
        unit.set_pages(Pages::NONE);
        unit.set_len(0);
    }
}
