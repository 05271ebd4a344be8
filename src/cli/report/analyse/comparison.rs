//! Compares two runs, site by site and stage by stage.
//!
//! Processes of one site and one name belong together in both runs, because their pids differ.

use std::collections::BTreeMap;

use super::stats::{mean_interval, Change, ChangeVerdict, Interval, Slope};
use super::together::{Grouping, Together};
use super::{ProcessReport, Verdict};
use crate::report::model::{Series, Size, Unit};

/// The value before and the value after; `None` if a run lacks the site or the stage.
pub type Pair<T> = [Option<T>; 2];

pub struct Comparison {
    pub whole: Pair<Whole>,
    /// The site with the process that changed most first.
    pub sites: Vec<SiteComparison>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Whole {
    pub sum: Sum,
    pub rounds: u64,
    /// Name and growth per unit of each process that grows.
    pub growing: Vec<(String, f64, Unit)>,
    /// Processes with enough rounds for a verdict.
    pub judged: usize,
    /// Whether one of these may grow.
    pub is_undecided: bool,
}

/// The sum of some processes.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    pub peak: f64,
    /// Over time; NaN if the markers have no times.
    pub mean: f64,
    /// CPU time in seconds; NaN if it is unknown for one of them.
    pub cpu_seconds: f64,
}

pub struct SiteComparison {
    pub site: String,
    pub sum: Pair<Sum>,
    /// The one that changed most first.
    pub processes: Vec<ProcessComparison>,
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

/// The processes of one name in both runs.
type Members<'a> = [Vec<&'a ProcessReport>; 2];

impl Comparison {
    pub fn of(before: &[ProcessReport], after: &[ProcessReport]) -> Comparison {
        let together = [Together::of(before), Together::of(after)];
        let mut named: BTreeMap<String, BTreeMap<String, Members>> = BTreeMap::new();
        for (run, reports) in [before, after].into_iter().enumerate() {
            for report in reports {
                let site = named.entry(report.process.site_names()).or_default();
                site.entry(report.process_name()).or_default()[run].push(report);
            }
        }
        let site = |(site, processes): (String, BTreeMap<String, Members>)| {
            let here = |run: usize| processes.values().flat_map(move |runs| &runs[run]).copied();
            let sum = [0, 1].map(|run| sum(here(run), together[run].as_ref()?, &site));
            let processes = processes
                .into_iter()
                .map(|(name, runs)| process(name, runs));
            let mut processes: Vec<ProcessComparison> = processes.collect();
            processes.sort_by(|a, b| b.size_of_change().total_cmp(&a.size_of_change()));
            SiteComparison {
                site,
                sum,
                processes,
            }
        };
        let mut sites: Vec<SiteComparison> = named.into_iter().map(site).collect();
        let change = |site: &SiteComparison| site.processes[0].size_of_change();
        let peak = |site: &SiteComparison| {
            let peaks = site.sum.iter().flatten().map(|sum| sum.peak);
            peaks.fold(0.0, f64::max)
        };
        sites.sort_by(|a, b| {
            change(b)
                .total_cmp(&change(a))
                .then(peak(b).total_cmp(&peak(a)))
        });
        let [first, last] = &together;
        Comparison {
            whole: [whole(before, first.as_ref()), whole(after, last.as_ref())],
            sites,
        }
    }

    /// The name of the process that changed most, its stage that did, and the change of its mean.
    pub fn most_changed(&self) -> Option<(String, &str, Change)> {
        let site = self.sites.first()?;
        let process = site.processes.first()?;
        let (stage, change) = process.largest_change()?;
        Some((
            format!("{} {}", site.site, process.name),
            &stage.stage,
            change,
        ))
    }
}

impl ProcessComparison {
    /// The stage whose mean changed most, if a stage changed beyond noise.
    fn largest_change(&self) -> Option<(&StageComparison, Change)> {
        let changes = self
            .stages
            .iter()
            .filter_map(|stage| Some((stage, stage.change()?)));
        let changes = changes.filter(|(_, change)| match change.verdict {
            ChangeVerdict::Less | ChangeVerdict::More => true,
            ChangeVerdict::OneRun => change.percent().abs() >= 1.0,
            ChangeVerdict::WithinNoise => false,
        });
        changes.max_by(|(_, a), (_, b)| a.size().total_cmp(&b.size()))
    }

    fn size_of_change(&self) -> f64 {
        self.largest_change()
            .map_or(0.0, |(_, change)| change.size())
    }

    /// Both runs have the process with the same verdict, and no stage changed beyond noise.
    pub fn is_equal(&self) -> bool {
        let [before, after] = self.verdicts;
        before.is_some() && before == after && self.largest_change().is_none()
    }
}

impl StageComparison {
    /// The change of the mean.
    pub fn change(&self) -> Option<Change> {
        let [before, after] = &self.sizes;
        Some(Change::of_means(
            &before.as_ref()?.mean,
            &after.as_ref()?.mean,
        ))
    }
}

fn whole(reports: &[ProcessReport], together: Option<&Together>) -> Option<Whole> {
    let peaks = reports.iter().map(|report| report.process.peak_rss);
    let largest = peaks.fold(f64::NAN, f64::max);
    let growing = reports.iter().filter_map(|report| {
        let slope = report.growth()?;
        Some((report.full_name(), slope.per_x, report.finding.unit))
    });
    let is_judged = |r: &&ProcessReport| r.finding.verdict != Verdict::NotEnoughRounds;
    let (peak, mean) = together.map_or((largest, f64::NAN), |all| (all.peak, all.mean));
    (!reports.is_empty()).then(|| Whole {
        sum: Sum::of(peak, mean, reports.iter()),
        rounds: reports.iter().map(|r| r.finding.rounds).max().unwrap_or(0),
        growing: growing.collect(),
        judged: reports.iter().filter(is_judged).count(),
        is_undecided: reports.iter().any(|r| r.finding.verdict.is_undecided()),
    })
}

fn sum<'a>(
    reports: impl Iterator<Item = &'a ProcessReport>,
    all: &Together,
    site: &str,
) -> Option<Sum> {
    let mut reports = reports.peekable();
    reports.peek()?;
    let (peak, mean) = match all.grouping {
        Grouping::Processes => (all.peak, all.mean),
        Grouping::Sites => {
            let group = all.groups.iter().find(|group| group.name == site)?;
            (group.peak, group.mean)
        }
    };
    Some(Sum::of(peak, mean, reports))
}

impl Sum {
    fn of<'a>(peak: f64, mean: f64, reports: impl Iterator<Item = &'a ProcessReport>) -> Sum {
        let cpu_seconds = reports.map(|report| report.process.cpu_seconds()).sum();
        Sum {
            peak,
            mean,
            cpu_seconds,
        }
    }
}

fn process(name: String, runs: Members) -> ProcessComparison {
    let worst = |reports: &Vec<&ProcessReport>| {
        let verdicts = reports.iter().map(|report| report.finding.verdict);
        verdicts.min_by_key(|verdict| verdict.urgency())
    };
    let mut stages: Vec<String> = Vec::new();
    for stage in runs.iter().flatten().flat_map(|report| &report.stages) {
        if !stages.contains(&stage.stage) {
            stages.push(stage.stage.clone());
        }
    }
    let stage = |stage: String| StageComparison {
        sizes: runs.each_ref().map(|reports| sizes(reports, &stage)),
        stage,
    };
    ProcessComparison {
        name,
        verdicts: runs.each_ref().map(worst),
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
    use crate::report::analyse::fixtures::{if_known, processes, sample, sizes};
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
        assert_eq!(process.verdicts[1], Some(Verdict::Flat));
        let stage = &process.stages[0].sizes;
        let [Some(old), Some(new)] = stage else {
            panic!()
        };
        assert!((new.mean.value / MB - 302.0).abs() < 0.2, "{:?}", new.mean);
        assert!(new.mean.low < new.mean.value && new.mean.high < 304.0 * MB);
        assert!((old.growth.as_ref().unwrap().per_x / MB - 10.0).abs() < 0.5);
        let [Some(old), Some(new)] = compared.whole.clone() else {
            panic!()
        };
        assert_eq!((old.growing.len(), new.growing.len()), (1, 0));
        assert_eq!(new.sum.peak / MB, 304.0);
    }

    #[test]
    fn cpu_time_is_that_of_the_program_and_unknown_if_a_process_has_none() {
        let marker = |pid: u32, cpu: f64| {
            move |i: usize| Sample {
                pid: Some(pid),
                stage: if i == 0 { "load" } else { "send" }.into(),
                t: Some(60.0 * i as f64),
                cpu_ms: if_known(cpu + 500.0 * i as f64),
                ..sample(i, sizes(&[(Size::Rss, 100.0)]))
            }
        };
        let run = |cpus: &[f64]| {
            let markers = (1..)
                .zip(cpus)
                .flat_map(|(pid, cpu)| (0..24).map(marker(pid, *cpu)));
            let [before, _] = Comparison::of(&analyse(processes(markers)), &[]).whole;
            before.unwrap().sum.cpu_seconds
        };
        assert_eq!(run(&[30.0, 9000.0]), 23.0);
        assert!(run(&[30.0, f64::NAN]).is_nan());
    }

    #[test]
    fn a_site_that_only_one_run_has_is_listed() {
        let compared = Comparison::of(&run(|_| 100.0), &[]);
        assert!(compared.whole[1].is_none() && compared.sites[0].sum[1].is_none());
        assert!(compared.sites[0].sum[0].is_some());
    }

    #[test]
    fn the_process_that_changed_most_comes_first_and_one_within_noise_is_equal() {
        let noise = |i: usize| (i * 7 % 5) as f64;
        let run = |sizes_mb: [f64; 3]| {
            let marker = |site: usize, i: usize| Sample {
                site: Some(format!("site-{site}")),
                pid: Some(site as u32),
                ..sample(i, sizes(&[(Size::Rss, sizes_mb[site] + noise(i))]))
            };
            let markers = (0..3).flat_map(|site| (0..24).map(move |i| (site, i)));
            analyse(processes(markers.map(|(site, i)| marker(site, i))))
        };
        let compared = Comparison::of(&run([900.0, 500.0, 400.0]), &run([900.1, 450.0, 200.0]));
        let sites: Vec<&str> = compared.sites.iter().map(|site| &*site.site).collect();
        assert_eq!(sites, ["site-2", "site-1", "site-0"]);
        let (name, _, change) = compared.most_changed().unwrap();
        assert_eq!((&*name, &*change.amount()), ("site-2 TR", "-50 %"));
        let equal = compared
            .sites
            .iter()
            .map(|site| site.processes[0].is_equal());
        assert_eq!(equal.collect::<Vec<_>>(), [false, false, true]);
    }
}
