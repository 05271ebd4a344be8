//! Growth of a site, by the estimator that judges the whole process.

use std::collections::BTreeSet;

use crate::report::analyse::stats::{Slope, Trend};
use crate::report::model::{History, Round};

/// The first rounds fill caches and buffers.
const WARM_UP: usize = 1;
/// Less per round is noise of a heap.
const LEAST_BYTES: f64 = 64.0 * 1024.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteTrend {
    pub site: u32,
    pub first_bytes: u64,
    pub last_bytes: u64,
    /// Growth per round; `None`: too few rounds.
    pub slope: Option<Slope>,
    pub blocks: u64,
    pub oldest: Option<i64>,
    pub median: Option<i64>,
}

impl SiteTrend {
    pub fn bytes_per_round(&self) -> Option<f64> {
        self.slope.map(|slope| slope.per_x)
    }

    pub fn grows(&self) -> bool {
        self.slope
            .is_some_and(|slope| slope.low > 0.0 && slope.per_x > LEAST_BYTES)
    }
}

/// Every site of the settled rounds: those that grow most first, then those that hold most.
pub fn trends(history: &History) -> Vec<SiteTrend> {
    let rounds: Vec<(&i64, &Round)> = history.rounds().iter().collect();
    let settled = &rounds[WARM_UP.min(rounds.len().saturating_sub(1))..];
    let sites = settled.iter().flat_map(|(_, round)| round.sites.keys());
    let sites: BTreeSet<u32> = sites.copied().collect();
    let mut trends: Vec<SiteTrend> = sites.into_iter().map(|site| trend(settled, site)).collect();
    let growth = |trend: &SiteTrend| {
        let growing = trend.bytes_per_round().filter(|_| trend.grows());
        growing.unwrap_or(0.0)
    };
    // A stable sort: sites that are equal stay in the order of their numbers.
    trends.sort_by(|a, b| {
        let faster = growth(b).total_cmp(&growth(a));
        faster.then(b.last_bytes.cmp(&a.last_bytes))
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
        let held = |round: &Round| round.bytes(trend.site);
        let fallen = rounds.clone().zip(rounds.skip(1));
        let fallen = fallen.map(|(one, next)| held(one).saturating_sub(held(next)));
        Some((trend, fallen.max()?))
    };
    let swings = trends(history).into_iter().filter_map(swing);
    let most = swings.max_by_key(|(_, bytes)| *bytes)?;
    Some(most).filter(|(_, bytes)| *bytes as f64 > LEAST_BYTES)
}

fn trend(rounds: &[(&i64, &Round)], site: u32) -> SiteTrend {
    let held: Vec<u64> = rounds.iter().map(|(_, round)| round.bytes(site)).collect();
    let x: Vec<f64> = rounds.iter().map(|(number, _)| **number as f64).collect();
    let y: Vec<f64> = held.iter().map(|bytes| *bytes as f64).collect();
    let found = Trend::of(&x, &y, 0.0);
    let holdings = rounds.iter().filter_map(|(_, r)| r.sites.get(&site));
    let last = holdings.clone().next_back();
    SiteTrend {
        site,
        first_bytes: held.first().copied().unwrap_or(0),
        last_bytes: held.last().copied().unwrap_or(0),
        slope: found.known_slope(),
        blocks: last.map_or(0, |one| one.blocks),
        // A collection just before the last marker would hide how long blocks were held.
        oldest: holdings.filter_map(|one| one.oldest).max(),
        median: last.and_then(|one| one.median),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::held_tests::growing as history;

    const MB: u64 = 1 << 20;

    #[test]
    fn a_site_that_keeps_a_block_each_round_grows_by_it() {
        let trend = growing(&history(&[1, 2, 3, 4, 5, 6, 7, 8].map(|n| n * 128 * MB))).unwrap();
        assert!((trend.slope.unwrap().per_x / MB as f64 - 128.0).abs() < 1e-6);
        let told = (trend.site, trend.oldest, trend.median);
        assert_eq!(told, (3, Some(7), Some(3)));
    }

    #[test]
    fn one_odd_round_and_a_warm_up_are_no_growth() {
        for rounds in [[1, 5, 5, 9, 5, 5, 5], [1, 9, 9, 9, 9, 9, 9]] {
            assert_eq!(growing(&history(&rounds.map(|n| n * MB))), None);
        }
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
        assert_eq!(few[0].slope, None);
        assert_eq!(trends(&history(&[])), []);
    }
}
