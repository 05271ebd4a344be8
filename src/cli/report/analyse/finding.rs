//! The finding for one process: the verdict, and the numbers that led to it.

use clap::ValueEnum;

use super::stats::{Slope, Trend};
use crate::report::model::Sizes;

/// The variants are in order of urgency, the most urgent first. Those up to `FileBacked` are kinds
/// of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Verdict {
    LiveGrowth,
    Retention,
    /// The process grows, and the markers contain only RSS, which does not show why.
    Growth,
    Swap,
    FileBacked,
    /// Live memory rises until a full garbage collection and falls with it.
    CyclicGarbage,
    Unclear,
    WarmingUp,
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
            Verdict::CyclicGarbage => "cyclic garbage",
            Verdict::Unclear => "unclear",
            Verdict::WarmingUp => "warming up",
            Verdict::Flat => "flat",
            Verdict::NotEnoughRounds => "not enough rounds",
        }
    }

    pub fn is_growth(self) -> bool {
        self <= Verdict::FileBacked
    }
}

/// The quantity whose trend decided the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// RSS and swap.
    Footprint,
    /// Live memory, while the footprint does not grow: new blocks fill free pages of the allocator.
    Live,
    /// Swap, while the footprint does not grow.
    Swap,
    /// Memory without the garbage that full collections release.
    AfterCollections,
}

/// The evidence of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The trend of the quantity.
    Trend,
    /// Live memory after each full collection, which does not rise. The trend is unclear.
    LevelAfterCollections,
}

pub struct Finding {
    pub verdict: Verdict,
    pub basis: Basis,
    pub quantity: Quantity,
    /// The stage whose rounds were compared.
    pub stage: String,
    pub rounds: u64,
    /// `round`, `minute`, or `marker` if the markers have neither.
    pub unit: &'static str,
    /// Median seconds per unit; NaN if unknown.
    pub seconds_per_unit: f64,
    /// Seconds from the first marker of the stage to the last; NaN if unknown.
    pub observed_seconds: f64,
    /// The trend of the quantity. If that is the footprint, the stage's row shows the same trend.
    pub trend: Trend,
    pub parts: GrowthParts,
    /// The shares of the growth, the largest first.
    pub causes: Vec<Cause>,
    /// Median sizes after the warm-up.
    pub typical: Sizes,
    /// The 5 % and 95 % quantiles of the footprint after the warm-up.
    pub range: (f64, f64),
}

/// A shorter observation gives no rate per hour.
const MIN_SECONDS_FOR_HOURLY_RATE: f64 = 60.0;

impl Finding {
    /// The slope, unless it will not continue: that of a warm-up, of cyclic garbage, or of too few
    /// rounds.
    pub fn lasting_slope(&self) -> Option<Slope> {
        use Verdict::{CyclicGarbage, NotEnoughRounds, WarmingUp};
        let is_temporary = matches!(self.verdict, NotEnoughRounds | WarmingUp | CyclicGarbage);
        (!is_temporary && self.basis == Basis::Trend).then_some(self.trend.slope)
    }

    /// Bytes per hour, if the observation is long enough.
    pub fn per_hour(&self, bytes_per_unit: f64) -> Option<f64> {
        let per_hour = bytes_per_unit * 3600.0 / self.seconds_per_unit;
        let is_long_enough = self.observed_seconds >= MIN_SECONDS_FOR_HOURLY_RATE;
        (is_long_enough && per_hour.is_finite()).then_some(per_hour)
    }

    /// The unit of `rounds`. If the axis shows minutes, `rounds` counts markers.
    pub fn rounds_unit(&self) -> &'static str {
        match self.unit {
            "minute" => "marker",
            unit => unit,
        }
    }
}

/// Growth per round of the parts of the footprint; NaN if unknown.
#[derive(Clone, Copy, Debug)]
pub struct GrowthParts {
    pub live: f64,
    /// Retained and cached memory.
    pub kept_free: f64,
    pub recycled: f64,
    pub file: f64,
    pub shmem: f64,
    pub swap: f64,
    /// Small Python objects, pinned buffers, stacks.
    pub outside_malloc: f64,
    /// Known parts of `outside_malloc`. Pinned buffers may instead be mapped from a device.
    pub pymalloc: f64,
    pub arrow: f64,
    pub pinned: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    Live,
    KeptFree,
    File,
    Shmem,
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
            MemoryKind::Live | MemoryKind::OutsideMalloc => Verdict::LiveGrowth,
            MemoryKind::KeptFree => Verdict::Retention,
            MemoryKind::File | MemoryKind::Shmem => Verdict::FileBacked,
            MemoryKind::Swap => Verdict::Swap,
            MemoryKind::Unknown => Verdict::Growth,
        }
    }
}
