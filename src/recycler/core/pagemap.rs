//! Address to unit: a two-level pagemap in its own pages, read without a lock.

use crate::core::unit::{Kind, Unit, UnitId, UNIT_SHIFT};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// One leaf describes one GiB of addresses.
const LEAF_SHIFT: u32 = 9;
const LEAF_UNITS: usize = 1 << LEAF_SHIFT;
const ADDRESS_BITS: u32 = 48;
const ROOT_ENTRIES: usize = 1 << (ADDRESS_BITS - UNIT_SHIFT - LEAF_SHIFT);

/// The origins lie behind the units: where nobody writes them, their page is never touched.
#[repr(C)]
struct Leaf {
    units: [Unit; LEAF_UNITS],
    /// Of a live block's first unit: who allocated it, in the caller's own code.
    origins: [AtomicU64; LEAF_UNITS],
}
type Root = [AtomicPtr<Leaf>; ROOT_ENTRIES];

/// Where the pagemap's own memory comes from.
///
/// # Safety
/// `metadata` answers null, or memory of this size that is zero, aligned to words, nobody else's, and there until
/// `metadata_unused` takes it.
pub unsafe trait Metadata {
    /// Zeroed memory, or null.
    fn metadata(&self, bytes: usize) -> *mut u8;
    /// Takes memory back.
    ///
    /// # Safety
    /// `metadata` gave it, in this size, and nobody has seen it.
    unsafe fn metadata_unused(&self, start: *mut u8, bytes: usize);
}

/// What a slot points to; made by the first thread that asks, and null when there is no memory.
fn publish<T>(slot: &AtomicPtr<T>, metadata: &impl Metadata) -> *mut T {
    let seen = slot.load(Ordering::Acquire);
    if !seen.is_null() {
        return seen;
    }
    let bytes = std::mem::size_of::<T>();
    let made: *mut T = metadata.metadata(bytes).cast();
    if made.is_null() {
        return made;
    }
    match slot.compare_exchange(seen, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(theirs) => {
            // SAFETY: given above, and another thread's stands in the slot instead.
            unsafe { metadata.metadata_unused(made.cast(), bytes) };
            theirs
        }
    }
}

pub struct Pagemap {
    root: AtomicPtr<Root>,
    /// All leaves lie in these entries of the root: from the first up to, without, the last.
    first_leaf: AtomicU32,
    end_of_leaves: AtomicU32,
}

/// Stands in for a unit that is in no leaf. Only units of ours are written, and these have a leaf.
static NOWHERE: Unit = Unit::blank();

/// What `Pagemap::units` goes through: leaf by leaf.
pub struct Units<'a> {
    pagemap: &'a Pagemap,
    here: std::slice::Iter<'static, Unit>,
    /// The first that is not in `here`, and the first that is not asked for.
    next: UnitId,
    end: UnitId,
}

impl Units<'_> {
    #[inline]
    fn enter_leaf(&mut self) {
        let from = self.next as usize & (LEAF_UNITS - 1);
        let to = (from + (self.end - self.next) as usize).min(LEAF_UNITS);
        let leaf = self.pagemap.leaf(self.next);
        if let Some(units) = leaf.and_then(|leaf| leaf.units.get(from..to)) {
            self.here = units.iter();
            self.next += (to - from) as u32;
        }
    }

    #[cold]
    fn next_leaf(&mut self) -> Option<&'static Unit> {
        self.enter_leaf();
        self.here.next()
    }
}

impl Iterator for Units<'_> {
    type Item = &'static Unit;

    #[inline]
    fn next(&mut self) -> Option<&'static Unit> {
        match self.here.next() {
            None if self.next < self.end => self.next_leaf(),
            unit => unit,
        }
    }
}

impl Pagemap {
    pub const fn new() -> Self {
        Pagemap {
            root: AtomicPtr::new(std::ptr::null_mut()),
            first_leaf: AtomicU32::new(u32::MAX),
            end_of_leaves: AtomicU32::new(0),
        }
    }

    #[inline]
    fn leaf(&self, id: UnitId) -> Option<&'static Leaf> {
        let root = self.root.load(Ordering::Acquire);
        // SAFETY: the root is null or points to a zeroed, never freed `Root` (see `ensure`).
        let root = unsafe { root.as_ref()? };
        let leaf = root
            .get((id >> LEAF_SHIFT) as usize)?
            .load(Ordering::Acquire);
        // SAFETY: a leaf is null or points to a zeroed, never freed `Leaf` (see `ensure`).
        unsafe { leaf.as_ref() }
    }

    #[inline]
    pub fn find(&self, id: UnitId) -> Option<&'static Unit> {
        self.leaf(id)?.units.get(id as usize & (LEAF_UNITS - 1))
    }

    /// Who allocated the block that begins with this unit, and the place to write it.
    #[inline]
    pub fn origin(&self, id: UnitId) -> Option<&'static AtomicU64> {
        self.leaf(id)?.origins.get(id as usize & (LEAF_UNITS - 1))
    }

    /// A unit of ours.
    #[inline]
    pub fn unit(&self, id: UnitId) -> &'static Unit {
        self.find(id).unwrap_or(&NOWHERE)
    }

    /// Neighbouring units of ours. To look for each of them would cost more than what is done with it.
    #[inline]
    pub fn units(&self, head: UnitId, len: u32) -> Units<'_> {
        let mut units = Units {
            pagemap: self,
            here: [].iter(),
            next: head,
            end: head + len,
        };
        if len > 0 {
            units.enter_leaf();
        }
        units
    }

    /// Labels units as one extent.
    #[inline]
    pub fn label(&self, head: UnitId, len: u32, kind: Kind) {
        if len == 0 {
            return;
        }
        let first = self.unit(head);
        first.label(kind, len);
        if len > 1 {
            self.unit(head + len - 1).label(kind, len);
        }
    }

    /// Gives every unit a kind. The first last: until then a walk passes over the extent as a whole.
    pub fn mark(&self, head: UnitId, len: u32, kind: Kind) {
        for id in (head..head + len).rev() {
            self.unit(id).set_kind(kind);
        }
    }

    /// Calls `each` for the first unit of every extent, and for every unit that is in none. It answers how
    /// many units to go on.
    pub fn walk(&self, mut each: impl FnMut(UnitId, &Unit) -> u32) {
        // SAFETY: the root is null or points to a zeroed, never freed `Root` (see `ensure`).
        let Some(root) = (unsafe { self.root.load(Ordering::Acquire).as_ref() }) else {
            return;
        };
        let first = self.first_leaf.load(Ordering::Relaxed);
        let end = self.end_of_leaves.load(Ordering::Relaxed);
        let mut next = 0;
        for (index, slot) in root
            .iter()
            .enumerate()
            .take(end as usize)
            .skip(first as usize)
        {
            // SAFETY: a leaf is null or points to a zeroed, never freed `Leaf` (see `ensure`).
            let Some(leaf) = (unsafe { slot.load(Ordering::Acquire).as_ref() }) else {
                continue;
            };
            let base = (index as UnitId) << LEAF_SHIFT;
            next = next.max(base);
            while let Some(unit) = leaf.units.get((next - base) as usize) {
                next += each(next, unit).max(1);
            }
        }
    }

    /// Makes entries for a range; false when there is no memory for them or no such address.
    /// Called without the recycler's lock: threads that make the same entry agree on one of them.
    pub fn ensure(&self, first: UnitId, units: u32, metadata: &impl Metadata) -> bool {
        let root = publish(&self.root, metadata);
        // SAFETY: null, or zeroed memory of a Root's size that is never freed; zero is a valid Root.
        let Some(root) = (unsafe { root.as_ref() }) else {
            return false;
        };
        let Some(last) = first.checked_add(units.saturating_sub(1)) else {
            return false;
        };
        for index in first >> LEAF_SHIFT..=last >> LEAF_SHIFT {
            let Some(slot) = root.get(index as usize) else {
                return false;
            };
            if slot.load(Ordering::Acquire).is_null() {
                if publish(slot, metadata).is_null() {
                    return false;
                }
                self.first_leaf.fetch_min(index, Ordering::Relaxed);
                self.end_of_leaves.fetch_max(index + 1, Ordering::Relaxed);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::model::ModelKernel;

    #[test]
    fn the_units_of_an_extent_are_those_that_a_look_for_each_finds() {
        let system = ModelKernel::default();
        let pagemap = Pagemap::new();
        let border = 3 << LEAF_SHIFT;
        assert!(pagemap.ensure(border - 4, 8 + LEAF_UNITS as u32, &system));
        for (head, len) in [
            (border - 4, 0),
            (border - 4, 3),
            (border - 4, 4),
            (border - 1, 2),
            (border, 4),
            (border - 4, 8 + LEAF_UNITS as u32),
        ] {
            let each = (head..head + len).map(|id| pagemap.unit(id));
            let same = |(a, b): (&Unit, &Unit)| std::ptr::eq(a, b);
            assert_eq!(pagemap.units(head, len).count(), len as usize);
            assert!(
                pagemap.units(head, len).zip(each).all(same),
                "{len} from {head}"
            );
        }
    }

    #[test]
    fn where_no_leaf_is_there_are_no_units() {
        assert_eq!(Pagemap::new().units(7, 2).count(), 0);
    }
}
