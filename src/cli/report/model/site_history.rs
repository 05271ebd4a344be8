//! The memory that each allocation site of a process holds, per round. A round keeps the minimum
//! over its markers, because memory that is freed within the round is not growth.

use std::collections::BTreeMap;

use flarena_shared::sites::{Holding, Record, Stack};

/// Above this, every second round is dropped.
const MAX_ROUNDS: usize = 512;

#[derive(Default)]
pub struct SiteHistory {
    pub stacks: BTreeMap<u32, Stack>,
    /// Sites whose stack has the same text as that of an earlier site. Their memory counts there.
    aliases: BTreeMap<u32, u32>,
    pub rounds: BTreeMap<i64, RoundHoldings>,
    /// Samples that found no room in the table of the process.
    pub lost_samples: u64,
}

/// The minimum that each site held at the markers of one round.
#[derive(Default, Clone)]
pub struct RoundHoldings {
    pub sites: BTreeMap<u32, Holding>,
    /// Bytes of all sites that the record does not list.
    pub rest_bytes: u64,
    /// Live memory from before sites were turned on in the running process; `None` if they were on from its start.
    pub before_bytes: Option<u64>,
    /// Standard error of all small blocks.
    pub error: u64,
}

impl RoundHoldings {
    pub fn total_bytes(&self) -> u64 {
        let sites = self.sites.values().map(|one| one.bytes);
        sites.fold(self.rest_bytes, u64::saturating_add)
    }

    fn add(&mut self, one: Holding) {
        let joined = self.sites.entry(one.site);
        joined.and_modify(|first| first.add(&one)).or_insert(one);
    }

    fn keep_least(&mut self, other: &RoundHoldings) {
        self.rest_bytes = self.rest_bytes.min(other.rest_bytes);
        self.before_bytes = self.before_bytes.min(other.before_bytes);
        // A site that the other marker does not list holds too little to be listed.
        self.sites.retain(|site, least| {
            let other = other.sites.get(site);
            let less = other.filter(|other| other.bytes < least.bytes);
            *least = *less.unwrap_or(least);
            other.is_some()
        });
    }
}

impl SiteHistory {
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Stack { stack, .. } => self.add_stack(stack),
            Record::Sites {
                round,
                sites,
                rest,
                small,
                before_bytes,
                ..
            } => {
                let small = small.unwrap_or_default();
                self.lost_samples = self.lost_samples.max(small.lost);
                let mut holdings = RoundHoldings {
                    rest_bytes: rest.bytes,
                    before_bytes,
                    error: small.error,
                    ..RoundHoldings::default()
                };
                for one in sites {
                    let site = *self.aliases.get(&one.site).unwrap_or(&one.site);
                    holdings.add(Holding { site, ..one });
                }
                if let Some(round) = round {
                    let known = self.rounds.entry(round);
                    let joined = known.and_modify(|known| known.keep_least(&holdings));
                    joined.or_insert(holdings);
                }
                if self.rounds.len() > MAX_ROUNDS {
                    let rounds = std::mem::take(&mut self.rounds).into_iter();
                    self.rounds = rounds.step_by(2).collect();
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty() && self.rounds.is_empty()
    }

    fn add_stack(&mut self, stack: Stack) {
        let like = |known: &&Stack| known.site != stack.site && known.has_same_text(&stack);
        let Some(first) = self.stacks.values().find(like).map(|known| known.site) else {
            self.stacks.entry(stack.site).or_insert(stack);
            return;
        };
        self.aliases.insert(stack.site, first);
        // The holdings of a site may be read before its stack.
        for round in self.rounds.values_mut() {
            if let Some(one) = round.sites.remove(&stack.site) {
                round.add(Holding { site: first, ..one });
            }
        }
    }

    /// `fedavg.py:351 in aggregate <- run.py:2 in <module>`: the innermost frames of the site.
    pub fn headline(&self, site: u32, frames: usize) -> String {
        let headline = self.stacks.get(&site).map(|stack| stack.headline(frames));
        headline.unwrap_or_else(|| format!("site {site}"))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use flarena_shared::sites::{Frame, Owner};

    const OWNER: Owner = Owner {
        pid: 7,
        start: 1,
        boot: None,
    };

    fn stack_record(site: u32) -> Record {
        let frames = vec![
            Frame("/x/fedavg.py".into(), 351, "FedAvg.aggregate".into()),
            Frame("/x/run.py".into(), 2, "<module>".into()),
        ];
        let (v, owner) = (1, OWNER);
        let stack = Stack {
            site,
            frames,
            ..Stack::default()
        };
        Record::Stack { v, owner, stack }
    }

    /// One marker per round; site 3 holds the given bytes in each.
    pub fn growing(bytes: &[u64]) -> SiteHistory {
        let mut history = SiteHistory::default();
        history.add(stack_record(3));
        for (round, bytes) in bytes.iter().enumerate() {
            history.add(marker(&[3], round as i64, *bytes));
        }
        history
    }

    /// A marker at which each of the sites holds `bytes`.
    fn marker(sites: &[u32], round: i64, bytes: u64) -> Record {
        let holding = |site: &u32| Holding {
            site: *site,
            bytes,
            blocks: 1,
            oldest: Some(round),
            median: Some(round / 2),
            ..Holding::default()
        };
        Record::Sites {
            v: 1,
            t: 0.0,
            mono: None,
            owner: OWNER,
            marker: 0,
            round: Some(round),
            sites: sites.iter().map(holding).collect(),
            rest: Holding::default(),
            small: None,
            before_bytes: None,
        }
    }

    /// Like [`growing`], but the same source line has two sites, and each holds half the bytes.
    /// `second_stack_at` is the round before which the stack of the second site is read.
    pub fn in_two_sites(bytes: &[u64], second_stack_at: usize) -> SiteHistory {
        let mut history = growing(&[]);
        for round in 0..=bytes.len() {
            if round == second_stack_at {
                history.add(stack_record(9));
            }
            if let Some(bytes) = bytes.get(round) {
                history.add(marker(&[3, 9], round as i64, bytes / 2));
            }
        }
        history
    }

    /// Like [`growing`], with this standard error of each estimate.
    pub fn growing_with_error(bytes: &[u64], error: u64) -> SiteHistory {
        let mut history = growing(bytes);
        for round in history.rounds.values_mut() {
            round.sites.values_mut().for_each(|one| one.error = error);
        }
        history
    }

    /// As [`growing`]; so much is from before sites were turned on.
    pub fn growing_after(before: &[u64], bytes: &[u64]) -> SiteHistory {
        let mut history = growing(bytes);
        for (round, before) in history.rounds.values_mut().zip(before) {
            round.before_bytes = Some(*before);
        }
        history
    }

    #[test]
    fn sites_with_the_same_stack_text_are_counted_as_one() {
        for second_stack_at in [0, 2] {
            let history = in_two_sites(&[10, 20], second_stack_at);
            let of = |round: &RoundHoldings| {
                (
                    round.sites.len(),
                    round.sites[&3].bytes,
                    round.sites[&3].blocks,
                )
            };
            let held: Vec<_> = history.rounds.values().map(of).collect();
            assert_eq!(
                held,
                [(1, 10, 2), (1, 20, 2)],
                "stack before round {second_stack_at}"
            );
        }
    }

    #[test]
    fn a_round_keeps_the_minimum_of_its_markers() {
        let mut history = growing(&[10, 20]);
        history.add(marker(&[3], 1, 5));
        history.add(marker(&[3], 1, 50));
        let least: Vec<u64> = history.rounds.values().map(|r| r.sites[&3].bytes).collect();
        assert_eq!(least, [10, 5]);
    }

    #[test]
    fn the_number_of_rounds_is_bounded() {
        let history = growing(&vec![1; 5000]);
        assert!(history.rounds.len() <= MAX_ROUNDS);
    }
}
