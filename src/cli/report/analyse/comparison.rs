//! Compares two runs, site by site and stage by stage.
//!
//! Processes of one site and one name belong together in both runs, because their pids differ.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::json;

use super::stats::{mean_interval, Change, ChangeVerdict, Interval, Slope};
use super::together::{Grouping, Together};
use super::{ProcessReport, Verdict};
use crate::report::model::{Series, Size, Unit};

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

    pub fn known(&self) -> impl Iterator<Item = &T> {
        self.before.iter().chain(&self.after)
    }
}

#[derive(Serialize)]
pub struct Comparison<'a> {
    #[serde(skip)]
    pub runs: [&'a [ProcessReport]; 2],
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
    #[serde(rename = "proc")]
    pub name: String,
    #[serde(rename = "verdict")]
    pub verdicts: Pair<&'static str>,
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
    #[serde(rename = "mean_bytes")]
    pub mean: Interval,
    #[serde(rename = "peak_bytes")]
    pub peak: f64,
    #[serde(serialize_with = "per_unit")]
    pub growth: Option<Slope>,
    pub unit: &'static str,
}

fn per_unit<S: Serializer>(growth: &Option<Slope>, serializer: S) -> Result<S::Ok, S::Error> {
    let value = |Slope { per_x, low, high }: &Slope| json!({ "bytes_per_unit": per_x, "low_95": low, "high_95": high });
    growth.as_ref().map(value).serialize(serializer)
}

/// The processes of one name in both runs.
type Members<'a> = [Vec<&'a ProcessReport>; 2];

impl<'a> Comparison<'a> {
    pub fn of(before: &'a [ProcessReport], after: &'a [ProcessReport]) -> Comparison<'a> {
        let runs = [before, after];
        let together = runs.map(Together::of);
        let mut named: BTreeMap<String, BTreeMap<String, Members>> = BTreeMap::new();
        for (run, reports) in runs.into_iter().enumerate() {
            for report in reports {
                let site = named.entry(report.process.site_names()).or_default();
                site.entry(report.process_name()).or_default()[run].push(report);
            }
        }
        let site = |(site, processes): (String, BTreeMap<String, Members>)| {
            let members = |run: usize| processes.values().flat_map(move |runs| &runs[run]).copied();
            let sums = [0, 1].map(|run| sum(members(run), together[run].as_ref(), Some(&site)));
            let processes = processes
                .into_iter()
                .map(|(name, runs)| process(name, runs));
            let mut processes: Vec<ProcessComparison> = processes.collect();
            processes.sort_by(|a, b| b.size_of_change().total_cmp(&a.size_of_change()));
            SiteComparison {
                site,
                sums: Sums::of(sums),
                processes,
            }
        };
        let mut sites: Vec<SiteComparison> = named.into_iter().map(site).collect();
        sites.sort_by(|a, b| b.rank().partial_cmp(&a.rank()).unwrap_or(Ordering::Equal));
        let sums = [0, 1].map(|run| sum(runs[run].iter(), together[run].as_ref(), None));
        Comparison {
            runs,
            sums: Sums::of(sums),
            rounds: Pair::of(runs, |run| run.iter().map(|r| r.finding.rounds).max()),
            growing: Pair::of(runs, |run| {
                let growing = run.iter().filter(|report| report.growth().is_some());
                (!run.is_empty()).then(|| growing.map(ProcessReport::full_name).collect())
            }),
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

/// The peak, the mean and the CPU time of some processes of a run; NaN if unknown.
fn sum<'a>(
    members: impl Iterator<Item = &'a ProcessReport> + Clone,
    all: Option<&Together>,
    site: Option<&str>,
) -> Option<[f64; 3]> {
    members.clone().next()?;
    let largest = || members.clone().map(|report| report.process.peak_rss);
    let (peak, mean) = match (all, site) {
        (Some(all), Some(site)) if all.grouping == Grouping::Sites => {
            let group = all.groups.iter().find(|group| group.name == site)?;
            (group.peak, group.mean)
        }
        (Some(all), _) => (all.peak, all.mean),
        (None, _) => (largest().fold(f64::NAN, f64::max), f64::NAN),
    };
    let cpu_seconds = members.map(|report| report.process.cpu_seconds());
    Some([peak, mean, cpu_seconds.sum()])
}

impl Sums {
    fn of(runs: [Option<[f64; 3]>; 2]) -> Sums {
        let known = |figure: usize| {
            let value = |run: Option<[f64; 3]>| run.map(|run| run[figure]);
            Pair::of(runs, |run| value(run).filter(|value| !value.is_nan()))
        };
        Sums {
            peak_bytes: known(0),
            mean_bytes: known(1),
            cpu_seconds: known(2),
        }
    }
}

impl SiteComparison {
    /// The largest change of its processes, then the peak.
    fn rank(&self) -> (f64, f64) {
        let peak = self.sums.peak_bytes.known().copied().fold(0.0, f64::max);
        (self.processes[0].size_of_change(), peak)
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
        let Pair { before, after } = self.verdicts;
        before.is_some() && before == after && self.largest_change().is_none()
    }
}

impl StageComparison {
    /// The change of the mean.
    pub fn change(&self) -> Option<Change> {
        let Pair { before, after } = &self.sizes;
        Some(Change::of_means(
            &before.as_ref()?.mean,
            &after.as_ref()?.mean,
        ))
    }
}

fn process(name: String, runs: Members) -> ProcessComparison {
    let worst = |reports: &Vec<&ProcessReport>| {
        let verdicts = reports.iter().map(|report| report.finding.verdict);
        verdicts
            .min_by_key(|verdict| verdict.urgency())
            .map(Verdict::name)
    };
    let mut stages: Vec<String> = Vec::new();
    for stage in runs.iter().flatten().flat_map(|report| &report.stages) {
        if !stages.contains(&stage.stage) {
            stages.push(stage.stage.clone());
        }
    }
    let stage = |stage: String| StageComparison {
        sizes: Pair::of(runs.each_ref(), |reports| sizes(reports, &stage)),
        stage,
    };
    ProcessComparison {
        name,
        verdicts: Pair::of(runs.each_ref(), worst),
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
        let is_most = |slope: &Slope| growth.is_none_or(|(most, _)| most.per_x < slope.per_x);
        if let Some(slope) = own.filter(is_most) {
            growth = Some((slope, series.unit()));
        }
    }
    (!values.is_empty()).then(|| StageSizes {
        rounds,
        mean: mean_interval(&values),
        peak,
        unit: growth.map_or(Unit::Round, |(_, unit)| unit).name(),
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
        let after = run(|i| 300.0 + noise(i));
        let compared = Comparison::of(&before, &after);
        let [site] = &compared.sites[..] else {
            panic!()
        };
        let [process] = &site.processes[..] else {
            panic!()
        };
        assert_eq!((&*site.site, &*process.name), ("site-1", "TR"));
        assert_eq!(process.verdicts.after, Some("flat"));
        let Pair { before, after } = &process.stages[0].sizes;
        let (old, new) = (before.as_ref().unwrap(), after.as_ref().unwrap());
        assert!((new.mean.value / MB - 302.0).abs() < 0.2, "{:?}", new.mean);
        assert!(new.mean.low < new.mean.value && new.mean.high < 304.0 * MB);
        assert!((old.growth.as_ref().unwrap().per_x / MB - 10.0).abs() < 0.5);
        let growing: Vec<usize> = compared.growing.known().map(Vec::len).collect();
        assert_eq!(growing, [1, 0]);
        assert_eq!(compared.sums.peak_bytes.after.unwrap() / MB, 304.0);
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
            let before = analyse(processes(markers));
            let compared = Comparison::of(&before, &[]);
            compared.sums.cpu_seconds.before
        };
        assert_eq!(run(&[30.0, 9000.0]), Some(23.0));
        assert_eq!(run(&[30.0, f64::NAN]), None);
    }

    #[test]
    fn a_site_that_only_one_run_has_is_listed() {
        let before = run(|_| 100.0);
        let compared = Comparison::of(&before, &[]);
        let peaks = [&compared.sums, &compared.sites[0].sums].map(|sums| &sums.peak_bytes);
        assert!(peaks
            .iter()
            .all(|peak| peak.before.is_some() && peak.after.is_none()));
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
        let runs = [[900.0, 500.0, 400.0], [900.1, 450.0, 200.0]].map(run);
        let compared = Comparison::of(&runs[0], &runs[1]);
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
