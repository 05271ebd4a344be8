//! The result of a comparison: variants with their runs, and the figures of each.

use std::path::{Path, PathBuf};

use super::figure::{self, Spread};
use super::series::Series;
use super::variants::Variant;
use crate::report::Change;
use crate::units::{plural, size};

/// A figure of a run.
pub struct Metric {
    /// The name in JSON.
    pub key: &'static str,
    pub heading: &'static str,
    /// The name in a sentence.
    pub name: &'static str,
    pub of: fn(&Run) -> Option<f64>,
    pub text: fn(f64) -> String,
}

/// A figure from each row: its name in JSON, its heading, its name in a sentence, its value and the form of that.
macro_rules! metrics {
    ($($key:ident: $heading:literal, $name:literal, $of:expr, $text:expr;)*) => {
        [$(Metric { key: stringify!($key), heading: $heading, name: $name, of: $of, text: $text }),*]
    };
}

pub const METRICS: [Metric; 5] = metrics! {
    peak_pss_bytes: "PEAK", "memory at the peak", |run| Some(run.series.peak()), size;
    mean_pss_bytes: "MEAN", "memory on average", |run| Some(run.series.mean()), size;
    idle_pss_bytes: "IDLE", "memory when idle", |run| run.series.idle(), size;
    cpu_s: "CPU", "CPU time", |run| Some(run.cpu_s), seconds;
    wall_s: "TIME", "elapsed time", |run| Some(run.wall_s), seconds;
};

/// `9.87 s`, `41.2 s`
fn seconds(seconds: f64) -> String {
    let decimals = if seconds < 9.995 { 2 } else { 1 };
    format!("{seconds:.decimals$} s")
}

/// One run that ended with status 0.
#[derive(Debug, Clone)]
pub struct Run {
    pub series: Series,
    pub cpu_s: f64,
    pub wall_s: f64,
    /// The share of the machine's CPUs that other programs used; `None` if unknown.
    pub load_of_others: Option<f64>,
}

/// Other programs that use more of the CPUs than this change the times of a run.
pub const MAX_LOAD: f64 = 0.2;

impl Run {
    pub fn was_disturbed(&self) -> bool {
        /// The kernel counts in steps of 10 ms, too coarse for a shorter run.
        const MIN_SECONDS: f64 = 1.0;
        self.wall_s >= MIN_SECONDS && self.load_of_others.is_some_and(|load| load > MAX_LOAD)
    }
}

/// A run that failed. No later run of the variant is started.
#[derive(Debug, Clone)]
pub struct Failure {
    /// `exit status 1`, `killed by signal 9 (SIGKILL)`
    pub status: String,
    /// `None` if it was not started.
    pub log: Option<PathBuf>,
}

/// A variant and its runs so far.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub name: String,
    /// The preloaded library.
    pub library: Option<PathBuf>,
    pub runs: Vec<Run>,
    pub failure: Option<Failure>,
}

impl Outcome {
    pub fn of(variant: &Variant) -> Outcome {
        Outcome {
            name: variant.name.clone(),
            library: variant.library.clone(),
            runs: Vec::new(),
            failure: None,
        }
    }

    fn figures(&self, metric: &Metric) -> Vec<f64> {
        self.runs.iter().filter_map(metric.of).collect()
    }

    pub fn spread(&self, metric: &Metric) -> Option<Spread> {
        Spread::of(&self.figures(metric))
    }

    pub fn change_from(&self, base: &Outcome, metric: &Metric) -> Option<Change> {
        figure::change(&base.figures(metric), &self.figures(metric))
    }

    /// The run with the median mean size, which charts show.
    pub fn typical_run(&self) -> Option<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by(|a, b| a.series.mean().total_cmp(&b.series.mean()));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    pub fn is_flarena(&self) -> bool {
        self.name.starts_with(FLARENA)
    }
}

pub const PLAIN: &str = "plain";
/// The names of both modes start with this.
pub const FLARENA: &str = "flarena ";

/// Everything that the outputs show.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The program or script, without its arguments, which can contain tokens.
    pub command: String,
    pub cpus: usize,
    /// The requested number of runs of each variant.
    pub runs: usize,
    pub outcomes: Vec<Outcome>,
}

impl Comparison {
    /// The variant that all others are compared with.
    pub fn plain(&self) -> &Outcome {
        &self.outcomes[0]
    }

    /// The change of a variant against plain. Plain itself has none.
    pub fn change(&self, outcome: &Outcome, metric: &Metric) -> Option<Change> {
        let plain = self.plain();
        let change = outcome.change_from(plain, metric);
        change.filter(|_| outcome.name != plain.name)
    }

    pub fn is_empty(&self) -> bool {
        self.outcomes.iter().all(|outcome| outcome.runs.is_empty())
    }

    pub fn has_failed(&self) -> bool {
        let mut outcomes = self.outcomes.iter();
        outcomes.any(|outcome| outcome.failure.is_some())
    }

    /// `None`, or a sentence about the runs beside which other programs were busy.
    pub fn disturbance(&self) -> Option<String> {
        let runs = || self.outcomes.iter().flat_map(|outcome| &outcome.runs);
        let disturbed = runs().filter(|run| run.was_disturbed()).count();
        (disturbed > 0).then(|| {
            format!(
                "In {disturbed} of {} other programs used more than {:.0} % of the CPUs, also when they were repeated: \
                 their times may be too long. Compare on a quiet machine.",
                plural(runs().count() as u64, "run"),
                100.0 * MAX_LOAD
            )
        })
    }

    /// `train.py, 3 interleaved runs of each variant, 2 CPUs`
    pub fn title(&self) -> String {
        let runs = match self.runs {
            1 => "one run of each variant".to_owned(),
            n => format!("{n} interleaved runs of each variant"),
        };
        let cpus = plural(self.cpus as u64, "CPU");
        format!("{}, {runs}, {cpus}", self.command)
    }
}

/// The log of a run: `plain-1.log`, `flarena-jemalloc-2.log`.
pub fn log_path(dir: &Path, variant: &str, run: usize) -> PathBuf {
    dir.join(format!("{}-{run}.log", variant.replace(' ', "-")))
}

/// The variants of one turn. Each turn starts with another variant, so that a machine that becomes
/// slower or faster favours none.
pub fn order_of_turn(turn: usize, variants: usize) -> impl Iterator<Item = usize> {
    (0..variants).map(move |place| (place + turn) % variants)
}

#[cfg(test)]
pub mod fixtures {
    use super::super::series::Sample;
    use super::*;

    /// A run of `seconds` at a constant size, without CPU use.
    pub fn run(megabytes: f64, seconds: f64) -> Run {
        let mut series = Series::default();
        for i in 0..=20 {
            series.push(Sample {
                at: seconds * f64::from(i) / 20.0,
                pss_bytes: megabytes * 1024.0 * 1024.0,
                cpu_s: 0.0,
            });
        }
        Run {
            series,
            cpu_s: seconds / 2.0,
            wall_s: seconds,
            load_of_others: Some(0.0),
        }
    }

    pub fn outcome(name: &str, megabytes: &[f64]) -> Outcome {
        Outcome {
            name: name.to_owned(),
            library: None,
            runs: megabytes.iter().map(|size| run(*size, 40.0)).collect(),
            failure: None,
        }
    }

    pub fn comparison(outcomes: Vec<Outcome>) -> Comparison {
        Comparison {
            command: "train.py".to_owned(),
            cpus: 2,
            runs: 3,
            outcomes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::outcome;
    use super::*;

    #[test]
    fn each_turn_has_every_variant_once_and_starts_with_another() {
        let turn = |turn| order_of_turn(turn, 3).collect::<Vec<_>>();
        assert_eq!(
            [turn(0), turn(1), turn(2)],
            [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
        );
    }

    #[test]
    fn the_typical_run_has_the_median_mean() {
        let outcome = outcome(PLAIN, &[30.0, 10.0, 20.0]);
        assert_eq!(
            outcome.typical_run().unwrap().series.peak(),
            20.0 * 1024.0 * 1024.0
        );
        assert!(super::fixtures::outcome(PLAIN, &[]).typical_run().is_none());
    }

    #[test]
    fn a_log_is_named_by_variant_and_run() {
        let path = log_path(Path::new("logs"), "flarena jemalloc", 2);
        assert_eq!(path, Path::new("logs/flarena-jemalloc-2.log"));
    }
}
