//! The order of the markers of one process: their sequence numbers, never the clock alone.

/// Sorts before or after another marker of the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// 0 for records that count themselves; else the first time of the file they stand in, in microseconds.
    pub epoch: u64,
    /// The sequence number, or the place in the file.
    pub seq: u64,
}

/// Which sequence numbers were seen already: the same file may be given twice.
#[derive(Default)]
pub struct Seen {
    /// Disjoint, ascending, both ends included. One range in a file that lacks nothing.
    ranges: Vec<(u64, u64)>,
}

/// A process whose numbers are so scattered writes no sequence at all; stop counting.
const MOST_RANGES: usize = 4096;

impl Seen {
    /// Notes the number; false when it was there before.
    pub fn insert(&mut self, seq: u64) -> bool {
        let next = self.ranges.partition_point(|&(from, _)| from <= seq);
        if next > 0 && seq <= self.ranges[next - 1].1 {
            return false;
        }
        let joins_before = next > 0 && self.ranges[next - 1].1.checked_add(1) == Some(seq);
        let after = self.ranges.get(next);
        let joins_after = after.is_some_and(|&(from, _)| seq.checked_add(1) == Some(from));
        match (joins_before, joins_after) {
            (true, true) => {
                self.ranges[next - 1].1 = self.ranges[next].1;
                self.ranges.remove(next);
            }
            (true, false) => self.ranges[next - 1].1 = seq,
            (false, true) => self.ranges[next].0 = seq,
            (false, false) if self.ranges.len() < MOST_RANGES => {
                self.ranges.insert(next, (seq, seq));
            }
            (false, false) => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once_in_any_order() {
        let mut seen = Seen::default();
        for seq in [5, 0, 1, 3, 2, u64::MAX, 4] {
            assert!(seen.insert(seq), "{seq}");
        }
        for seq in [0, 1, 2, 3, 4, 5, u64::MAX] {
            assert!(!seen.insert(seq), "{seq}");
        }
        assert_eq!(seen.ranges, [(0, 5), (u64::MAX, u64::MAX)]);
    }
}
