//! Doubly linked lists of extents. The links are stored in the first unit of each extent.
//!
//! The type of a list selects the links that it uses. A free extent is in one list by bin and in
//! one by age at the same time. A live block is in `WithSlack` or in `BeingPurged`, or in neither.

use crate::core::pagemap::Pagemap;
use crate::core::unit::{Links, Unit, UnitId};
use std::marker::PhantomData;

/// A kind of list: selects the links in a unit.
pub trait ListKind {
    fn links(unit: &Unit) -> &Links;
}

/// Free extents of one bin.
pub struct ByBin;
/// Free extents of one kind, the oldest first.
pub struct ByAge;
/// Live blocks with slack, the longest unused slack first.
pub struct WithSlack;
/// Live blocks whose slack a thread is returning to the system.
pub struct BeingPurged;
/// In a forked child: extents that a thread of the parent was unmapping.
pub struct InFlightInParent;

impl ListKind for ByBin {
    fn links(unit: &Unit) -> &Links {
        &unit.bin_links
    }
}

impl ListKind for ByAge {
    fn links(unit: &Unit) -> &Links {
        &unit.age_links
    }
}

impl ListKind for WithSlack {
    fn links(unit: &Unit) -> &Links {
        &unit.bin_links
    }
}

impl ListKind for BeingPurged {
    fn links(unit: &Unit) -> &Links {
        &unit.bin_links
    }
}

impl ListKind for InFlightInParent {
    fn links(unit: &Unit) -> &Links {
        &unit.age_links
    }
}

pub struct List<K> {
    /// 0: none.
    first: UnitId,
    last: UnitId,
    kind: PhantomData<K>,
}

fn some(id: UnitId) -> Option<UnitId> {
    (id != 0).then_some(id)
}

impl<K: ListKind> List<K> {
    pub const fn new() -> Self {
        List {
            first: 0,
            last: 0,
            kind: PhantomData,
        }
    }

    pub fn first(&self) -> Option<UnitId> {
        some(self.first)
    }

    /// The extent after `head` in the list.
    pub fn after(pagemap: &Pagemap, head: UnitId) -> Option<UnitId> {
        some(K::links(pagemap.unit(head)).next())
    }

    /// Adds the extent whose first unit is `unit`, with the number `head`.
    pub fn push_first(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit) {
        self.insert(pagemap, head, unit, 0, self.first);
    }

    pub fn push_last(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit) {
        self.insert(pagemap, head, unit, self.last, 0);
    }

    /// Adds it after `previous`, or as the first if that is `None`.
    pub fn insert_after(
        &mut self,
        pagemap: &Pagemap,
        head: UnitId,
        unit: &Unit,
        previous: Option<UnitId>,
    ) {
        let next = match previous {
            Some(previous) => K::links(pagemap.unit(previous)).next(),
            None => self.first,
        };
        self.insert(pagemap, head, unit, previous.unwrap_or(0), next);
    }

    #[inline]
    fn insert(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit, prev: UnitId, next: UnitId) {
        let links = K::links(unit);
        links.set_prev(prev);
        links.set_next(next);
        if prev == 0 {
            self.first = head;
        } else {
            K::links(pagemap.unit(prev)).set_next(head);
        }
        if next == 0 {
            self.last = head;
        } else {
            K::links(pagemap.unit(next)).set_prev(head);
        }
    }

    /// Returns the extent that was before it.
    #[inline]
    pub fn remove(&mut self, pagemap: &Pagemap, head: &Unit) -> Option<UnitId> {
        let links = K::links(head);
        let (prev, next) = (links.prev(), links.next());
        if prev == 0 {
            self.first = next;
        } else {
            K::links(pagemap.unit(prev)).set_next(next);
        }
        if next == 0 {
            self.last = prev;
        } else {
            K::links(pagemap.unit(next)).set_prev(prev);
        }
        some(prev)
    }
}
