//! Judges allocation sites: how much each holds, by how much it grows, and which one explains the
//! verdict on the process.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use flarena_shared::sites::Holding;

use super::analyse::stats::{Estimate, Trend};
use super::analyse::Verdict;
use super::model::{RoundHoldings, SiteHistory};
use super::units::{plural, printable, signed_size, size};

/// So many rounds at the start are left out, because they fill caches and buffers.
const WARM_UP_ROUNDS: usize = 1;
/// Memory from before the recording that falls by less, as a share of all memory, does not fall.
const MAX_FALL: f64 = 0.01;
/// A smaller change per round is noise.
const MIN_BYTES: f64 = 64.0 * 1024.0;

/// Frames that are printed of a stack.
pub const FRAMES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteTrend {
    pub site: u32,
    pub first_bytes: u64,
    pub last_bytes: u64,
    /// Standard error of `last_bytes`; 0 without small blocks.
    pub error: u64,
    /// The values of the first and the last round differ by more than two standard errors.
    differs: bool,
    /// The largest fall from one round to the next. A site that holds garbage falls at a collection.
    fall: u64,
    /// Growth per round; `None` for too few rounds.
    pub slope: Option<Estimate>,
    pub blocks: u64,
    /// Age of the oldest block, in rounds.
    pub oldest: Option<i64>,
    /// Median age of the blocks, in rounds.
    pub median: Option<i64>,
}

impl SiteTrend {
    pub fn bytes_per_round(&self) -> Option<f64> {
        self.slope.map(|slope| slope.value)
    }

    pub fn is_growing(&self) -> bool {
        // The errors of successive estimates are not independent, so a slope alone proves nothing.
        let grows = |slope: Estimate| slope.low > 0.0 && slope.value > MIN_BYTES;
        self.differs && self.slope.is_some_and(grows)
    }
}

type Round<'a> = (&'a i64, &'a RoundHoldings);

/// All sites after the warm-up: those that grow most first, then those that hold most.
pub fn trends(history: &SiteHistory) -> Vec<SiteTrend> {
    let rounds: Vec<Round> = history.rounds.iter().collect();
    let settled = settled(&rounds);
    let sites = settled.iter().flat_map(|(_, round)| round.sites.keys());
    let sites: BTreeSet<u32> = sites.copied().collect();
    let mut trends: Vec<SiteTrend> = sites.into_iter().map(|site| trend(settled, site)).collect();
    // The sort is stable, so equal sites stay in the order of their numbers. Positive numbers have the order of their bits.
    trends.sort_by_key(|trend| {
        let growth = trend.bytes_per_round().filter(|_| trend.is_growing());
        Reverse((growth.map(f64::to_bits), trend.last_bytes))
    });
    trends
}

/// The rounds after the warm-up. If sites were turned on in the running process, a site also grows while it replaces
/// blocks from before, so only the rounds count in which these do not fall any more.
fn settled<'a, 'b>(rounds: &'a [Round<'b>]) -> &'a [Round<'b>] {
    let first = WARM_UP_ROUNDS.min(rounds.len().saturating_sub(1));
    let last = rounds.last().map(|(_, round)| *round);
    let Some((last, before)) = last.and_then(|last| Some((last, last.before_bytes?))) else {
        return &rounds[first..];
    };
    let share = (last.total_bytes() + before) as f64 * MAX_FALL;
    let most = before as f64 + share.max(3.0 * last.error as f64);
    let is_settled =
        |(_, round): &&Round| round.before_bytes.is_some_and(|bytes| bytes as f64 <= most);
    let count = rounds.iter().rev().take_while(is_settled).count();
    &rounds[(rounds.len() - count + WARM_UP_ROUNDS).min(rounds.len() - 1)..]
}

fn trend(rounds: &[Round], site: u32) -> SiteTrend {
    let held = |(_, round): &Round| round.sites.get(&site).copied();
    let latest = rounds.iter().rev().find_map(held).unwrap_or_default();
    let holdings = rounds.iter().map(|round| held(round).unwrap_or_default());
    let holdings: Vec<Holding> = holdings.collect();
    let (first, last) = (holdings[0], holdings[holdings.len() - 1]);
    let x: Vec<f64> = rounds.iter().map(|(number, _)| **number as f64).collect();
    let y: Vec<f64> = holdings.iter().map(|one| one.bytes as f64).collect();
    let error = (first.error as f64).hypot(last.error as f64);
    let falls = holdings.windows(2);
    let falls = falls.map(|pair| pair[0].bytes.saturating_sub(pair[1].bytes));
    SiteTrend {
        site,
        first_bytes: first.bytes,
        last_bytes: last.bytes,
        error: last.error,
        differs: last.bytes.abs_diff(first.bytes) as f64 > 2.0 * error,
        fall: falls.max().unwrap_or(0),
        slope: Trend::of(&x, &y, 0.0).known_slope(),
        blocks: latest.blocks,
        // The maximum over all rounds: a collection may have freed old blocks before the last one.
        oldest: holdings.iter().filter_map(|one| one.oldest).max(),
        median: latest.median,
    }
}

/// The site that explains the verdict: the one that grows most, or for cyclic garbage the one that falls most.
///
/// `+128.0 MB per round, held 4 rounds: fedavg.py:351 in aggregate <- run.py:2 in <module>`
/// `falls by 256.0 MB, held up to 7 rounds: fedavg.py:351 in aggregate <- ...`
pub fn explanation(history: &SiteHistory, verdict: Verdict) -> Option<String> {
    let trends = trends(history);
    let is_visible = |one: &&SiteTrend| one.fall as f64 > MIN_BYTES;
    let falling = trends.iter().max_by_key(|one| one.fall);
    let falling = falling.filter(|_| verdict == Verdict::CyclicGarbage);
    let (trend, change, held) = if let Some(trend) = falling.filter(is_visible) {
        let bytes = size(trend.fall as f64);
        (trend, format!("falls by {bytes}"), "held up to")
    } else {
        let trend = trends.first().filter(|one| one.is_growing())?;
        let bytes = signed_size(trend.bytes_per_round()?);
        (trend, format!("{bytes} per round"), "held")
    };
    let age = trend.oldest.map_or(String::new(), |rounds| {
        format!(", {held} {}", plural(rounds, "round"))
    });
    let place = printable(&history.headline(trend.site, FRAMES));
    Some(format!("{change}{age}: {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::site_history_tests::{
        growing as history, growing_after, growing_with_error, in_two_sites,
    };

    const MB: u64 = 1 << 20;

    fn fastest_growing(history: &SiteHistory) -> Option<SiteTrend> {
        let first = trends(history).into_iter().next();
        first.filter(SiteTrend::is_growing)
    }

    fn growth(history: &SiteHistory) -> Option<String> {
        explanation(history, Verdict::LiveGrowth)
    }

    #[test]
    fn a_site_that_keeps_a_block_per_round_grows_by_its_size() {
        let trend =
            fastest_growing(&history(&[1, 2, 3, 4, 5, 6, 7, 8].map(|n| n * 128 * MB))).unwrap();
        assert!((trend.slope.unwrap().value / MB as f64 - 128.0).abs() < 1e-6);
        let site = (trend.site, trend.oldest, trend.median);
        assert_eq!(site, (3, Some(7), Some(3)));
    }

    #[test]
    fn growth_within_two_standard_errors_is_not_growth() {
        let eight = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| n * MB);
        let with = |error| fastest_growing(&growing_with_error(&eight, error));
        let sure = with(MB);
        assert_eq!(sure.map(|trend| trend.error), Some(MB));
        assert_eq!(with(3 * MB), None);
    }

    #[test]
    fn an_outlier_or_a_warm_up_is_not_growth() {
        for rounds in [[1, 5, 5, 9, 5, 5, 5], [1, 9, 9, 9, 9, 9, 9]] {
            assert_eq!(fastest_growing(&history(&rounds.map(|n| n * MB))), None);
        }
    }

    #[test]
    fn a_site_that_replaces_blocks_from_before_the_recording_does_not_grow() {
        let mb = |values: &[u64]| values.iter().map(|n| n * MB).collect::<Vec<u64>>();
        let with =
            |before: &[u64], held: &[u64]| fastest_growing(&growing_after(&mb(before), &mb(held)));
        let replaced = [0, 40, 80, 120, 160, 200, 200, 200, 200, 200, 200, 200];
        let before = replaced.map(|bytes| 260 - bytes);
        assert_eq!(with(&before, &replaced), None);
        // A leak beside it shows when all is replaced.
        let leak = std::array::from_fn::<u64, 12, _>(|round| replaced[round] + 10 * round as u64);
        let found = with(&before, &leak).unwrap();
        assert!((found.slope.unwrap().value / MB as f64 - 10.0).abs() < 0.1);
    }

    #[test]
    fn a_site_that_falls_is_found_with_its_largest_fall() {
        let found = trends(&history(&[1, 2, 4, 6, 1, 3, 5, 1].map(|n| n * MB)));
        assert_eq!((found[0].site, found[0].fall), (3, 5 * MB));
        assert_eq!(
            trends(&history(&[1, 2, 3, 4, 5].map(|n| n * MB)))[0].fall,
            0
        );
    }

    #[test]
    fn few_rounds_give_no_slope() {
        let few = trends(&history(&[1, 2, 3].map(|n| n * MB)));
        assert_eq!(few[0].slope, None);
        assert_eq!(trends(&history(&[])), []);
    }

    #[test]
    fn growth_names_the_line_that_grows() {
        let eight = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| (n * 128) << 20);
        assert_eq!(
            growth(&history(&eight)).as_deref(),
            Some("+128.0 MB per round, held 7 rounds: fedavg.py:351 in aggregate <- run.py:2 in <module>")
        );
        assert_eq!(growth(&history(&[1 << 20; 8])), None);
    }

    #[test]
    fn a_line_with_two_sites_has_its_whole_growth() {
        let eight = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| (n * 128) << 20);
        let history = in_two_sites(&eight, 0);
        assert_eq!(trends(&history).len(), 1);
        let text = growth(&history).unwrap();
        assert!(text.starts_with("+128.0 MB per round"), "{text}");
    }

    #[test]
    fn garbage_is_explained_by_the_line_that_falls() {
        let history = history(&[1, 2, 4, 6, 1, 3, 5].map(|n| n << 20));
        assert_eq!(
            explanation(&history, Verdict::CyclicGarbage).as_deref(),
            Some("falls by 5.00 MB, held up to 6 rounds: fedavg.py:351 in aggregate <- run.py:2 in <module>")
        );
    }
}
