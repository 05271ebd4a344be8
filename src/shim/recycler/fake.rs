//! A model of the kernel's side: mappings, resident pages with contents, and refusals on demand.

use super::map::{Map, Shift};
use super::marks::{Mark, Marks};
use super::pagemap::Metadata;
use super::unit::UNIT_BYTES;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

pub const PAGE: usize = 1 << 17;
const PAGES_PER_UNIT: usize = UNIT_BYTES / PAGE;
const LOWEST: usize = 64 << 40;

/// Which calls fail: one bit each, consumed in order.
#[derive(Default)]
pub struct Refusals {
    pub bits: Cell<u64>,
}

impl Refusals {
    fn next(&self) -> bool {
        let bits = self.bits.get();
        self.bits.set(bits >> 1);
        bits & 1 != 0
    }
}

fn pages_of(address: usize, bytes: usize) -> Range<usize> {
    address / PAGE..(address + bytes).div_ceil(PAGE)
}

#[derive(Default)]
pub struct Fake {
    /// Mapped units; the value tells mappings apart: equal and adjacent means one mapping.
    mapped: RefCell<BTreeMap<usize, u32>>,
    /// Resident pages and what they hold; 0 is zero.
    pages: RefCell<BTreeMap<usize, u64>>,
    /// What the program did to pages.
    marks: Marks,
    next: Cell<usize>,
    pub now: Cell<u32>,
    pub refusals: Refusals,
    /// Old kernels: no moves across mappings, no `MREMAP_DONTUNMAP`.
    pub old_kernel: Cell<bool>,
    pub peak_resident: Cell<usize>,
    /// None: any number.
    pub mappings_allowed: Cell<Option<u32>>,
}

impl Fake {
    fn units(address: usize, bytes: usize) -> impl Iterator<Item = usize> {
        assert_eq!(
            (address % UNIT_BYTES, bytes % UNIT_BYTES),
            (0, 0),
            "not in units"
        );
        assert!(bytes > 0, "empty range");
        (address / UNIT_BYTES)..(address + bytes) / UNIT_BYTES
    }

    fn assert_mapped(&self, address: usize, bytes: usize) {
        let mapped = self.mapped.borrow();
        for unit in address / UNIT_BYTES..(address + bytes).div_ceil(UNIT_BYTES) {
            assert!(mapped.contains_key(&unit), "unit {unit:#x} is not mapped");
        }
    }

    fn map(&self, address: usize, bytes: usize) {
        let label = (self.next.get() / UNIT_BYTES) as u32;
        self.marks.forget(pages_of(address, bytes), |_| true);
        for unit in Self::units(address, bytes) {
            assert!(
                self.mapped.borrow_mut().insert(unit, label).is_none(),
                "mapped twice"
            );
        }
    }

    fn drop_pages(&self, address: usize, bytes: usize) {
        let mut pages = self.pages.borrow_mut();
        for page in address / PAGE..(address + bytes) / PAGE {
            pages.remove(&page);
        }
    }

    /// The program writes `value` to every page of its block.
    pub fn write(&self, address: usize, bytes: usize, value: u64) {
        self.assert_mapped(address, bytes);
        for page in address / PAGE..(address + bytes).div_ceil(PAGE) {
            self.pages.borrow_mut().insert(page, value);
        }
        self.peak_resident
            .set(self.peak_resident.get().max(self.resident()));
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

    /// The program marks pages.
    pub fn mark(&self, address: usize, bytes: usize, mark: Mark) {
        self.assert_mapped(address, bytes);
        self.marks.put(pages_of(address, bytes), mark);
    }

    /// The marks on a block, first and last page included.
    pub fn marks_on(&self, address: usize, bytes: usize) -> Vec<(usize, Mark)> {
        self.marks.on(pages_of(address, bytes))
    }

    pub fn resident(&self) -> usize {
        self.pages.borrow().len()
    }

    pub fn mapped_units(&self) -> usize {
        self.mapped.borrow().len()
    }

    fn has_one_label(&self, address: usize, bytes: usize) -> bool {
        let mapped = self.mapped.borrow();
        let first = mapped.get(&(address / UNIT_BYTES));
        let one = first.is_some()
            && (address / UNIT_BYTES..(address + bytes).div_ceil(UNIT_BYTES))
                .all(|unit| mapped.get(&unit) == first);
        one && self.marks.are_alike(pages_of(address, bytes))
    }
}

impl Map for Fake {
    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize> {
        if self.refusals.next() {
            return None;
        }
        let free = |start: usize| {
            Self::units(start, bytes).all(|unit| !self.mapped.borrow().contains_key(&unit))
        };
        self.next
            .set(self.next.get().max(LOWEST) + bytes + UNIT_BYTES);
        let start = if hint != 0 && free(hint) {
            hint
        } else {
            self.next.get() - bytes
        };
        self.map(start, bytes);
        Some(start)
    }

    fn reserve_at(&self, address: usize, bytes: usize) -> bool {
        let taken = Self::units(address, bytes).any(|u| self.mapped.borrow().contains_key(&u));
        if taken || self.refusals.next() {
            return false;
        }
        self.map(address, bytes);
        true
    }

    fn renew(&self, address: usize, bytes: usize) -> bool {
        if self.refusals.next() {
            return false;
        }
        for unit in Self::units(address, bytes) {
            self.mapped.borrow_mut().remove(&unit);
        }
        self.drop_pages(address, bytes);
        self.map(address, bytes);
        true
    }

    fn release(&self, address: usize, bytes: usize) -> bool {
        self.assert_mapped(address, bytes);
        if self.refusals.next() {
            return false;
        }
        for unit in Self::units(address, bytes) {
            self.mapped.borrow_mut().remove(&unit);
        }
        self.marks.forget(pages_of(address, bytes), |_| true);
        self.drop_pages(address, bytes);
        true
    }

    fn discard(&self, address: usize, bytes: usize) -> bool {
        self.assert_mapped(address, bytes);
        if self.refusals.next() {
            return false;
        }
        self.drop_pages(address, bytes);
        true
    }

    fn shift(&self, from: usize, to: usize, bytes: usize) -> Shift {
        self.assert_mapped(from, bytes);
        self.assert_mapped(to, bytes);
        let page = |address: usize| address / PAGE;
        let there = self
            .pages
            .borrow()
            .range(page(to)..page(to + bytes))
            .next()
            .is_some();
        assert!(!there, "moved onto pages");
        if self.old_kernel.get() && !self.has_one_label(from, bytes) {
            return Shift::Refused;
        }
        if self.refusals.next() {
            // Two races in one call, a lost target and a lost source, are not played through.
            if self.old_kernel.get() || !self.refusals.next() {
                return Shift::Refused;
            }
            for unit in Self::units(to, bytes) {
                self.mapped.borrow_mut().remove(&unit);
            }
            return Shift::TargetLost;
        }
        let mut pages = self.pages.borrow_mut();
        for index in 0..bytes / PAGE {
            if let Some(value) = pages.remove(&(page(from) + index)) {
                pages.insert(page(to) + index, value);
            }
        }
        self.marks.forget(pages_of(to, bytes), |_| true);
        self.marks.copy(pages_of(from, bytes), page(to));
        self.marks
            .forget(pages_of(from, bytes), |mark| mark == Mark::Guard);
        for (from, to) in Self::units(from, bytes).zip(Self::units(to, bytes)) {
            let label = self.mapped.borrow()[&from];
            self.mapped.borrow_mut().insert(to, label);
        }
        if self.old_kernel.get() && self.refusals.next() {
            for unit in Self::units(from, bytes) {
                self.mapped.borrow_mut().remove(&unit);
            }
            return Shift::DoneSourceGone;
        }
        Shift::Done
    }

    fn mappings_allowed(&self) -> u32 {
        self.mappings_allowed.get().unwrap_or(u32::MAX)
    }

    fn has_huge_unasked(&self) -> bool {
        true
    }

    fn advise_huge(&self, address: usize, bytes: usize) {
        self.assert_mapped(address, bytes);
    }

    fn is_one_mapping(&self, address: usize, bytes: usize) -> bool {
        self.has_one_label(address, bytes)
    }

    fn reset_attributes(&self, address: usize, bytes: usize) -> bool {
        self.assert_mapped(address, bytes);
        self.marks
            .forget(pages_of(address, bytes), |mark| mark == Mark::Plain);
        !self.refusals.next()
    }

    fn is_private_anonymous(&self, address: usize, bytes: usize) -> bool {
        let marks = self.marks_on(address, bytes);
        marks.iter().all(|(_, mark)| *mark != Mark::File)
    }

    fn remove_guards(&self, address: usize, bytes: usize) {
        self.assert_mapped(address, bytes);
        self.marks
            .forget(pages_of(address, bytes), |mark| mark == Mark::Guard);
    }

    fn zero(&self, address: usize, bytes: usize) {
        self.assert_mapped(address, bytes);
        for page in address / PAGE..(address + bytes) / PAGE {
            if let Some(value) = self.pages.borrow_mut().get_mut(&page) {
                *value = 0;
            }
        }
    }

    fn copy(&self, from: usize, to: usize, bytes: usize) {
        self.assert_mapped(from, bytes);
        self.assert_mapped(to, bytes);
        let mut pages = self.pages.borrow_mut();
        for index in 0..bytes.div_ceil(PAGE) {
            if let Some(value) = pages.get(&(from / PAGE + index)).copied() {
                pages.insert(to / PAGE + index, value);
            }
        }
    }

    fn now_ms(&self) -> u32 {
        self.now.get()
    }
}

impl Metadata for Fake {
    fn metadata(&self, bytes: usize) -> *mut u8 {
        // Leaked on purpose: the real one is never taken back either.
        Box::leak(vec![0u64; bytes / 8].into_boxed_slice())
            .as_mut_ptr()
            .cast()
    }

    fn metadata_unused(&self, _start: *mut u8, _bytes: usize) {}
}

const _: () = assert!(PAGES_PER_UNIT == 16);
