//! The recycler's statistics: counters, and their snapshot for `flarena_stats_json`.

/// An event in which the recycler took a more expensive path than usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The system refused a mapping: the backend serves the request.
    NoMapping,
    /// The kernel refused to move a whole extent: its units were moved one by one.
    MovedByUnit,
    /// A unit could not be moved: its pages were purged, or copied for realloc.
    MoveRefused,
    /// The target of a move, or a range that was being mapped again, was lost.
    TargetLost,
    /// A block's attributes could not be reset: the block was unmapped, not cached.
    AttributesAltered,
    /// Attributes were reset with system calls.
    AttributesReset,
    /// A block of several VMAs was unmapped, not cached, so that such blocks stay few.
    MultiVmaUnmapped,
    /// Pages could not be dropped in place.
    DiscardRefused,
    /// A range could not be unmapped; its pages were dropped.
    UnmapRefused,
    /// The system would neither unmap nor empty a range.
    Stuck,
    /// realloc allocated a new block, copied the bytes and freed the old block.
    ReallocCopied,
}

pub const FALLBACKS: usize = Fallback::ReallocCopied as usize + 1;

/// The keys in the statistics, in the order of `Fallback`.
pub const FALLBACK_NAMES: [&str; FALLBACKS] = [
    "no_mapping",
    "moved_by_unit",
    "move_refused",
    "target_lost",
    "attributes_altered",
    "attributes_reset",
    "multi_vma_unmapped",
    "discard_refused",
    "unmap_refused",
    "stuck",
    "realloc_copied",
];

/// The number of fallbacks of each kind, from the start of the process.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    pub fallbacks: [u64; FALLBACKS],
}

impl Counters {
    pub const fn new() -> Self {
        Counters {
            fallbacks: [0; FALLBACKS],
        }
    }

    pub fn count_fallback(&mut self, why: Fallback) {
        if let Some(count) = self.fallbacks.get_mut(why as usize) {
            *count += 1;
        }
    }
}

/// The recycler's part of `flarena_stats_json`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub enabled: bool,
    /// New mappings, or blocks that fill their units, get advice for huge pages.
    pub asks_for_huge_pages: bool,
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
