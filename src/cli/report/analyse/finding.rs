//! The finding for one process: the verdict, and the numbers that led to it.

use clap::ValueEnum;
use serde::Serialize;

use super::fit::StageGrowth;
use super::gpu::GpuGrowth;
use super::kill::Kill;
use super::pace::Pace;
use super::stats::{median, quantile, Estimate, Trend};
use crate::report::model::{Process, Series, Size, Sizes, Unit};

/// The word in place of the verdict.
pub const KILLED: &str = "killed";

/// In the order of help and completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verdict {
    LiveGrowth,
    Retention,
    /// The process grows, and the markers contain only RSS, which does not show why.
    Growth,
    Swap,
    FileBacked,
    Unclear,
    WarmingUp,
    /// Live memory rises until a full garbage collection and falls with it.
    CyclicGarbage,
    Falling,
    Flat,
    NotEnoughRounds,
}

impl Verdict {
    pub fn all() -> impl Iterator<Item = Verdict> {
        Verdict::value_variants().iter().copied()
    }

    pub fn name(self) -> &'static str {
        self.row().0
    }

    pub fn is_growth(self) -> bool {
        self.row().1
    }

    /// There are enough rounds for a verdict, and growth is neither certain nor excluded.
    pub fn is_undecided(self) -> bool {
        matches!(self, Verdict::Unclear | Verdict::WarmingUp)
    }

    /// The place in a list that begins with the most urgent verdict.
    pub fn urgency(self) -> u8 {
        self.row().2
    }

    /// The name, whether it is a kind of growth, and the urgency.
    fn row(self) -> (&'static str, bool, u8) {
        match self {
            Verdict::LiveGrowth => ("live growth", true, 0),
            Verdict::Retention => ("retention", true, 1),
            Verdict::Growth => ("growth", true, 2),
            Verdict::Swap => ("swap", true, 3),
            Verdict::FileBacked => ("file-backed", true, 4),
            Verdict::Unclear => ("unclear", false, 5),
            Verdict::WarmingUp => ("warming up", false, 6),
            Verdict::CyclicGarbage => ("cyclic garbage", false, 7),
            Verdict::Falling => ("falling", false, 8),
            Verdict::Flat => ("flat", false, 9),
            Verdict::NotEnoughRounds => ("not enough rounds", false, 10),
        }
    }
}

/// The quantity whose trend decided the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    #[serde(rename = "rss_and_swap")]
    Footprint,
    /// RSS and swap without the pages that the recycler caches, which it returns at need.
    #[serde(rename = "rss_and_swap_without_cached")]
    WithoutCached,
    /// Live memory, while the footprint does not grow: new blocks fill free pages of the allocator.
    Live,
    /// Swap, while the footprint does not grow.
    Swap,
    /// Memory without the garbage that full collections release.
    #[serde(rename = "left_by_collections")]
    AfterCollections,
    /// The highest RSS inside each round, while no growth at the markers is certain.
    #[serde(rename = "peak_in_round")]
    Peak,
}

impl Quantity {
    pub fn of(self, sizes: &Sizes) -> Option<f64> {
        match self {
            Quantity::Footprint | Quantity::AfterCollections | Quantity::Peak => {
                Some(sizes.footprint())
            }
            Quantity::WithoutCached => Some(sizes.footprint() - sizes.cached()),
            Quantity::Live => sizes.get(Size::Live),
            Quantity::Swap => sizes.get(Size::Swap),
        }
    }
}

/// The finding for one process.
pub struct Finding<'a> {
    pub process: &'a Process,
    /// Evidence that the kernel killed it.
    pub kill: Option<Kill>,
    /// That of `--limit`.
    pub limit: Option<f64>,
    pub verdict: Verdict,
    pub quantity: Quantity,
    /// The stage whose rounds were compared.
    pub series: &'a Series,
    pub unit: Unit,
    pub stages: Vec<StageGrowth<'a>>,
    pub pace: Option<Pace>,
    /// The trend of the quantity. If that is the footprint, the stage's row shows the same trend.
    pub trend: Trend,
    /// Its slope in bytes per hour, if the observation is long enough.
    pub hourly: Option<Estimate>,
    /// Growth of the highest RSS inside the rounds, if that is faster than at the markers.
    pub peak_growth: Option<PeakGrowth>,
    /// The height of the level after the warm-up, of live memory if known, else of RSS.
    pub swing: f64,
    /// The same as a share of the size, if several full collections may explain it.
    pub swing_share: Option<f64>,
    /// The single changes of the level that are not growth.
    pub steps: Vec<NamedStep>,
    pub parts: GrowthParts,
    /// The shares of the growth, the largest first.
    pub causes: Vec<Cause>,
    /// Median sizes after the warm-up.
    pub typical: Sizes,
    /// The footprint after the warm-up, with or without cached pages, and the cached pages.
    pub level: Level,
    pub level_of: Quantity,
    pub cached: Level,
    /// Growth of PyTorch's memory on GPUs.
    pub gpu_growth: Option<GpuGrowth>,
    /// False if it has ended, or was silent for three rounds, at least a minute, while other processes of its control group were not.
    pub may_run: bool,
}

#[derive(Clone)]
pub struct PeakGrowth {
    pub slope: Estimate,
    /// Most peaks come before a marker of this stage.
    pub before_stage: Option<String>,
}

/// The values of a size that does not grow.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub median: f64,
    /// The 5 % and 95 % quantiles.
    pub range: (f64, f64),
    /// Almost all values are near one end of the range or the other, and it changes between them.
    pub alternates: bool,
}

impl Level {
    pub fn of(values: impl Iterator<Item = f64>) -> Level {
        const MIN_CHANGES: usize = 2;
        const NEAR_END: f64 = 0.2;
        let values: Vec<f64> = values.collect();
        let range @ (low, high) = (quantile(&values, 0.05), quantile(&values, 0.95));
        let places = values.iter().map(|value| (value - low) / (high - low));
        let is_far = |place: &f64| (NEAR_END..=1.0 - NEAR_END).contains(place);
        let far = places.clone().filter(is_far).count();
        let is_high: Vec<bool> = places.map(|place| place > 0.5).collect();
        let changes = is_high.windows(2).filter(|pair| pair[0] != pair[1]).count();
        Level {
            median: median(&values),
            range,
            alternates: high > low && changes >= MIN_CHANGES && 10 * far <= values.len(),
        }
    }

    pub fn height(&self) -> f64 {
        self.range.1 - self.range.0
    }
}

impl Finding<'_> {
    /// The slope, if the verdict is a kind of growth.
    pub fn growth(&self) -> Option<&Estimate> {
        self.verdict.is_growth().then_some(&self.trend.slope)
    }

    /// The verdict, or `killed`.
    pub fn verdict_name(&self) -> &'static str {
        match self.is_killed() {
            true => KILLED,
            false => self.verdict.name(),
        }
    }

    pub fn is_killed(&self) -> bool {
        self.kill.as_ref().is_some_and(Kill::is_certain)
    }

    /// The slope, unless it will not continue: that of a warm-up, of cyclic garbage, or of too few
    /// rounds.
    pub fn lasting_slope(&self) -> Option<Estimate> {
        use Verdict::{CyclicGarbage, NotEnoughRounds, WarmingUp};
        let is_temporary = matches!(self.verdict, NotEnoughRounds | WarmingUp | CyclicGarbage);
        (!is_temporary).then_some(self.trend.slope)
    }

    /// That of the peaks inside the rounds, which reach a limit first, or else that of the trend.
    pub fn fastest_growth(&self) -> Estimate {
        let peak = self.peak_growth.as_ref().map(|peak| peak.slope);
        peak.unwrap_or(self.trend.slope)
    }

    /// The growth that counts for a limit: no pages in swap, and no pages of files, which the kernel drops there. `None` if
    /// the rest is less than half of what matters.
    pub fn growth_to_limit(&self) -> Option<Estimate> {
        let growth = match self.verdict {
            Verdict::Swap => self.peak_growth.as_ref()?.slope,
            verdict => verdict.is_growth().then(|| self.fastest_growth())?,
        };
        let of_files = match self.quantity {
            Quantity::Live | Quantity::AfterCollections | Quantity::Swap => 0.0,
            Quantity::Footprint | Quantity::WithoutCached | Quantity::Peak => {
                self.parts.file.unwrap_or(0.0).max(0.0)
            }
        };
        let rest = growth.map(|rate| rate - of_files);
        (2.0 * rest.value > self.trend.threshold).then_some(rest)
    }

    /// The unit of `rounds`. If the axis shows minutes, `rounds` counts markers.
    pub fn rounds_unit(&self) -> Unit {
        match self.unit {
            Unit::Minute | Unit::Marker => Unit::Marker,
            Unit::Round => Unit::Round,
        }
    }
}

/// A single change of the level, with the kind of memory that changed most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NamedStep {
    /// The round, minute or marker.
    pub at: f64,
    pub bytes: f64,
    pub kind: MemoryKind,
    /// From the step to the end of the series.
    #[serde(skip)]
    pub samples: usize,
}

/// Growth per round of the parts of the footprint; `None` if unknown.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GrowthParts {
    pub live: Option<f64>,
    /// Retained and cached memory.
    #[serde(rename = "retained_and_recycled")]
    pub kept_free: Option<f64>,
    /// The part of it that the library does not return at need.
    #[serde(skip)]
    pub retained: Option<f64>,
    pub recycled: Option<f64>,
    pub file: Option<f64>,
    pub shmem: Option<f64>,
    /// Shared memory that PyTorch has pinned, which `shmem` does not contain.
    pub pinned: Option<f64>,
    pub swap: Option<f64>,
    /// Small Python objects, stacks, mapped buffers.
    pub outside_malloc: f64,
    /// Known parts of `outside_malloc`.
    pub pymalloc: Option<f64>,
    pub arrow: Option<f64>,
}

impl GrowthParts {
    /// Of the pages that are backed by files, shared memory grows most, which the kernel cannot drop.
    pub fn is_mostly_shared(&self) -> bool {
        self.shmem.unwrap_or(0.0) > self.file.unwrap_or(0.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    Live,
    #[serde(rename = "retained_and_recycled")]
    KeptFree,
    File,
    /// Shared memory that PyTorch has not pinned.
    Shmem,
    /// Memory that PyTorch has pinned for a GPU, in use or cached. NVIDIA's driver serves it from shared memory.
    Pinned,
    Swap,
    OutsideMalloc,
    /// The markers contain only RSS.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cause {
    pub kind: MemoryKind,
    /// Share of the growth, 0 to 1.
    pub share: f64,
}

impl Cause {
    pub const ALL_LIVE: Cause = Cause {
        kind: MemoryKind::Live,
        share: 1.0,
    };

    pub fn verdict(self) -> Verdict {
        match self.kind {
            MemoryKind::Live | MemoryKind::Pinned | MemoryKind::OutsideMalloc => {
                Verdict::LiveGrowth
            }
            MemoryKind::KeptFree => Verdict::Retention,
            MemoryKind::File | MemoryKind::Shmem => Verdict::FileBacked,
            MemoryKind::Swap => Verdict::Swap,
            MemoryKind::Unknown => Verdict::Growth,
        }
    }
}
