//! Under a limit on the memory of the process (RLIMIT_AS, RLIMIT_DATA, strict overcommit, locked memory), free extents
//! keep only a small share of the room that is left. So the program's own mappings find room: stacks of threads, files,
//! other allocators.
//!
//! `ops::room` measures and unmaps; this file only computes.

use crate::core::unit::UNIT_BYTES;
use crate::policy::age::is_expired;

/// Free extents keep one part in `SHARE` of the room that the process would have without them.
const SHARE: u64 = 16;
/// The program may map and unmap memory itself, so a measurement is valid for this long.
const VALID_MS: u32 = 10;

#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The units that free extents may keep.
    may_keep: u64,
    measured_ms: u32,
}

impl Room {
    pub const fn new() -> Self {
        Room {
            may_keep: 0,
            measured_ms: 0,
        }
    }

    /// True if the room must be measured before that many units stay free.
    pub fn is_due(&self, free_units: u64, now_ms: u32) -> bool {
        let is_old = is_expired(now_ms, self.measured_ms, VALID_MS);
        free_units > 0 && (is_old || self.excess(free_units) > 0)
    }

    /// Records that the process may map `left_bytes` more, with that many units free.
    pub fn record(&mut self, left_bytes: u64, free_units: u64, now_ms: u32) {
        let left_units = left_bytes / UNIT_BYTES as u64;
        self.may_keep = (left_units + free_units) / SHARE;
        self.measured_ms = now_ms;
    }

    /// The units to unmap.
    pub fn excess(&self, free_units: u64) -> u64 {
        free_units.saturating_sub(self.may_keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_sixteenth_of_the_room_without_free_extents_may_stay_free() {
        let mut room = Room::new();
        room.record(200 * MIB, 250, 0);
        assert_eq!(room.excess(250), 250 - 350 / 16);
        room.record(0, 0, 0);
        assert_eq!(room.excess(1), 1);
        room.record(u64::MAX, 1 << 40, 0);
        assert_eq!(room.excess(1 << 39), 0);
    }

    #[test]
    fn the_room_is_measured_for_an_excess_and_after_ten_milliseconds() {
        let mut room = Room::new();
        assert!(room.is_due(1, 0));
        room.record(320 * MIB, 0, 100);
        assert!(!room.is_due(10, 109));
        assert!(room.is_due(11, 109));
        assert!(room.is_due(1, 110));
        assert!(!room.is_due(0, 110));
    }
}
