//! Learning how long the program's pauses are (`FLARENA_DECAY_MS=auto`): pages given back by age and faulted in again
//! soon after were not idle, they waited for the next round.
//!
//! To hold a page through a short pause is cheaper than to give it back and to clear it again; to hold it through a long one
//! keeps it from everybody else. So two such pauses in a row make the decay a little longer than they were, up to a
//! bound. A pause that outlasts the bound was idle, and whoever trims needs the memory: then the set time holds again.
//! A few pages tell nothing. What is learnt says when memory goes back, never how much may be held: that is the budget's.

use crate::core::amount::Pages;
use crate::policy::age::is_ripe;
use flarena_shared::defaults::DECAY_AUTO_MOST_MS;

/// A pause that ends later was idle; and the longest decay that is learnt.
pub const MOST_MS: u32 = DECAY_AUTO_MOST_MS;
/// Less than this share of the peak tells nothing of the program's rhythm.
const TELLING_SHARE: u64 = 8;
/// It was not idle when at least this share of what was given back is faulted in again.
const MISSED_SHARE: u64 = 2;
/// The decay is longer than the pause by this share: no pause is quite like the one before.
const MARGIN_SHARE: u32 = 4;

#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    learns: bool,
    learnt_ms: u32,
    /// How long the pause before was, if it was not idle; else 0.
    before_ms: u32,
    /// Of the pause that is under way: given back by age, and faulted in since.
    returned: Pages,
    missed: Pages,
    /// When what was given back was last used, on average.
    last_use_ms: u32,
}

impl Pauses {
    pub const fn new(learns: bool) -> Self {
        Pauses {
            learns,
            learnt_ms: 0,
            before_ms: 0,
            returned: Pages::NONE,
            missed: Pages::NONE,
            last_use_ms: 0,
        }
    }

    /// How long unused pages are kept, where `set_ms` is what was set.
    pub fn decay_ms(&self, set_ms: u32) -> u32 {
        set_ms.max(self.learnt_ms)
    }

    /// Books pages that went back because of their age.
    pub fn note_returned(&mut self, pages: Pages, last_use_ms: u32) {
        if !self.learns || pages == Pages::NONE {
            return;
        }
        if self.returned == Pages::NONE {
            self.last_use_ms = last_use_ms;
        }
        self.returned += pages;
        let later_ms = i64::from(last_use_ms.wrapping_sub(self.last_use_ms) as i32);
        let weighed = later_ms.saturating_mul(pages.count() as i64);
        let on_average_ms = weighed / self.returned.count() as i64;
        self.last_use_ms = self.last_use_ms.wrapping_add(on_average_ms as u32);
    }

    /// Books pages that were, or are about to be, faulted in.
    #[inline]
    pub fn note_fresh(&mut self, now_ms: u32, pages: Pages, peak: Pages) {
        if self.returned > Pages::NONE {
            self.miss(now_ms, pages, peak);
        }
    }

    fn miss(&mut self, now_ms: u32, pages: Pages, peak: Pages) {
        self.look(now_ms, peak);
        if self.returned == Pages::NONE {
            return;
        }
        self.missed += pages;
        if self.missed < self.returned / MISSED_SHARE {
            return;
        }
        let pause_ms = now_ms.wrapping_sub(self.last_use_ms).min(MOST_MS);
        if self.is_telling(peak) {
            if self.before_ms > 0 {
                let longest_ms = pause_ms.max(self.before_ms);
                let decay_ms = (longest_ms + longest_ms / MARGIN_SHARE).min(MOST_MS);
                self.learnt_ms = self.learnt_ms.max(decay_ms);
            }
            self.before_ms = pause_ms;
        }
        self.end();
    }

    /// Ends a pause that lasts too long to be held through.
    pub fn look(&mut self, now_ms: u32, peak: Pages) {
        if self.returned == Pages::NONE || !is_ripe(now_ms, self.last_use_ms, MOST_MS) {
            return;
        }
        if self.is_telling(peak) {
            self.forget();
        } else {
            self.end();
        }
    }

    fn is_telling(&self, peak: Pages) -> bool {
        self.returned >= peak / TELLING_SHARE
    }

    fn end(&mut self) {
        *self = Pauses {
            learnt_ms: self.learnt_ms,
            before_ms: self.before_ms,
            ..Pauses::new(self.learns)
        };
    }

    /// The set time holds again: the program rests, or memory runs short.
    pub fn forget(&mut self) {
        *self = Pauses::new(self.learns);
    }
}
