//! What a program did to pages of its blocks, as the model of the kernel knows it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a program may do to a page of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Advice, locks, protection: can be taken off.
    Plain,
    /// A file or shared memory in its place.
    File,
    /// Unknown to us; only a new mapping is without it.
    Lasting,
    /// Splits no mapping.
    Guard,
}

/// By page number.
#[derive(Default)]
pub struct Marks(RefCell<BTreeMap<usize, Mark>>);

impl Marks {
    pub fn put(&self, pages: Range<usize>, mark: Mark) {
        let mut marks = self.0.borrow_mut();
        for page in pages {
            // A page has at most the one that is harder to take off.
            let probe_if_stable = mark == Mark::Plain && marks.contains_key(&page);
            if !probe_if_stable {
                marks.insert(page, mark);
            }
        }
    }

    pub fn on(&self, pages: Range<usize>) -> Vec<(usize, Mark)> {
        let marks = self.0.borrow();
        marks
            .range(pages)
            .map(|(page, mark)| (*page, *mark))
            .collect()
    }

    pub fn forget(&self, pages: Range<usize>, which: impl Fn(Mark) -> bool) {
        self.0
            .borrow_mut()
            .retain(|page, mark| !pages.contains(page) || !which(*mark));
    }

    pub fn copy(&self, from: Range<usize>, to: usize) {
        for (page, mark) in self.on(from.clone()) {
            self.0.borrow_mut().insert(to + page - from.start, mark);
        }
    }

    /// No mapping ends between these pages.
    pub fn are_alike(&self, pages: Range<usize>) -> bool {
        let marks = self.0.borrow();
        let splits = |page| marks.get(&page).filter(|mark| **mark != Mark::Guard);
        let first = splits(pages.start);
        pages.clone().all(|page| splits(page) == first)
    }
}
