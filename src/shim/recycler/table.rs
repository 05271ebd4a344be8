//! Address to unit: a two-level table in its own pages, read without a lock.

use super::unit::{Unit, UnitId, UNIT_SHIFT};
use std::sync::atomic::{AtomicPtr, Ordering};

/// One leaf describes one GiB of addresses.
const LEAF_SHIFT: u32 = 9;
const LEAF_UNITS: usize = 1 << LEAF_SHIFT;
const ADDRESS_BITS: u32 = 48;
const ROOT_ENTRIES: usize = 1 << (ADDRESS_BITS - UNIT_SHIFT - LEAF_SHIFT);

type Leaf = [Unit; LEAF_UNITS];
type Root = [AtomicPtr<Leaf>; ROOT_ENTRIES];

/// Gives zeroed memory that is never taken back, or null.
pub type Metadata<'a> = &'a dyn Fn(usize) -> *mut u8;

pub struct Table {
    root: AtomicPtr<Root>,
}

/// Stands in for a unit that is in no leaf. Only units of ours are written, and these have a leaf.
static NOWHERE: Unit = Unit::blank();

impl Table {
    pub const fn new() -> Self {
        Table {
            root: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    #[inline]
    pub fn find(&self, id: UnitId) -> Option<&'static Unit> {
        let root = self.root.load(Ordering::Acquire);
        // SAFETY: the root is null or points to a zeroed, never freed `Root` (see `ensure`).
        let root = unsafe { root.as_ref()? };
        let leaf = root
            .get((id >> LEAF_SHIFT) as usize)?
            .load(Ordering::Acquire);
        // SAFETY: a leaf is null or points to a zeroed, never freed `Leaf` (see `ensure`).
        let leaf = unsafe { leaf.as_ref()? };
        leaf.get(id as usize & (LEAF_UNITS - 1))
    }

    /// A unit of ours.
    #[inline]
    pub fn unit(&self, id: UnitId) -> &'static Unit {
        self.find(id).unwrap_or(&NOWHERE)
    }

    /// Makes entries for a range; false when there is no memory for them or no such address.
    /// Called under the recycler's lock.
    pub fn ensure(&self, first: UnitId, units: u32, metadata: Metadata) -> bool {
        let mut root = self.root.load(Ordering::Acquire);
        if root.is_null() {
            root = metadata(std::mem::size_of::<Root>()).cast();
            self.root.store(root, Ordering::Release);
        }
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
                let leaf: *mut Leaf = metadata(std::mem::size_of::<Leaf>()).cast();
                if leaf.is_null() {
                    return false;
                }
                slot.store(leaf, Ordering::Release);
            }
        }
        true
    }
}
