//! Growth of a site: the middle of the slopes between all pairs of rounds, so that a round out of the
//! ordinary moves nothing.

use std::collections::BTreeSet;

use crate::report::model::{History, Round};

/// The first rounds fill caches and buffers.
const WARM_UP: usize = 1;
/// Fewer settled rounds tell nothing.
const FEWEST_ROUNDS: usize = 4;
/// Less per round is noise of a heap.
const LEAST_BYTES: f64 = 64.0 * 1024.0;
/// Rounds that are compared in pairs.
const MOST_COMPARED: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteTrend {
    pub site: u32,
    pub first_bytes: u64,
    pub last_bytes: u64,
    /// `None`: too few rounds.
    pub bytes_per_round: Option<f64>,
    pub blocks: u64,
    pub oldest: Option<i64>,
    pub median: Option<i64>,
}

impl SiteTrend {
    pub fn grows(&self) -> bool {
        self.bytes_per_round
            .is_some_and(|bytes| bytes > LEAST_BYTES)
    }
}

/// Every site of the settled rounds: those that grow most first, then those that hold most.
pub fn trends(history: &History) -> Vec<SiteTrend> {
    let rounds: Vec<(&i64, &Round)> = history.rounds().iter().collect();
    let settled = &rounds[WARM_UP.min(rounds.len().saturating_sub(1))..];
    let sites: BTreeSet<u32> = settled
        .iter()
        .flat_map(|(_, r)| r.sites.keys().copied())
        .collect();
    let mut trends: Vec<SiteTrend> = sites.into_iter().map(|site| trend(settled, site)).collect();
    let growth = |trend: &SiteTrend| {
        trend
            .bytes_per_round
            .filter(|_| trend.grows())
            .unwrap_or(0.0)
    };
    trends.sort_by(|a, b| {
        let held = b.last_bytes.cmp(&a.last_bytes);
        growth(b)
            .total_cmp(&growth(a))
            .then(held)
            .then(a.site.cmp(&b.site))
    });
    trends
}

/// The site that grows most.
pub fn growing(history: &History) -> Option<SiteTrend> {
    trends(history).into_iter().next().filter(SiteTrend::grows)
}

/// The site that rises and falls most, and by how much: garbage that waits for a collection.
pub fn swinging(history: &History) -> Option<(SiteTrend, u64)> {
    let swing = |trend: SiteTrend| {
        let rounds = history.rounds().values().skip(WARM_UP);
        let held = |round: &Round| round.sites.get(&trend.site).map_or(0, |one| one.bytes);
        let fallen = rounds.clone().zip(rounds.skip(1));
        let fallen = fallen.map(|(one, next)| held(one).saturating_sub(held(next)));
        Some((trend, fallen.max()?))
    };
    let swings = trends(history).into_iter().filter_map(swing);
    let most = swings.max_by_key(|(_, bytes)| *bytes)?;
    Some(most).filter(|(_, bytes)| *bytes as f64 > LEAST_BYTES)
}

fn trend(rounds: &[(&i64, &Round)], site: u32) -> SiteTrend {
    let held = |round: &Round| round.sites.get(&site).map_or(0, |one| one.bytes);
    let points: Vec<(f64, f64)> = rounds
        .iter()
        .map(|(number, round)| (**number as f64, held(round) as f64))
        .collect();
    let holdings = rounds
        .iter()
        .filter_map(|(_, round)| round.sites.get(&site));
    let last = holdings.clone().next_back();
    SiteTrend {
        site,
        first_bytes: rounds.first().map_or(0, |(_, round)| held(round)),
        last_bytes: rounds.last().map_or(0, |(_, round)| held(round)),
        bytes_per_round: slope(&points),
        blocks: last.map_or(0, |one| one.blocks),
        // A collection just before the last marker would hide how long blocks were held.
        oldest: holdings.filter_map(|one| one.oldest).max(),
        median: last.and_then(|one| one.median),
    }
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < FEWEST_ROUNDS {
        return None;
    }
    let step = points.len().div_ceil(MOST_COMPARED);
    let points: Vec<_> = points.iter().step_by(step).collect();
    let mut slopes = Vec::new();
    for (i, a) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().map(|b| (b.1 - a.1) / (b.0 - a.0)));
    }
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::held_tests::growing as history;

    const MB: u64 = 1 << 20;

    #[test]
    fn a_site_that_keeps_a_block_each_round_grows_by_it() {
        let trend = growing(&history(&[1, 2, 3, 4, 5, 6, 7, 8].map(|n| n * 128 * MB))).unwrap();
        assert_eq!(trend.bytes_per_round, Some(128.0 * MB as f64));
        assert_eq!(
            (trend.site, trend.oldest, trend.median),
            (3, Some(7), Some(3))
        );
    }

    #[test]
    fn one_odd_round_and_a_warm_up_are_no_growth() {
        assert_eq!(
            growing(&history(&[1, 5, 5, 9, 5, 5, 5].map(|n| n * MB))),
            None
        );
        assert_eq!(growing(&history(&[1, 9, 9, 9, 9, 9].map(|n| n * MB))), None);
    }

    #[test]
    fn what_falls_with_a_collection_swings() {
        let (site, bytes) = swinging(&history(&[1, 2, 4, 6, 1, 3, 5, 1].map(|n| n * MB))).unwrap();
        assert_eq!((site.site, bytes), (3, 5 * MB));
        assert_eq!(swinging(&history(&[1, 2, 3, 4, 5].map(|n| n * MB))), None);
    }

    #[test]
    fn few_rounds_tell_nothing() {
        let few = trends(&history(&[1, 2, 3].map(|n| n * MB)));
        assert_eq!(few[0].bytes_per_round, None);
        assert_eq!(trends(&history(&[])), []);
    }
}
