//! The changes that a program makes to the VMAs of its blocks: advice, locks, protection, mapped
//! files, guards. The model kernel records them by page.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// A change that a program makes to the VMA of a page in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmaChange {
    /// Advice, locks and protection, which `reset_attributes` removes.
    Resettable,
    /// A mapped file or shared memory, which `reset_attributes` reports.
    File,
    /// An attribute that `reset_attributes` does not know. Only a fresh mapping removes it.
    Permanent,
    /// A guard region, which does not split a VMA.
    Guard,
}

/// The change of each page, by page number.
#[derive(Default)]
pub struct VmaChanges(RefCell<BTreeMap<usize, VmaChange>>);

impl VmaChanges {
    pub fn put(&self, pages: Range<usize>, change: VmaChange) {
        let mut changes = self.0.borrow_mut();
        for page in pages {
            // A page has one change; the one that is harder to remove stays.
            let keeps_harder = change == VmaChange::Resettable && changes.contains_key(&page);
            if !keeps_harder {
                changes.insert(page, change);
            }
        }
    }

    pub fn on(&self, pages: Range<usize>) -> Vec<(usize, VmaChange)> {
        let changes = self.0.borrow();
        changes
            .range(pages)
            .map(|(page, change)| (*page, *change))
            .collect()
    }

    pub fn forget(&self, pages: Range<usize>, which: impl Fn(VmaChange) -> bool) {
        self.0
            .borrow_mut()
            .retain(|page, change| !pages.contains(page) || !which(*change));
    }

    pub fn copy(&self, from: Range<usize>, to: usize) {
        for (page, change) in self.on(from.clone()) {
            self.0.borrow_mut().insert(to + page - from.start, change);
        }
    }

    /// True if no change splits the VMA of these pages.
    pub fn are_in_one_vma(&self, pages: Range<usize>) -> bool {
        let changes = self.0.borrow();
        let splits = |page| {
            changes
                .get(&page)
                .filter(|change| **change != VmaChange::Guard)
        };
        let first = splits(pages.start);
        pages.clone().all(|page| splits(page) == first)
    }
}
