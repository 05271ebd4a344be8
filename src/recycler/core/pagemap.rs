//! The metadata of each unit, and a two-level table (root and leaves) that finds it by address
//! without a lock.
//!
//! Invariants: the root and a leaf are zeroed memory, published once and never freed, so a
//! reference to a unit is `'static`. Any thread may add leaves (`ensure`). A thread writes a unit's
//! metadata only under the lock of the state, or while it owns the unit's extent (`Unit`).

use crate::core::geometry::Pages;
use crate::core::unit::{Cpu, Extent, Flags, Kind, UnitId, UNIT_SHIFT};
use std::sync::atomic::{
    AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering, Ordering::Relaxed,
};

/// One leaf describes one GiB of addresses.
const LEAF_SHIFT: u32 = 9;
const LEAF_UNITS: usize = 1 << LEAF_SHIFT;
const ADDRESS_BITS: u32 = 48;
const ROOT_ENTRIES: usize = 1 << (ADDRESS_BITS - UNIT_SHIFT - LEAF_SHIFT);

/// `populated_and_cpu`: page count below this bit, CPU number above. A unit has at most 512 pages.
const CPU_SHIFT: u32 = 10;
const POPULATED_MASK: u16 = (1 << CPU_SHIFT) - 1;

/// The neighbours of an extent in a list (`extent_pool`). 0 means none.
#[derive(Default)]
pub struct Links {
    prev: AtomicU32,
    next: AtomicU32,
}

/// The metadata of one unit.
///
/// A thread owns an extent that it made `Busy` or `Purging`, and a live block that the program has
/// just passed to free or realloc. No pool contains an owned extent, so no other thread writes to
/// it, except to its flags: a thread that purges slack may pin an owned live block (`ops::slack`),
/// and the owner of an extent changes the boundary flags of the unit behind it.
///
/// Fields are atomics because `usable_size` and `free` read them without the lock. Flags of a live
/// block change with single atomic instructions.
///
/// `kind` and `len` are valid for the first and the last unit of an extent, the links only for the
/// first.
#[derive(Default)]
#[repr(C)]
pub struct Unit {
    kind: AtomicU8,
    flags: AtomicU8,
    /// The number of pages, from the start of the unit, that may be resident; in the upper bits
    /// the CPU that freed the unit last.
    populated_and_cpu: AtomicU16,
    len: AtomicU32,
    /// Of a free extent: its list of one bin. Of a live one: a queue of blocks with slack.
    pub bin_links: Links,
    pub age_links: Links,
    /// Head of a live extent: when the program allocated it. Free unit: when it was freed. Last
    /// unit of a live extent with slack: when the slack arose. (A block of one unit has one stamp
    /// for both.) Milliseconds, wrapping.
    stamp: AtomicU32,
    /// Head of a live extent: pages handed out. 0 in all other units.
    pages: AtomicU32,
}

macro_rules! field {
    ($get:ident, $set:ident, $type:ty) => {
        #[inline]
        pub fn $get(&self) -> $type {
            self.$get.load(Relaxed)
        }
        #[inline]
        pub fn $set(&self, value: $type) {
            self.$get.store(value, Relaxed)
        }
    };
}

impl Links {
    const fn blank() -> Self {
        Links {
            prev: AtomicU32::new(0),
            next: AtomicU32::new(0),
        }
    }

    field!(prev, set_prev, UnitId);
    field!(next, set_next, UnitId);
}

impl Unit {
    pub const fn blank() -> Self {
        Unit {
            kind: AtomicU8::new(0),
            flags: AtomicU8::new(0),
            populated_and_cpu: AtomicU16::new(0),
            len: AtomicU32::new(0),
            bin_links: Links::blank(),
            age_links: Links::blank(),
            stamp: AtomicU32::new(0),
            pages: AtomicU32::new(0),
        }
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.kind.load(Relaxed))
    }

    #[inline]
    pub fn set_kind(&self, kind: Kind) {
        self.kind.store(kind as u8, Relaxed);
    }

    field!(len, set_len, u32);
    field!(stamp, set_stamp, u32);

    /// Labels the first or the last unit of an extent.
    #[inline]
    pub fn label(&self, kind: Kind, len: u32) {
        self.set_kind(kind);
        self.set_len(len);
    }

    #[inline]
    pub fn populated(&self) -> Pages {
        Pages::new((self.populated_and_cpu.load(Relaxed) & POPULATED_MASK).into())
    }

    /// `pages` is at most the number of a unit's pages.
    #[inline]
    pub fn set_populated(&self, pages: Pages) {
        self.set_populated_and_cpu(pages.count() as u16, self.cpu());
    }

    #[inline]
    pub fn cpu(&self) -> Cpu {
        Cpu::new((self.populated_and_cpu.load(Relaxed) >> CPU_SHIFT).into())
    }

    #[inline]
    pub fn set_cpu(&self, cpu: Cpu) {
        self.set_populated_and_cpu(self.populated_and_cpu.load(Relaxed) & POPULATED_MASK, cpu);
    }

    fn set_populated_and_cpu(&self, populated: u16, cpu: Cpu) {
        let cpu_bits = u16::from(cpu.0) << CPU_SHIFT;
        self.populated_and_cpu.store(populated | cpu_bits, Relaxed);
    }

    #[inline]
    pub fn pages(&self) -> Pages {
        Pages::new(self.pages.load(Relaxed).into())
    }

    /// `pages` is at most the pages of the largest request (`Geometry::max_bytes`).
    #[inline]
    pub fn set_pages(&self, pages: Pages) {
        self.pages.store(pages.count() as u32, Relaxed);
    }

    /// True for the first unit of a live block. The last unit has the same kind and length, but no
    /// pages.
    #[inline]
    pub fn begins_block(&self) -> bool {
        self.kind() == Kind::Live && self.pages() != Pages::NONE
    }

    #[inline]
    pub fn flags(&self) -> Flags {
        Flags(self.flags.load(Relaxed))
    }

    #[inline]
    pub fn set_flags(&self, flags: Flags) {
        self.flags.store(flags.0, Relaxed);
    }

    /// True if the unit has at least one of these flags.
    pub fn has(&self, flags: Flags) -> bool {
        self.flags().0 & flags.0 != 0
    }

    pub fn add_flags(&self, flags: Flags) {
        self.flags.fetch_or(flags.0, Relaxed);
    }

    pub fn remove_flags(&self, flags: Flags) {
        self.flags.fetch_and(!flags.0, Relaxed);
    }
}

/// The origins come after the units, so that their pages are never faulted in unless sites are on.
#[repr(C)]
struct Leaf {
    units: [Unit; LEAF_UNITS],
    /// Of a live block's first unit: its allocation site, as `api::set_origin` got it.
    origins: [AtomicU64; LEAF_UNITS],
}
type Root = [AtomicPtr<Leaf>; ROOT_ENTRIES];

/// The source of the pagemap's own memory.
///
/// # Safety
/// `metadata` returns null, or zeroed memory of this size, aligned to words and used by no other
/// code, which stays mapped until `metadata_unused` takes it back.
pub unsafe trait Metadata {
    /// Zeroed memory, or null.
    fn metadata(&self, bytes: usize) -> *mut u8;
    /// Frees memory that `metadata` returned.
    ///
    /// # Safety
    /// `metadata` returned it, with this size, and no other thread has its address.
    unsafe fn metadata_unused(&self, start: *mut u8, bytes: usize);
}

/// The target of a slot, allocated by the first thread that needs it. Null if there is no memory.
fn publish<T>(slot: &AtomicPtr<T>, metadata: &impl Metadata) -> *mut T {
    let seen = slot.load(Ordering::Acquire);
    if !seen.is_null() {
        return seen;
    }
    let bytes = std::mem::size_of::<T>();
    let new: *mut T = metadata.metadata(bytes).cast();
    if new.is_null() {
        return new;
    }
    match slot.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => new,
        Err(published) => {
            // SAFETY: `metadata` returned it above, and it was not published.
            unsafe { metadata.metadata_unused(new.cast(), bytes) };
            published
        }
    }
}

pub struct Pagemap {
    root: AtomicPtr<Root>,
    /// All leaves are in the root's entries from `first_leaf` up to, and without, `end_of_leaves`.
    first_leaf: AtomicU32,
    end_of_leaves: AtomicU32,
}

/// The answer of `unit` for an address without a leaf. It is never written: each unit that the
/// recycler maps has a leaf.
static NO_UNIT: Unit = Unit::blank();

/// The iterator of `Pagemap::units`. It looks up each leaf once.
pub struct Units<'a> {
    pagemap: &'a Pagemap,
    here: std::slice::Iter<'static, Unit>,
    /// The first unit after `here`.
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

    /// The word that stores the allocation site of the block that begins with this unit.
    #[inline]
    pub fn origin(&self, id: UnitId) -> Option<&'static AtomicU64> {
        self.leaf(id)?.origins.get(id as usize & (LEAF_UNITS - 1))
    }

    /// The unit with this number, which the recycler has mapped at some time.
    #[inline]
    pub fn unit(&self, id: UnitId) -> &'static Unit {
        self.find(id).unwrap_or(&NO_UNIT)
    }

    /// The units of an extent. Faster than one `unit` call each.
    #[inline]
    pub fn units(&self, extent: Extent) -> Units<'_> {
        let mut units = Units {
            pagemap: self,
            here: [].iter(),
            next: extent.head,
            end: extent.end(),
        };
        if extent.len > 0 {
            units.enter_leaf();
        }
        units
    }

    /// Labels units as one extent of a kind. Does nothing for an extent of length 0.
    #[inline]
    pub fn label(&self, extent: Extent, kind: Kind) {
        if extent.len == 0 {
            return;
        }
        self.unit(extent.head).label(kind, extent.len);
        if extent.len > 1 {
            self.unit(extent.end() - 1).label(kind, extent.len);
        }
    }

    /// Sets the kind of each unit, from the last to the first: until the first one changes, a walk
    /// skips the extent as a whole.
    pub fn set_kind_of_each(&self, extent: Extent, kind: Kind) {
        for id in extent.units().rev() {
            self.unit(id).set_kind(kind);
        }
    }

    /// Records that a VMA may begin at the start and at the end of the extent. A missing boundary
    /// does no harm: the probe at free asks the kernel (`ops::attributes`).
    pub fn add_boundaries(&self, extent: Extent, boundary: Flags) {
        self.unit(extent.head).add_flags(boundary);
        if let Some(next) = self.find(extent.end()) {
            next.add_flags(boundary);
        }
    }

    /// Calls `each` for the first unit of every extent, and for every unit outside all extents.
    /// The closure returns the number of units to skip.
    pub fn walk(&self, mut each: impl FnMut(UnitId, &Unit) -> u32) {
        // SAFETY: the root is null or points to a zeroed, never freed `Root` (see `ensure`).
        let Some(root) = (unsafe { self.root.load(Ordering::Acquire).as_ref() }) else {
            return;
        };
        let first = self.first_leaf.load(Relaxed);
        let end = self.end_of_leaves.load(Relaxed);
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

    /// Adds the leaves of a range. False if there is no memory for them, or no such address. Does
    /// not need the lock: of two threads that add the same leaf, one frees its copy.
    pub fn ensure(&self, first: UnitId, units: u32, metadata: &impl Metadata) -> bool {
        let root = publish(&self.root, metadata);
        // SAFETY: the root is null or points to a zeroed, never freed `Root`.
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
                self.first_leaf.fetch_min(index, Relaxed);
                self.end_of_leaves.fetch_max(index + 1, Relaxed);
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
    fn iteration_over_an_extent_matches_single_unit_lookups() {
        let system = ModelKernel::default();
        let pagemap = Pagemap::new();
        let boundary = 3 << LEAF_SHIFT;
        assert!(pagemap.ensure(boundary - 4, 8 + LEAF_UNITS as u32, &system));
        for (head, len) in [
            (boundary - 4, 0),
            (boundary - 4, 3),
            (boundary - 4, 4),
            (boundary - 1, 2),
            (boundary, 4),
            (boundary - 4, 8 + LEAF_UNITS as u32),
        ] {
            let extent = Extent::new(head, len);
            let each = extent.units().map(|id| pagemap.unit(id));
            let same = |(a, b): (&Unit, &Unit)| std::ptr::eq(a, b);
            assert_eq!(pagemap.units(extent).count(), len as usize);
            assert!(pagemap.units(extent).zip(each).all(same), "{extent:?}");
        }
    }

    #[test]
    fn an_extent_without_a_leaf_has_no_units() {
        assert_eq!(Pagemap::new().units(Extent::new(7, 2)).count(), 0);
    }
}
