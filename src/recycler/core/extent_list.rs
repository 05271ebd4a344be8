//! Lists of extents, linked through their first units. The type of a list says which one it is, and so
//! which links it uses: an extent may be in one list by bin and in one by age at the same time, a live
//! block in the queue of slack or in that of pinned blocks.

use crate::core::pagemap::Pagemap;
use crate::core::unit::{Links, Unit, UnitId};
use std::marker::PhantomData;

/// Which list, and where a unit keeps the links of it.
pub trait Which {
    fn links(unit: &Unit) -> &Links;
}

/// Free extents of about one length.
pub struct ByBin;
/// Free extents of one kind, the oldest first.
pub struct ByAge;
/// Live blocks with slack, the one that has it longest first.
pub struct WithSlack;
/// Live blocks whose slack is on its way back.
pub struct BeingPurged;
/// Extents that a thread of a forked child's parent was unmapping.
pub struct InFlightInParent;

impl Which for ByBin {
    fn links(unit: &Unit) -> &Links {
        &unit.near
    }
}

impl Which for ByAge {
    fn links(unit: &Unit) -> &Links {
        &unit.age
    }
}

impl Which for WithSlack {
    fn links(unit: &Unit) -> &Links {
        &unit.near
    }
}

impl Which for BeingPurged {
    fn links(unit: &Unit) -> &Links {
        &unit.near
    }
}

impl Which for InFlightInParent {
    fn links(unit: &Unit) -> &Links {
        &unit.age
    }
}

pub struct List<W> {
    /// 0: none.
    first: UnitId,
    last: UnitId,
    which: PhantomData<W>,
}

fn some(id: UnitId) -> Option<UnitId> {
    (id != 0).then_some(id)
}

impl<W: Which> List<W> {
    pub const fn new() -> Self {
        List {
            first: 0,
            last: 0,
            which: PhantomData,
        }
    }

    pub fn first(&self) -> Option<UnitId> {
        some(self.first)
    }

    /// The next extent of the list, towards its end.
    pub fn after(pagemap: &Pagemap, head: UnitId) -> Option<UnitId> {
        some(W::links(pagemap.unit(head)).next())
    }

    /// Adds the extent that begins with this unit.
    pub fn push_first(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit) {
        self.insert(pagemap, head, unit, 0, self.first);
    }

    pub fn push_last(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit) {
        self.insert(pagemap, head, unit, self.last, 0);
    }

    /// Adds it behind another; None: as the first.
    pub fn insert_after(
        &mut self,
        pagemap: &Pagemap,
        head: UnitId,
        unit: &Unit,
        elder: Option<UnitId>,
    ) {
        let next = match elder {
            Some(elder) => W::links(pagemap.unit(elder)).next(),
            None => self.first,
        };
        self.insert(pagemap, head, unit, elder.unwrap_or(0), next);
    }

    #[inline]
    fn insert(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit, prev: UnitId, next: UnitId) {
        let links = W::links(unit);
        links.set_prev(prev);
        links.set_next(next);
        if prev == 0 {
            self.first = head;
        } else {
            W::links(pagemap.unit(prev)).set_next(head);
        }
        if next == 0 {
            self.last = head;
        } else {
            W::links(pagemap.unit(next)).set_prev(head);
        }
    }

    /// Answers the one that was before it.
    #[inline]
    pub fn remove(&mut self, pagemap: &Pagemap, head: &Unit) -> Option<UnitId> {
        let links = W::links(head);
        let (prev, next) = (links.prev(), links.next());
        if prev == 0 {
            self.first = next;
        } else {
            W::links(pagemap.unit(prev)).set_next(next);
        }
        if next == 0 {
            self.last = prev;
        } else {
            W::links(pagemap.unit(next)).set_prev(prev);
        }
        some(prev)
    }
}
