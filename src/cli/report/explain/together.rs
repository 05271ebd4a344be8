//! Where the memory of all processes went, in one sentence.

use crate::report::analyse::{Group, Together};
use crate::report::calendar::time_of_day;
use crate::report::units::size;

/// A smaller part of the peak is not named.
const MIN_NAMED_SHARE: f64 = 0.1;

/// The peak, and the largest part of it.
pub fn together(all: &Together, processes: usize) -> String {
    let subject = match processes {
        1 => "the process",
        _ => "all processes together",
    };
    let limit = match all.limit.is_nan() {
        true => String::new(),
        false => {
            let share = 100.0 * all.peak / all.limit;
            format!(" ({share:.0}\u{a0}% of the limit of {})", size(all.limit))
        }
    };
    let mut peak = format!(
        "By the markers, {subject} held at most {}{limit}, at {} UTC, and {} on average.",
        size(all.peak),
        time_of_day(all.peak_time),
        size(all.mean)
    );
    let largest = all
        .groups
        .iter()
        .max_by(|a, b| a.at_peak.total_cmp(&b.at_peak));
    let is_large = |group: &&Group| group.at_peak >= MIN_NAMED_SHARE * all.peak;
    if let Some(largest) = largest.filter(is_large).filter(|_| all.groups.len() > 1) {
        peak += &format!(
            " {} held the largest part of that peak: {} ({:.0}\u{a0}%).",
            largest.name,
            size(largest.at_peak),
            100.0 * largest.at_peak / all.peak
        );
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{analyse, processes, sample, sizes};
    use crate::report::model::Size;

    #[test]
    fn the_sentence_has_the_peak_and_the_mean() {
        let marker = |round: usize| sample(round, sizes(&[(Size::Rss, 59.0)]));
        let reports = analyse(processes((0..12).map(marker)));
        assert_eq!(
            together(&Together::of(&reports).unwrap(), 1),
            "By the markers, the process held at most 59.0 MB, at 00:00:00 UTC, and 59.0 MB on average."
        );
    }
}
