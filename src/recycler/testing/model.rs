//! The model kernel: mappings, resident pages with their contents, and the changes that a program
//! makes to its VMAs. `model_vm.rs` implements the recycler's system calls on it.

use crate::core::pagemap::Metadata;
use crate::core::unit::UNIT_BYTES;
use crate::testing::vma_changes::{VmaChange, VmaChanges};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

pub const PAGE: usize = 1 << 17;
const PAGES_PER_UNIT: usize = UNIT_BYTES / PAGE;
pub const LOWEST: usize = 64 << 40;

/// The calls that fail: one bit for each call, consumed in order.
#[derive(Default)]
pub struct Refusals {
    pub bits: Cell<u64>,
}

impl Refusals {
    pub fn next(&self) -> bool {
        let bits = self.bits.get();
        self.bits.set(bits >> 1);
        bits & 1 != 0
    }
}

pub fn pages_of(address: usize, bytes: usize) -> Range<usize> {
    address / PAGE..(address + bytes).div_ceil(PAGE)
}

#[derive(Default)]
pub struct ModelKernel {
    /// Mapped units and the distance that each was moved. The kernel merges neighbours with equal
    /// distances into one VMA.
    pub mapped: RefCell<BTreeMap<usize, isize>>,
    /// The page before the first block, which belongs to no unit.
    pub reference_page: Cell<Option<usize>>,
    /// The contents of each resident page; 0 is a zero page.
    pub pages: RefCell<BTreeMap<usize, u64>>,
    /// The changes that the program made to its VMAs.
    pub vma_changes: VmaChanges,
    /// The end of the last mapping that was placed without a hint.
    pub next: Cell<usize>,
    pub now: Cell<u32>,
    pub cpu: Cell<u32>,
    /// The number of yields.
    pub yields: Cell<u32>,
    /// Runs at each yield.
    pub at_yield: RefCell<Option<Box<dyn Fn()>>>,
    /// The number of yields before the last removal of guards.
    pub yields_before_guards: Cell<u32>,
    pub refusals: Refusals,
    /// Old kernels do not move pages across VMAs and have no `MREMAP_DONTUNMAP`.
    pub old_kernel: Cell<bool>,
    pub peak_resident: Cell<usize>,
    /// The limit of VMAs. None: no limit.
    pub mappings_allowed: Cell<Option<u32>>,
    /// The limit of mapped units. The model reports it, but does not refuse a mapping for it.
    pub units_allowed: Cell<Option<usize>>,
    /// Bytes that the system may drop. The model keeps them.
    pub offered: Cell<usize>,
    /// True after a request for huge pages.
    pub advised_huge: Cell<bool>,
    /// The memory of the pagemap, freed with the model.
    pub metadata: RefCell<Vec<*mut [u64]>>,
    /// The number of pages that one fault populates; 0 means 1.
    pub folio_pages: Cell<usize>,
    /// Returns true if the recycler's lock is free.
    pub lock_is_free: RefCell<Option<Box<dyn Fn() -> bool>>>,
}

impl Drop for ModelKernel {
    fn drop(&mut self) {
        for memory in self.metadata.take() {
            // SAFETY: `metadata` leaked this box, and no reader of the pagemap outlives this model.
            drop(unsafe { Box::from_raw(memory) });
        }
    }
}

impl ModelKernel {
    /// Makes each later call assert that the lock of the recycler is free.
    pub fn watch_lock(&self, is_free: impl Fn() -> bool + 'static) {
        *self.lock_is_free.borrow_mut() = Some(Box::new(is_free));
    }

    /// Asserts that no lock is held across a system call.
    pub fn assert_unlocked(&self) {
        let is_free = self.lock_is_free.borrow();
        assert!(
            is_free.as_ref().is_none_or(|is_free| is_free()),
            "a system call under the lock"
        );
    }

    pub fn units(address: usize, bytes: usize) -> impl Iterator<Item = usize> {
        assert_eq!(
            (address % UNIT_BYTES, bytes % UNIT_BYTES),
            (0, 0),
            "the range is not whole units"
        );
        assert!(bytes > 0, "the range is empty");
        (address / UNIT_BYTES)..(address + bytes) / UNIT_BYTES
    }

    pub fn assert_mapped(&self, address: usize, bytes: usize) {
        let mapped = self.mapped.borrow();
        for unit in address / UNIT_BYTES..(address + bytes).div_ceil(UNIT_BYTES) {
            assert!(mapped.contains_key(&unit), "unit {unit:#x} is not mapped");
        }
    }

    pub fn map(&self, address: usize, bytes: usize) {
        self.vma_changes.forget(pages_of(address, bytes), |_| true);
        for unit in Self::units(address, bytes) {
            assert!(
                self.mapped.borrow_mut().insert(unit, 0).is_none(),
                "unit {unit:#x} is already mapped"
            );
        }
    }

    pub fn drop_pages(&self, address: usize, bytes: usize) {
        let mut pages = self.pages.borrow_mut();
        for page in address / PAGE..(address + bytes) / PAGE {
            pages.remove(&page);
        }
    }

    /// The program writes `value` to every page of its block.
    pub fn write(&self, address: usize, bytes: usize, value: u64) {
        self.assert_mapped(address, bytes);
        for page in address / PAGE..(address + bytes).div_ceil(PAGE) {
            self.fault(page);
            self.pages.borrow_mut().insert(page, value);
        }
        self.peak_resident
            .set(self.peak_resident.get().max(self.resident()));
    }

    /// Populates the folio of a page with zero pages, unless one of its pages is resident.
    pub fn fault(&self, page: usize) {
        let count = self.folio_pages.get().max(1);
        let folio = page / count * count..(page / count + 1) * count;
        let mut pages = self.pages.borrow_mut();
        if pages.range(folio.clone()).next().is_none() {
            pages.extend(folio.map(|page| (page, 0)));
        }
    }

    /// The program reads a page of its block.
    pub fn read(&self, address: usize) -> u64 {
        self.assert_mapped(address, 1);
        self.pages
            .borrow()
            .get(&(address / PAGE))
            .copied()
            .unwrap_or(0)
    }

    /// The program changes the VMA of these pages.
    pub fn change_vma(&self, address: usize, bytes: usize, change: VmaChange) {
        self.assert_mapped(address, bytes);
        self.vma_changes.put(pages_of(address, bytes), change);
    }

    /// The changes on the pages of a block.
    pub fn vma_changes_on(&self, address: usize, bytes: usize) -> Vec<(usize, VmaChange)> {
        self.vma_changes.on(pages_of(address, bytes))
    }

    pub fn resident(&self) -> usize {
        self.pages.borrow().len()
    }

    pub fn mapped_units(&self) -> usize {
        self.mapped.borrow().len()
    }

    /// The distance that the page of a unit was moved: its VMA. None: it is not mapped.
    pub fn moved_by(&self, unit: usize) -> Option<isize> {
        let reference_page = self
            .reference_page
            .get()
            .filter(|page| page / UNIT_BYTES == unit);
        let moved = self.mapped.borrow().get(&unit).copied();
        moved.or_else(|| reference_page.map(|_| 0))
    }

    pub fn are_one_vma(&self, address: usize, bytes: usize) -> bool {
        let first = self.moved_by(address / UNIT_BYTES);
        let mut units = address / UNIT_BYTES..(address + bytes).div_ceil(UNIT_BYTES);
        let joined = first.is_some() && units.all(|unit| self.moved_by(unit) == first);
        joined && self.vma_changes.are_in_one_vma(pages_of(address, bytes))
    }
}

// SAFETY: the memory is zeroed, aligned to 8 bytes, and not freed before this model.
unsafe impl Metadata for ModelKernel {
    fn metadata(&self, bytes: usize) -> *mut u8 {
        self.assert_unlocked();
        let memory = Box::leak(vec![0u64; bytes / 8].into_boxed_slice());
        self.metadata.borrow_mut().push(memory);
        memory.as_mut_ptr().cast()
    }

    unsafe fn metadata_unused(&self, _start: *mut u8, _bytes: usize) {}
}

const _: () = assert!(PAGES_PER_UNIT == 16);
