//! Compares two runs, site by site and stage by stage.
//!
//! Processes of one site and one name belong together in both runs, because their pids differ.

use std::collections::BTreeMap;

use super::stats::{mean_interval, Interval, Slope};
use super::together::{Grouping, Together};
use super::{ProcessReport, Verdict};
use crate::report::model::{Series, Size, Unit};

/// One value of each run; `None` if a run lacks the site or the stage.
#[derive(Clone, Debug)]
pub struct Pair<T> {
    pub before: Option<T>,
    pub after: Option<T>,
}

pub struct Comparison {
    pub whole: Pair<Whole>,
    pub sites: Vec<SiteComparison>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Whole {
    pub peak: f64,
    /// Mean of the sum over time; NaN if the markers have no times.
    pub mean: f64,
    /// CPU time of all processes in seconds; NaN if it is unknown for one of them.
    pub cpu_seconds: f64,
    pub rounds: u64,
    /// Name and growth per unit of each process that grows.
    pub growing: Vec<(String, f64, Unit)>,
    /// Processes with enough rounds for a verdict.
    pub judged: usize,
    /// Whether one of these may grow.
    pub is_undecided: bool,
}

pub struct SiteComparison {
    pub site: String,
    /// The sum of its processes.
    pub sum: Pair<SiteSum>,
    pub processes: Vec<ProcessComparison>,
}

#[derive(Clone, Copy, Debug)]
pub struct SiteSum {
    pub peak: f64,
    pub mean: f64,
    /// As for the whole run.
    pub cpu_seconds: f64,
}

pub struct ProcessComparison {
    pub name: String,
    pub verdicts: Pair<Verdict>,
    pub stages: Vec<StageComparison>,
}

pub struct StageComparison {
    pub stage: String,
    pub sizes: Pair<StageSizes>,
}

/// One stage of the processes of one name.
#[derive(Clone, Debug)]
pub struct StageSizes {
    pub rounds: u64,
    /// After the warm-up.
    pub mean: Interval,
    pub peak: f64,
    pub growth: Option<Slope>,
    pub unit: Unit,
}

impl Comparison {
    pub fn of(before: &[ProcessReport], after: &[ProcessReport]) -> Comparison {
        let together = [Together::of(before), Together::of(after)];
        let [before_sum, after_sum] = &together;
        let mut names: BTreeMap<(String, String), ()> = BTreeMap::new();
        names.extend(before.iter().chain(after).map(|report| (key(report), ())));
        let mut sites: Vec<SiteComparison> = Vec::new();
        for (site, name) in names.into_keys() {
            let of = |reports| members(reports, &site, &name);
            let process = process(name.clone(), &of(before), &of(after));
            match sites.last_mut().filter(|last| last.site == site) {
                Some(last) => last.processes.push(process),
                None => sites.push(SiteComparison {
                    sum: Pair {
                        before: sum(before, before_sum.as_ref(), &site),
                        after: sum(after, after_sum.as_ref(), &site),
                    },
                    site,
                    processes: vec![process],
                }),
            }
        }
        sites.sort_by(|a, b| b.largest_peak().total_cmp(&a.largest_peak()));
        Comparison {
            whole: Pair {
                before: whole(before, before_sum.as_ref()),
                after: whole(after, after_sum.as_ref()),
            },
            sites,
        }
    }
}

impl SiteComparison {
    fn largest_peak(&self) -> f64 {
        let peak = |sum: &Option<SiteSum>| sum.map_or(0.0, |sum| sum.peak);
        peak(&self.sum.before).max(peak(&self.sum.after))
    }
}

fn key(report: &ProcessReport) -> (String, String) {
    (report.process.site_names(), report.process_name())
}

fn members<'a>(reports: &'a [ProcessReport], site: &str, name: &str) -> Vec<&'a ProcessReport> {
    let is_member = |report: &&ProcessReport| {
        let (own_site, own_name) = key(report);
        own_site == site && own_name == name
    };
    reports.iter().filter(is_member).collect()
}

fn whole(reports: &[ProcessReport], together: Option<&Together>) -> Option<Whole> {
    let peaks = reports.iter().map(|report| report.process.peak_rss);
    let largest = peaks.fold(f64::NAN, f64::max);
    let growing = reports.iter().filter_map(|report| {
        let slope = report.growth()?;
        Some((report.full_name(), slope.per_x, report.finding.unit))
    });
    let is_judged = |r: &&ProcessReport| r.finding.verdict != Verdict::NotEnoughRounds;
    (!reports.is_empty()).then(|| Whole {
        peak: together.map_or(largest, |all| all.peak),
        mean: together.map_or(f64::NAN, |all| all.mean),
        cpu_seconds: cpu_seconds(reports.iter()),
        rounds: reports.iter().map(|r| r.finding.rounds).max().unwrap_or(0),
        growing: growing.collect(),
        judged: reports.iter().filter(is_judged).count(),
        is_undecided: reports.iter().any(|r| r.finding.verdict.is_undecided()),
    })
}

fn sum(reports: &[ProcessReport], together: Option<&Together>, site: &str) -> Option<SiteSum> {
    let is_here = |report: &&ProcessReport| report.process.site_names() == site;
    let here: Vec<&ProcessReport> = reports.iter().filter(is_here).collect();
    if here.is_empty() {
        return None;
    }
    let all = together?;
    let group = all.groups.iter().find(|group| group.name == site);
    let (peak, mean) = match (all.grouping, group) {
        (Grouping::Sites, Some(group)) => (group.peak, group.mean),
        (Grouping::Processes, _) => (all.peak, all.mean),
        _ => return None,
    };
    Some(SiteSum {
        peak,
        mean,
        cpu_seconds: cpu_seconds(here.into_iter()),
    })
}

fn cpu_seconds<'a>(reports: impl Iterator<Item = &'a ProcessReport>) -> f64 {
    reports.map(|report| report.process.cpu_seconds()).sum()
}

fn process(name: String, before: &[&ProcessReport], after: &[&ProcessReport]) -> ProcessComparison {
    let worst = |reports: &[&ProcessReport]| {
        reports
            .iter()
            .map(|r| r.finding.verdict)
            .min_by_key(|verdict| verdict.urgency())
    };
    let mut stages: Vec<String> = Vec::new();
    for report in before.iter().chain(after) {
        for stage in &report.stages {
            if !stages.contains(&stage.stage) {
                stages.push(stage.stage.clone());
            }
        }
    }
    let stage = |stage: String| StageComparison {
        sizes: Pair {
            before: sizes(before, &stage),
            after: sizes(after, &stage),
        },
        stage,
    };
    ProcessComparison {
        name,
        verdicts: Pair {
            before: worst(before),
            after: worst(after),
        },
        stages: stages.into_iter().map(stage).collect(),
    }
}

/// The stage of all processes of one name. Their growth is that of the process that grows most.
fn sizes(reports: &[&ProcessReport], stage: &str) -> Option<StageSizes> {
    let (mut values, mut rounds, mut peak) = (Vec::new(), 0, f64::NAN);
    let mut growth: Option<(Slope, Unit)> = None;
    for report in reports {
        let Some(series) = report.process.series(stage) else {
            continue;
        };
        values.extend(settled(series, report.finding.trend.warm_up));
        rounds += series.rounds;
        peak = f64::max(peak, series.peak_rss());
        let own = report.stages.iter().find(|own| own.stage == stage);
        let own = own.and_then(|own| own.growth);
        if let Some(slope) = own.filter(|slope| {
            growth
                .as_ref()
                .is_none_or(|(most, _)| most.per_x < slope.per_x)
        }) {
            growth = Some((slope, series.unit()));
        }
    }
    (!values.is_empty()).then(|| StageSizes {
        rounds,
        mean: mean_interval(&values),
        peak,
        unit: growth.as_ref().map_or(Unit::Round, |(_, unit)| *unit),
        growth: growth.map(|(slope, _)| slope),
    })
}

fn settled(series: &Series, warm_up: usize) -> impl Iterator<Item = f64> + '_ {
    let points = series.points();
    let from = warm_up.min(points.len().saturating_sub(1));
    points[from..].iter().map(|point| point.sizes[Size::Rss])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::Sample;
    use crate::report::units::MB;

    fn run(size: impl Fn(usize) -> f64) -> Vec<ProcessReport> {
        analyse(processes(
            (0..24).map(|i| sample(i, sizes(&[(Size::Rss, size(i))]))),
        ))
    }

    #[test]
    fn a_stage_has_mean_peak_and_growth_of_both_runs() {
        let noise = |i: usize| (i * 7 % 5) as f64;
        let before = run(|i| 500.0 + 10.0 * i as f64 + noise(i));
        let compared = Comparison::of(&before, &run(|i| 300.0 + noise(i)));
        let [site] = &compared.sites[..] else {
            panic!()
        };
        let [process] = &site.processes[..] else {
            panic!()
        };
        assert_eq!((&*site.site, &*process.name), ("site-1", "TR"));
        assert_eq!(process.verdicts.after, Some(Verdict::Flat));
        let stage = &process.stages[0].sizes;
        let (old, new) = (
            stage.before.as_ref().unwrap(),
            stage.after.as_ref().unwrap(),
        );
        assert!((new.mean.value / MB - 302.0).abs() < 0.2, "{:?}", new.mean);
        assert!(new.mean.low < new.mean.value && new.mean.high < 304.0 * MB);
        assert!((old.growth.as_ref().unwrap().per_x / MB - 10.0).abs() < 0.5);
        let (old, new) = (
            compared.whole.before.unwrap(),
            compared.whole.after.unwrap(),
        );
        assert_eq!((old.growing.len(), new.growing.len()), (1, 0));
        assert_eq!(new.peak / MB, 304.0);
    }

    #[test]
    fn cpu_time_is_that_of_the_program_and_unknown_if_a_process_has_none() {
        let marker = |pid: u32, cpu: f64| {
            move |i: usize| Sample {
                pid: Some(pid),
                stage: if i == 0 { "load" } else { "send" }.into(),
                t: Some(60.0 * i as f64),
                cpu_ms: cpu + 500.0 * i as f64,
                ..sample(i, sizes(&[(Size::Rss, 100.0)]))
            }
        };
        let run = |cpus: &[f64]| {
            let markers = (1..)
                .zip(cpus)
                .flat_map(|(pid, cpu)| (0..24).map(marker(pid, *cpu)));
            let whole = Comparison::of(&analyse(processes(markers)), &[])
                .whole
                .before;
            whole.unwrap().cpu_seconds
        };
        assert_eq!(run(&[30.0, 9000.0]), 23.0);
        assert!(run(&[30.0, f64::NAN]).is_nan());
    }

    #[test]
    fn a_site_that_only_one_run_has_is_listed() {
        let compared = Comparison::of(&run(|_| 100.0), &[]);
        assert!(compared.whole.after.is_none() && compared.sites[0].sum.after.is_none());
        assert!(compared.sites[0].sum.before.is_some());
    }
}
