//! The finding for one process: the verdict, and the numbers that led to it.

use clap::ValueEnum;
use serde::Serialize;

use super::stats::{median, quantile, Slope, Trend};
use crate::report::model::{Sizes, Unit};

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
        match self {
            Verdict::LiveGrowth => "live growth",
            Verdict::Retention => "retention",
            Verdict::Growth => "growth",
            Verdict::Swap => "swap",
            Verdict::FileBacked => "file-backed",
            Verdict::Unclear => "unclear",
            Verdict::WarmingUp => "warming up",
            Verdict::CyclicGarbage => "cyclic garbage",
            Verdict::Falling => "falling",
            Verdict::Flat => "flat",
            Verdict::NotEnoughRounds => "not enough rounds",
        }
    }

    pub fn is_growth(self) -> bool {
        match self {
            Verdict::LiveGrowth
            | Verdict::Retention
            | Verdict::Growth
            | Verdict::Swap
            | Verdict::FileBacked => true,
            Verdict::Unclear
            | Verdict::WarmingUp
            | Verdict::CyclicGarbage
            | Verdict::Falling
            | Verdict::Flat
            | Verdict::NotEnoughRounds => false,
        }
    }

    /// The place in a list that begins with the most urgent verdict.
    pub fn urgency(self) -> u8 {
        match self {
            Verdict::LiveGrowth => 0,
            Verdict::Retention => 1,
            Verdict::Growth => 2,
            Verdict::Swap => 3,
            Verdict::FileBacked => 4,
            Verdict::Unclear => 5,
            Verdict::WarmingUp => 6,
            Verdict::CyclicGarbage => 7,
            Verdict::Falling => 8,
            Verdict::Flat => 9,
            Verdict::NotEnoughRounds => 10,
        }
    }

    /// There are enough rounds for a verdict, and growth is neither certain nor excluded.
    pub fn is_undecided(self) -> bool {
        matches!(self, Verdict::Unclear | Verdict::WarmingUp)
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
}

/// What the full collections show about a process that is not called growing.
#[derive(Clone, Copy, Debug)]
pub struct GarbageEvidence {
    /// The swing as a share of the size, if material collections may explain it.
    pub swing_share: Option<f64>,
    pub explains_growth: bool,
    /// Memory without garbage is level.
    pub explains_fall: bool,
}

/// A process that swings by more than this share of its size is not flat.
const SWING_SHARE: f64 = 1.0 / 3.0;

pub struct Finding {
    pub verdict: Verdict,
    pub quantity: Quantity,
    /// The stage whose rounds were compared.
    pub stage: String,
    pub rounds: u64,
    pub unit: Unit,
    /// Elapsed seconds per elapsed unit; NaN if unknown.
    pub pace: Slope,
    /// The longest pause that `pace` does not count: the machine slept, or the job waited, for once.
    pub pause: Option<f64>,
    /// Seconds from the first marker of the stage to the last; NaN if unknown.
    pub observed_seconds: f64,
    /// The trend of the quantity. If that is the footprint, the stage's row shows the same trend.
    pub trend: Trend,
    /// The single changes of the level that are not growth.
    pub steps: Vec<NamedStep>,
    pub parts: GrowthParts,
    /// The shares of the growth, the largest first.
    pub causes: Vec<Cause>,
    /// Median sizes after the warm-up.
    pub typical: Sizes,
    /// The judged memory after the warm-up, and the cached pages.
    pub level: Level,
    pub cached: Level,
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
    pub fn of(values: &[f64]) -> Level {
        const MIN_CHANGES: usize = 2;
        const NEAR_END: f64 = 0.2;
        let range = (quantile(values, 0.05), quantile(values, 0.95));
        let place = |value: &f64| (value - range.0) / (range.1 - range.0);
        let is_high: Vec<bool> = values.iter().map(|value| place(value) > 0.5).collect();
        let is_near_end = |value: &&f64| !(NEAR_END..=1.0 - NEAR_END).contains(&place(value));
        let near_ends = values.iter().filter(is_near_end).count();
        let changes = is_high.windows(2).filter(|pair| pair[0] != pair[1]).count();
        Level {
            median: median(values),
            range,
            alternates: range.1 > range.0
                && changes >= MIN_CHANGES
                && 10 * near_ends >= 9 * values.len(),
        }
    }
}

/// A shorter observation gives no rate per hour.
const MIN_SECONDS_FOR_HOURLY_RATE: f64 = 60.0;

impl Finding {
    /// The slope, unless it will not continue: that of a warm-up, of cyclic garbage, or of too few
    /// rounds.
    pub fn lasting_slope(&self) -> Option<Slope> {
        use Verdict::{CyclicGarbage, NotEnoughRounds, WarmingUp};
        let is_temporary = matches!(self.verdict, NotEnoughRounds | WarmingUp | CyclicGarbage);
        (!is_temporary).then_some(self.trend.slope)
    }

    /// The finding, if collections explain what the trend shows.
    pub fn explained_by(self, evidence: &GarbageEvidence, swing_share: Option<f64>) -> Finding {
        let share = evidence.swing_share.map(|own| swing_share.unwrap_or(own));
        let swings = share.is_some_and(|share| share > SWING_SHARE);
        let verdict = match self.verdict {
            Verdict::Flat | Verdict::Unclear if swings => Verdict::CyclicGarbage,
            Verdict::Unclear | Verdict::LiveGrowth | Verdict::Growth | Verdict::WarmingUp
                if evidence.explains_growth =>
            {
                Verdict::CyclicGarbage
            }
            Verdict::Falling if evidence.explains_fall => Verdict::CyclicGarbage,
            Verdict::LiveGrowth
            | Verdict::Retention
            | Verdict::Growth
            | Verdict::Swap
            | Verdict::FileBacked
            | Verdict::Unclear
            | Verdict::WarmingUp
            | Verdict::CyclicGarbage
            | Verdict::Falling
            | Verdict::Flat
            | Verdict::NotEnoughRounds => self.verdict,
        };
        Finding { verdict, ..self }
    }

    /// Bytes per hour with their interval, if the observation is long enough. Both the growth per
    /// unit and the length of a unit are uncertain.
    pub fn per_hour(&self, growth: Slope) -> Option<Slope> {
        let is_long_enough = self.observed_seconds >= MIN_SECONDS_FOR_HOURLY_RATE;
        let per_second = self.per_second(growth).filter(|_| is_long_enough)?;
        Some(Slope {
            per_x: 3600.0 * per_second.per_x,
            low: 3600.0 * per_second.low,
            high: 3600.0 * per_second.high,
        })
    }

    /// Bytes per second with their interval.
    pub fn per_second(&self, growth: Slope) -> Option<Slope> {
        let pace = self.pace.per_x;
        let per_x = growth.per_x / pace;
        // The rate at a bound of the growth, and at a bound of the pace, which is a quotient and not nearly a line.
        let at = |bytes: f64, pace: f64| match pace > 0.0 {
            true => bytes / pace,
            false => f64::INFINITY,
        };
        let distance = |bytes: f64, at_pace: f64| {
            let of_pace = (at(growth.per_x.abs(), at_pace) - per_x.abs()).abs();
            f64::hypot(at(bytes, pace) - per_x, of_pace)
        };
        let (fast, slow) = (self.pace.low, self.pace.high);
        let (to_high, to_low) = if per_x > 0.0 {
            (fast, slow)
        } else {
            (slow, fast)
        };
        let slope = Slope {
            per_x,
            low: per_x - distance(growth.low, to_low),
            high: per_x + distance(growth.high, to_high),
        };
        (per_x.is_finite() && slope.low.is_finite() && slope.high.is_finite()).then_some(slope)
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
    /// Samples from the step on.
    #[serde(skip)]
    pub samples_after: usize,
}

/// Growth per round of the parts of the footprint; NaN if unknown.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GrowthParts {
    pub live: f64,
    /// Retained and cached memory.
    #[serde(rename = "retained_and_recycled")]
    pub kept_free: f64,
    /// The part of it that the library does not return at need.
    #[serde(skip)]
    pub retained: f64,
    pub recycled: f64,
    pub file: f64,
    pub shmem: f64,
    /// Shared memory that PyTorch has pinned, which `shmem` does not contain.
    pub pinned: f64,
    pub swap: f64,
    /// Small Python objects, stacks, mapped buffers.
    pub outside_malloc: f64,
    /// Known parts of `outside_malloc`.
    pub pymalloc: f64,
    pub arrow: f64,
}

impl GrowthParts {
    /// The parts of the opposite change.
    pub fn negated(&self) -> GrowthParts {
        GrowthParts {
            live: -self.live,
            kept_free: -self.kept_free,
            retained: -self.retained,
            recycled: -self.recycled,
            file: -self.file,
            shmem: -self.shmem,
            swap: -self.swap,
            outside_malloc: -self.outside_malloc,
            pymalloc: -self.pymalloc,
            arrow: -self.arrow,
            pinned: -self.pinned,
        }
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
