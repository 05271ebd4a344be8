//! The order of the markers of one process. It comes from sequence numbers, because the clock of a
//! machine can be set back.

/// The position of a marker among the markers of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// 0 for records with a sequence number; else the first time in their file, in microseconds.
    pub epoch: u64,
    /// The sequence number, or the line in the file.
    pub seq: u64,
}

/// The sequence numbers seen so far. The same file may be given twice.
#[derive(Default)]
pub struct SeenNumbers {
    /// Disjoint inclusive ranges, ascending. A file without gaps needs one range.
    ranges: Vec<(u64, u64)>,
}

/// Further numbers are not stored, so that a marker may count twice.
const MAX_RANGES: usize = 4096;

impl SeenNumbers {
    pub fn contains(&self, seq: u64) -> bool {
        let next = self.ranges.partition_point(|&(from, _)| from <= seq);
        next > 0 && seq <= self.ranges[next - 1].1
    }

    /// Adds the number. Returns false if it was there already.
    pub fn insert(&mut self, seq: u64) -> bool {
        let is_new = !self.contains(seq);
        if is_new && self.ranges.len() < MAX_RANGES {
            let next = self.ranges.partition_point(|&(from, _)| from <= seq);
            self.ranges.insert(next, (seq, seq));
            self.ranges.dedup_by(|later, earlier| {
                let joins = earlier.1.checked_add(1) == Some(later.0);
                if joins {
                    earlier.1 = later.1;
                }
                joins
            });
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_exactly_once_in_any_order() {
        let mut seen = SeenNumbers::default();
        for seq in [5, 0, 1, 3, 2, u64::MAX, 4] {
            assert!(seen.insert(seq), "{seq}");
        }
        for seq in [0, 1, 2, 3, 4, 5, u64::MAX] {
            assert!(!seen.insert(seq), "{seq}");
        }
        assert_eq!(seen.ranges, [(0, 5), (u64::MAX, u64::MAX)]);
    }
}
