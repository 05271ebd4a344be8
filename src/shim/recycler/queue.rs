//! Live blocks in a queue, linked through the `prev` and `next` of their first units. A block is in one at most.

use super::table::Table;
use super::unit::UnitId;

#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// 0: empty.
    first: UnitId,
    last: UnitId,
}

impl Queue {
    pub const fn new() -> Self {
        Queue { first: 0, last: 0 }
    }

    /// Walks from here by `Unit::next`.
    pub fn first(&self) -> UnitId {
        self.first
    }

    pub fn push(&mut self, table: &Table, head: UnitId) {
        let unit = table.unit(head);
        unit.set_prev(self.last);
        unit.set_next(0);
        if self.last == 0 {
            self.first = head;
        } else {
            table.unit(self.last).set_next(head);
        }
        self.last = head;
    }

    pub fn remove(&mut self, table: &Table, head: UnitId) {
        let unit = table.unit(head);
        let (prev, next) = (unit.prev(), unit.next());
        if prev == 0 {
            self.first = next;
        } else {
            table.unit(prev).set_next(next);
        }
        if next == 0 {
            self.last = prev;
        } else {
            table.unit(next).set_prev(prev);
        }
    }
}
