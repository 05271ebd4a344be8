//! Numbers that can be checked from outside.

use crate::core::amount::Pages;
use crate::state::blocks::Allocation;

/// Why the recycler did something dearer than its usual way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// No mapping could be had: the backend serves the request.
    NoMapping,
    /// The kernel refused to move an extent whole: its units were moved one by one.
    MovedByUnit,
    /// A unit could not be moved: its pages were given back, or copied for realloc.
    MoveRefused,
    /// A range that pages were to move to, or that was to be mapped anew, was lost.
    TargetLost,
    /// A program's marks could not be taken off: the block was unmapped, not cached.
    AttributesAltered,
    /// Attributes were set back with system calls.
    AttributesReset,
    /// A block of several mappings was unmapped, not cached, so that such blocks stay few.
    PatchedEnded,
    /// Pages could not be dropped in place.
    DiscardRefused,
    /// A range could not be unmapped; its pages were dropped.
    UnmapRefused,
    /// A range the system would neither unmap nor empty.
    Stuck,
    /// realloc allocated, copied and freed.
    ReallocCopied,
}

pub const FALLBACKS: usize = Fallback::ReallocCopied as usize + 1;

/// Names in the statistics, in the order of `Fallback`.
pub const FALLBACK_NAMES: [&str; FALLBACKS] = [
    "no_mapping",
    "moved_by_unit",
    "move_refused",
    "target_lost",
    "attributes_altered",
    "attributes_reset",
    "patched_ended",
    "discard_refused",
    "unmap_refused",
    "stuck",
    "realloc_copied",
];

/// Totals since the start.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    pub recycled: Pages,
    pub moved: Pages,
    pub fresh: Pages,
    pub returned: Pages,
    pub fallbacks: [u64; FALLBACKS],
}

impl Counters {
    pub const fn new() -> Self {
        Counters {
            recycled: Pages::NONE,
            moved: Pages::NONE,
            fresh: Pages::NONE,
            returned: Pages::NONE,
            fallbacks: [0; FALLBACKS],
        }
    }

    /// Counts a served request; `own` pages were the block's before.
    pub fn served(&mut self, got: Allocation, own: Pages) {
        self.recycled += got.recycled_pages.saturating_sub(own);
        self.fresh += got.fresh_pages;
    }

    pub fn count_fallback(&mut self, why: Fallback) {
        if let Some(count) = self.fallbacks.get_mut(why as usize) {
            *count += 1;
        }
    }
}

/// What `flarena_stats_json` shows, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub enabled: bool,
    /// Fresh mappings, or blocks that fill their units, ask for huge pages.
    pub asks_for_huge_pages: bool,
    /// How long unused pages are kept now.
    pub decay_ms: u32,
    pub live_blocks: u64,
    pub live_bytes: u64,
    pub cached_bytes: u64,
    pub slack_bytes: u64,
    pub peak_live_bytes: u64,
    pub recycled_bytes_total: u64,
    pub moved_bytes_total: u64,
    pub fresh_bytes_total: u64,
    pub returned_bytes_total: u64,
    pub fallbacks: [u64; FALLBACKS],
}
