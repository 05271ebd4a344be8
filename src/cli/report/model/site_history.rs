//! The records of one process, a point for each round: what each site holds when it holds least. What
//! comes and goes within a round is no growth.

use std::collections::BTreeMap;

use flarena_shared::sites::{Holding, Record, Stack};

use super::collections::every_second;

/// Rounds that are kept; then every second one goes.
const MOST_ROUNDS: usize = 512;

#[derive(Default)]
pub struct History {
    stacks: BTreeMap<u32, Stack>,
    /// Sites that read like one that came before: that one counts for them.
    twins: BTreeMap<u32, u32>,
    rounds: BTreeMap<i64, Round>,
}

/// The least that was seen of each site in a round.
#[derive(Default, Clone)]
pub struct Round {
    pub sites: BTreeMap<u32, Holding>,
    pub rest_bytes: u64,
}

impl Round {
    pub fn bytes(&self, site: u32) -> u64 {
        self.sites.get(&site).map_or(0, |one| one.bytes)
    }
}

impl History {
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Stack { stack, .. } => self.name(stack),
            Record::Sites { round: None, .. } => {}
            Record::Sites {
                round: Some(round),
                sites,
                rest,
                ..
            } => {
                self.count(round, sites, rest.bytes);
            }
        }
    }

    fn name(&mut self, stack: Stack) {
        let like = |known: &&Stack| known.site != stack.site && known.reads_like(&stack);
        let Some(first) = self.stacks.values().find(like).map(|known| known.site) else {
            self.stacks.entry(stack.site).or_insert(stack);
            return;
        };
        self.twins.insert(stack.site, first);
        // A file that was given too late: its sites were counted without a name.
        for round in self.rounds.values_mut() {
            if let Some(one) = round.sites.remove(&stack.site) {
                join(&mut round.sites, Holding { site: first, ..one });
            }
        }
    }

    fn count(&mut self, number: i64, told: Vec<Holding>, rest_bytes: u64) {
        let mut sites = BTreeMap::new();
        for one in told {
            let site = *self.twins.get(&one.site).unwrap_or(&one.site);
            join(&mut sites, Holding { site, ..one });
        }
        match self.rounds.get_mut(&number) {
            None => {
                let round = Round { sites, rest_bytes };
                self.rounds.insert(number, round);
            }
            Some(round) => {
                round.rest_bytes = round.rest_bytes.min(rest_bytes);
                // A site that is missing now holds nothing worth telling.
                round.sites.retain(|site, _| sites.contains_key(site));
                for (site, least) in &mut round.sites {
                    if let Some(one) = sites.get(site).filter(|one| one.bytes < least.bytes) {
                        *least = *one;
                    }
                }
            }
        }
        if self.rounds.len() > MOST_ROUNDS {
            let mut keep = every_second();
            self.rounds.retain(|_, _| keep());
        }
    }

    pub fn rounds(&self) -> &BTreeMap<i64, Round> {
        &self.rounds
    }

    pub fn stack(&self, site: u32) -> Option<&Stack> {
        self.stacks.get(&site)
    }

    /// `fedavg.py:351 in aggregate <- ...`
    pub fn headline(&self, site: u32, frames: usize) -> String {
        let headline = self.stack(site).map(|stack| stack.headline(frames));
        headline.unwrap_or_else(|| format!("site {site}"))
    }
}

fn join(sites: &mut BTreeMap<u32, Holding>, one: Holding) {
    let joined = sites.entry(one.site).and_modify(|first| first.join(&one));
    joined.or_insert(one);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use flarena_shared::sites::{Frame, Owner};

    const OWNER: Owner = Owner { pid: 7, start: 1 };

    fn named(site: u32) -> Record {
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

    /// One marker of each number of `bytes`, a round each, all of site 3.
    pub fn growing(bytes: &[u64]) -> History {
        let mut history = History::default();
        history.add(named(3));
        for (round, bytes) in bytes.iter().enumerate() {
            history.add(marker(&[3], round as i64, *bytes));
        }
        history
    }

    /// Each of the sites holds so much.
    fn marker(sites: &[u32], round: i64, bytes: u64) -> Record {
        let holding = |site: &u32| Holding {
            site: *site,
            bytes,
            blocks: 1,
            oldest: Some(round),
            median: Some(round / 2),
        };
        Record::Sites {
            v: 1,
            t: 0.0,
            owner: OWNER,
            marker: 0,
            round: Some(round),
            sites: sites.iter().map(holding).collect(),
            rest: Holding::default(),
        }
    }

    /// As [`growing`], but one line of the program has two sites, which hold half of it each.
    pub fn in_two_sites(bytes: &[u64], named_late: bool) -> History {
        let mut history = growing(&[]);
        if !named_late {
            history.add(named(9));
        }
        for (round, bytes) in bytes.iter().enumerate() {
            history.add(marker(&[3, 9], round as i64, bytes / 2));
        }
        if named_late {
            history.add(named(9));
        }
        history
    }

    #[test]
    fn sites_of_one_text_are_one() {
        for named_late in [false, true] {
            let history = in_two_sites(&[10, 20], named_late);
            let of = |round: &Round| (round.sites.len(), round.bytes(3), round.sites[&3].blocks);
            let held: Vec<_> = history.rounds().values().map(of).collect();
            assert_eq!(held, [(1, 10, 2), (1, 20, 2)], "named late: {named_late}");
        }
    }

    #[test]
    fn a_round_keeps_the_least_of_its_markers() {
        let mut history = growing(&[10, 20]);
        history.add(marker(&[3], 1, 5));
        history.add(marker(&[3], 1, 50));
        let least: Vec<u64> = history.rounds().values().map(|r| r.bytes(3)).collect();
        assert_eq!(least, [10, 5]);
    }

    #[test]
    fn many_rounds_are_thinned_out() {
        let history = growing(&vec![1; 5000]);
        assert!(history.rounds().len() <= MOST_ROUNDS);
    }
}
