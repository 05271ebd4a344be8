//! Compares two runs, site by site and stage by stage.
//!
//! Processes of one site and one name belong together in both runs, because their pids differ.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::stats::{mean_interval, Change, ChangeVerdict, Estimate, TrendClass};
use super::together::sum_of;
use super::{Finding, StageGrowth, Verdict};
use crate::report::model::Unit;

/// A value of the run before and of the run after; `None` if it is unknown, or if the run lacks the site or the stage.
#[derive(Clone, Debug, Serialize)]
pub struct Pair<T> {
    pub before: Option<T>,
    pub after: Option<T>,
}

impl<T> Pair<T> {
    pub fn of<R>([before, after]: [R; 2], value: impl Fn(R) -> Option<T>) -> Pair<T> {
        Pair {
            before: value(before),
            after: value(after),
        }
    }

    pub fn map<'a, U>(&'a self, value: impl Fn(&'a T) -> Option<U>) -> Pair<U> {
        let runs = [self.before.as_ref(), self.after.as_ref()];
        Pair::of(runs, |run| value(run?))
    }

    pub fn both(&self) -> Option<(&T, &T)> {
        self.before.as_ref().zip(self.after.as_ref())
    }

    pub fn known(&self) -> impl Iterator<Item = &T> {
        self.before.iter().chain(&self.after)
    }
}

impl Pair<f64> {
    pub fn change(&self) -> Option<Change> {
        let (before, after) = self.both()?;
        Change::of_values(*before, *after)
    }
}

/// Some processes in both runs.
type Members<'a> = [Vec<&'a Finding<'a>>; 2];

#[derive(Serialize)]
pub struct Comparison<'a> {
    #[serde(skip)]
    pub runs: [&'a [Finding<'a>]; 2],
    #[serde(flatten)]
    pub sums: Sums,
    pub rounds: Pair<u64>,
    /// The names of the processes that grow.
    pub growing: Pair<Vec<String>>,
    /// The site with the process that changed most first.
    pub sites: Vec<SiteComparison>,
}

/// The sums of some processes.
#[derive(Serialize)]
pub struct Sums {
    pub peak_bytes: Pair<f64>,
    /// Over time. Unknown if the markers have no times.
    pub mean_bytes: Pair<f64>,
    /// Unknown if it is unknown for one of the processes.
    pub cpu_seconds: Pair<f64>,
}

#[derive(Serialize)]
pub struct SiteComparison {
    pub site: String,
    #[serde(flatten)]
    pub sums: Sums,
    /// The one that changed most first.
    pub processes: Vec<ProcessComparison>,
}

#[derive(Serialize)]
pub struct ProcessComparison {
    pub proc: String,
    pub verdict: Pair<&'static str>,
    pub stages: Vec<StageComparison>,
}

#[derive(Serialize)]
pub struct StageComparison {
    pub stage: String,
    pub sizes: Pair<StageSizes>,
}

/// One stage of the processes of one name.
#[derive(Clone, Debug, Serialize)]
pub struct StageSizes {
    pub rounds: u64,
    /// After the warm-up.
    pub mean_bytes: Estimate,
    pub peak_bytes: f64,
    pub growth: Option<Value>,
    pub unit: &'static str,
}

impl<'a> Comparison<'a> {
    pub fn of(runs: [&'a [Finding<'a>]; 2]) -> Comparison<'a> {
        let mut named: BTreeMap<String, BTreeMap<String, Members>> = BTreeMap::new();
        for (run, findings) in runs.into_iter().enumerate() {
            for finding in findings {
                let site = named.entry(finding.process.site_names()).or_default();
                site.entry(finding.process.process_name()).or_default()[run].push(finding);
            }
        }
        let mut sites: Vec<SiteComparison> = named.into_iter().map(SiteComparison::of).collect();
        sites.sort_by(|a, b| b.rank().partial_cmp(&a.rank()).unwrap_or(Ordering::Equal));
        Comparison {
            runs,
            sums: Sums::of(&runs.map(|run| run.iter().collect())),
            rounds: Pair::of(runs, |run| run.iter().map(|one| one.series.rounds).max()),
            growing: Pair::of(runs, |run| {
                let growing = run.iter().filter(|finding| finding.growth().is_some());
                (!run.is_empty()).then(|| growing.map(|one| one.process.full_name()).collect())
            }),
            sites,
        }
    }

    /// The processes with their names, the one that changed most first.
    pub fn processes(&self) -> Vec<(String, &ProcessComparison)> {
        let sites = self.sites.iter();
        let all = sites.flat_map(|site| {
            let name = |proc: &str| format!("{} {proc}", site.site);
            site.processes.iter().map(move |one| (name(&one.proc), one))
        });
        let mut all: Vec<(String, &ProcessComparison)> = all.collect();
        all.sort_by(|(_, a), (_, b)| b.size_of_change().total_cmp(&a.size_of_change()));
        all
    }
}

impl Sums {
    fn of(runs: &Members) -> Sums {
        let runs = runs.each_ref();
        Sums {
            peak_bytes: Pair::of(runs, |run| {
                let largest = || run.iter().map(|finding| finding.process.peak_rss);
                let sum = sum_of(run.iter().copied()).map(|sum| sum.peak);
                sum.or_else(|| largest().reduce(f64::max))
            }),
            mean_bytes: Pair::of(runs, |run| Some(sum_of(run.iter().copied())?.mean)),
            cpu_seconds: Pair::of(runs, |run| {
                let seconds = run.iter().map(|one| one.process.cpu_seconds());
                let sum: Option<f64> = seconds.sum();
                sum.filter(|_| !run.is_empty())
            }),
        }
    }
}

impl SiteComparison {
    fn of((site, named): (String, BTreeMap<String, Members>)) -> SiteComparison {
        let all = [0, 1].map(|run| named.values().flat_map(|runs| runs[run].clone()).collect());
        let processes = named.into_iter().map(ProcessComparison::of);
        let mut processes: Vec<ProcessComparison> = processes.collect();
        processes.sort_by(|a, b| b.size_of_change().total_cmp(&a.size_of_change()));
        SiteComparison {
            site,
            sums: Sums::of(&all),
            processes,
        }
    }

    /// The largest change of its processes, then the peak.
    fn rank(&self) -> (f64, f64) {
        let peak = self.sums.peak_bytes.known().copied().fold(0.0, f64::max);
        (self.processes[0].size_of_change(), peak)
    }
}

impl ProcessComparison {
    fn of((proc, runs): (String, Members)) -> ProcessComparison {
        let worst = |findings: &Vec<&Finding>| {
            let verdicts = findings.iter().map(|finding| finding.verdict);
            let worst = verdicts.min_by_key(|verdict| verdict.urgency());
            worst.map(Verdict::name)
        };
        let mut stages: Vec<&str> = Vec::new();
        for stage in runs.iter().flatten().flat_map(|finding| &finding.stages) {
            if !stages.contains(&&*stage.series.stage) {
                stages.push(&stage.series.stage);
            }
        }
        let stage = |stage: &str| StageComparison {
            sizes: Pair::of(runs.each_ref(), |findings| StageSizes::of(findings, stage)),
            stage: stage.to_owned(),
        };
        ProcessComparison {
            proc,
            verdict: Pair::of(runs.each_ref(), worst),
            stages: stages.into_iter().map(stage).collect(),
        }
    }

    /// The stage whose mean changed most, if a stage changed beyond noise.
    pub fn largest_change(&self) -> Option<(&StageComparison, Change)> {
        let stages = self.stages.iter();
        let changes = stages.filter_map(|stage| Some((stage, stage.change()?)));
        // A single marker shows no noise. It counts where no stage has more.
        let knows_noise = changes.clone().any(|(_, change)| change.low.is_some());
        let changes = changes.filter(|(_, change)| match change.verdict {
            ChangeVerdict::Less | ChangeVerdict::More => true,
            ChangeVerdict::OneRun => !knows_noise && change.percent().abs() >= 1.0,
            ChangeVerdict::WithinNoise => false,
        });
        changes.max_by(|(_, a), (_, b)| a.size().total_cmp(&b.size()))
    }

    fn size_of_change(&self) -> f64 {
        let largest = self.largest_change();
        largest.map_or(0.0, |(_, change)| change.size())
    }

    /// Both runs have the process with the same verdict, and no stage changed beyond noise.
    pub fn is_equal(&self) -> bool {
        let both = self.verdict.both();
        both.is_some_and(|(before, after)| before == after) && self.largest_change().is_none()
    }
}

impl StageComparison {
    /// The change of the mean.
    pub fn change(&self) -> Option<Change> {
        let (before, after) = self.sizes.both()?;
        Some(Change::of_means(&before.mean_bytes, &after.mean_bytes))
    }
}

impl StageSizes {
    /// The stage of all processes of one name. Their growth is that of the process that grows most.
    fn of(findings: &[&Finding], stage: &str) -> Option<StageSizes> {
        let all = findings.iter().flat_map(|finding| {
            let own = finding.stages.iter();
            let own = own.filter(|own| *own.series.stage == *stage);
            own.map(|own| (finding.trend.warm_up, own))
        });
        let all: Vec<(usize, &StageGrowth)> = all.collect();
        let settled = all.iter();
        let settled = settled.flat_map(|(warm_up, own)| own.series.settled(*warm_up));
        let values: Vec<f64> = settled.map(|point| point.sizes.rss()).collect();
        let growth = all.iter();
        let growth = growth.filter_map(|(_, own)| Some((own.slope?, own.series.unit())));
        let growth = growth.max_by(|(a, _), (b, _)| a.value.total_cmp(&b.value));
        let peaks = all.iter().map(|(_, own)| own.series.peak_rss());
        let is_level = |one: &&Finding| one.trend.class == TrendClass::Level;
        (!values.is_empty()).then(|| StageSizes {
            rounds: all.iter().map(|(_, own)| own.series.rounds).sum(),
            mean_bytes: mean_interval(&values, !findings.iter().all(is_level)),
            peak_bytes: peaks.fold(0.0, f64::max),
            unit: growth.map_or(Unit::Round, |(_, unit)| unit).name(),
            growth: growth.map(|(slope, _)| slope.json("bytes_per_unit")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{if_known, processes, sample, sizes};
    use crate::report::model::Size;
    use crate::report::units::MB;
    use flarena_shared::marker::Marker;

    fn run(size: impl Fn(usize) -> f64) -> Vec<Finding<'static>> {
        analyse(processes(
            (0..24).map(|i| sample(i, sizes(&[(Size::Rss, size(i))]))),
        ))
    }

    #[test]
    fn a_stage_has_mean_peak_and_growth_of_both_runs() {
        let noise = |i: usize| (i * 7 % 5) as f64;
        let before = run(|i| 500.0 + 10.0 * i as f64 + noise(i));
        let after = run(|i| 300.0 + noise(i));
        let compared = Comparison::of([&before, &after]);
        let [site] = &compared.sites[..] else {
            panic!()
        };
        let [process] = &site.processes[..] else {
            panic!()
        };
        assert_eq!((&*site.site, &*process.proc), ("site-1", "TR"));
        assert_eq!(process.verdict.after, Some("flat"));
        let Pair { before, after } = &process.stages[0].sizes;
        let (old, new) = (before.as_ref().unwrap(), after.as_ref().unwrap());
        assert!(
            (new.mean_bytes.value / MB - 302.0).abs() < 0.2,
            "{:?}",
            new.mean_bytes
        );
        assert!(new.mean_bytes.low < new.mean_bytes.value && new.mean_bytes.high < 304.0 * MB);
        assert!(old.mean_bytes.high - old.mean_bytes.value < 3.0 * MB);
        assert!(
            (old.growth.as_ref().unwrap()["bytes_per_unit"]
                .as_f64()
                .unwrap()
                / MB
                - 10.0)
                .abs()
                < 0.5
        );
        let growing = compared.growing.map(|names| Some(names.len()));
        assert_eq!((growing.before, growing.after), (Some(1), Some(0)));
        assert_eq!(compared.sums.peak_bytes.after.unwrap() / MB, 304.0);
    }

    #[test]
    fn cpu_time_is_that_of_the_program_and_unknown_if_a_process_has_none() {
        let marker = |pid: u32, cpu: f64| {
            move |i: usize| Marker {
                pid: Some(pid),
                stage: if i == 0 { "load" } else { "send" }.into(),
                t: Some(60.0 * i as f64),
                cpu_ms: if_known(cpu + 500.0 * i as f64).map(|ms| ms as u64),
                ..sample(i, sizes(&[(Size::Rss, 100.0)]))
            }
        };
        let run = |cpus: &[f64]| {
            let markers = (1..)
                .zip(cpus)
                .flat_map(|(pid, cpu)| (0..24).map(marker(pid, *cpu)));
            let before = analyse(processes(markers));
            let compared = Comparison::of([&before, &[]]);
            compared.sums.cpu_seconds.before
        };
        assert_eq!(run(&[30.0, 9000.0]), Some(23.0));
        assert_eq!(run(&[30.0, f64::NAN]), None);
    }

    #[test]
    fn a_site_that_only_one_run_has_is_listed() {
        let before = run(|_| 100.0);
        let compared = Comparison::of([&before, &[]]);
        let peaks = [&compared.sums, &compared.sites[0].sums].map(|sums| &sums.peak_bytes);
        assert!(peaks
            .iter()
            .all(|peak| peak.before.is_some() && peak.after.is_none()));
    }

    #[test]
    fn a_process_without_a_site_or_without_times_has_a_peak_beside_a_site() {
        let marker = |pid: usize, i: usize| Marker {
            pid: Some(pid as u32),
            site: (pid > 0).then(|| format!("site-{pid}")),
            t: (pid != 2).then_some(10.0 * i as f64),
            ..sample(i, sizes(&[(Size::Rss, 100.0)]))
        };
        let markers = (0..3).flat_map(|pid| (0..8).map(move |i| marker(pid, i)));
        let before = analyse(processes(markers));
        let compared = Comparison::of([&before, &[]]);
        let sums = compared.sites.iter().map(|site| &site.sums);
        let known = sums.map(|sums| (sums.peak_bytes.before, sums.mean_bytes.before.is_some()));
        let size = Some(100.0 * MB);
        assert_eq!(
            known.collect::<Vec<_>>(),
            [(size, true), (size, true), (size, false)]
        );
    }

    #[test]
    fn a_stage_with_one_marker_is_no_change_beside_stages_with_many() {
        let run = |exit: f64| {
            let marker = |i: usize| Marker {
                stage: if i < 24 { "send" } else { "exit" }.into(),
                ..sample(i, sizes(&[(Size::Rss, if i < 24 { 300.0 } else { exit })]))
            };
            analyse(processes((0..25).map(marker)))
        };
        let runs = [200.0, 210.0].map(run);
        let compared = Comparison::of([&runs[0], &runs[1]]);
        assert!(compared.sites[0].processes[0].is_equal());
    }

    #[test]
    fn the_process_that_changed_most_comes_first_and_one_within_noise_is_equal() {
        let noise = |i: usize| (i * 7 % 5) as f64;
        let run = |sizes_mb: [f64; 3]| {
            let marker = |site: usize, i: usize| Marker {
                site: Some(format!("site-{site}")),
                pid: Some(site as u32),
                ..sample(i, sizes(&[(Size::Rss, sizes_mb[site] + noise(i))]))
            };
            let markers = (0..3).flat_map(|site| (0..24).map(move |i| (site, i)));
            analyse(processes(markers.map(|(site, i)| marker(site, i))))
        };
        let runs = [[900.0, 500.0, 400.0], [900.1, 450.0, 200.0]].map(run);
        let compared = Comparison::of([&runs[0], &runs[1]]);
        let sites: Vec<&str> = compared.sites.iter().map(|site| &*site.site).collect();
        assert_eq!(sites, ["site-2", "site-1", "site-0"]);
        let (name, most) = compared.processes().remove(0);
        let (_, change) = most.largest_change().unwrap();
        assert_eq!((&*name, &*change.amount()), ("site-2 TR", "-50 %"));
        let equal = compared
            .sites
            .iter()
            .map(|site| site.processes[0].is_equal());
        assert_eq!(equal.collect::<Vec<_>>(), [false, false, true]);
    }
}
