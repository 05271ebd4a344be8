//! What is said of one process: the verdict, and the numbers that it rests on.

use clap::ValueEnum;

use crate::report::analyse::stats::{Slope, Trend};
use crate::report::model::Sizes;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Verdict {
    LiveGrowth,
    Retention,
    /// It grows, and the markers do not say why: they hold nothing but RSS.
    Growth,
    Swap,
    FileBacked,
    /// Live memory that falls with full garbage collections.
    CyclicGarbage,
    Unclear,
    WarmingUp,
    Flat,
    NotEnoughRounds,
}

impl Verdict {
    /// Those that need attention first.
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

/// The quantity whose growth was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// RSS and swap: what the process takes from the machine.
    Footprint,
    /// Live memory, in pages that the allocator had left: the footprint does not grow yet.
    Live,
    /// Swap, while the footprint does not grow.
    Swap,
    /// What full garbage collections leave, where garbage comes and goes.
    Floor,
}

pub struct Finding {
    pub verdict: Verdict,
    pub quantity: Quantity,
    /// The stage whose rounds were compared.
    pub stage: String,
    pub rounds: u64,
    /// `round`, `minute`, or `marker` where the markers have neither.
    pub unit: &'static str,
    /// Seconds from one to the next, in the middle; NaN: not known.
    pub seconds_per_unit: f64,
    /// From the first marker of the stage to its last; NaN: not known.
    pub seconds: f64,
    /// Of the quantity; the one that the stage's row shows, when that is the footprint.
    pub trend: Trend,
    pub parts: Parts,
    /// Who gains how large a share of the growth, the largest first.
    pub causes: Vec<Cause>,
    /// Median sizes of the settled rounds.
    pub typical: Sizes,
    /// What nine in ten settled rounds lie between, RSS and swap.
    pub range: (f64, f64),
    /// Flat by what full collections leave, not by the slope.
    pub by_collections: bool,
}

/// Less is no base for a rate per hour.
const LEAST_SECONDS: f64 = 60.0;

impl Finding {
    /// The rise that the sentence gives, with its interval. What warms up, or is garbage, does not count: it
    /// goes no further.
    pub fn rise(&self) -> Option<Slope> {
        use Verdict::{CyclicGarbage, NotEnoughRounds, WarmingUp};
        let goes_no_further = matches!(self.verdict, NotEnoughRounds | WarmingUp | CyclicGarbage);
        (!goes_no_further && !self.by_collections).then_some(self.trend.slope)
    }

    /// Bytes per hour, where it was watched for long enough.
    pub fn per_hour(&self, bytes_per_unit: f64) -> Option<f64> {
        let hour = bytes_per_unit * 3600.0 / self.seconds_per_unit;
        (self.seconds >= LEAST_SECONDS && hour.is_finite()).then_some(hour)
    }

    /// What `rounds` counts: markers that come at odd times stand at their minute.
    pub fn counted(&self) -> &'static str {
        match self.unit {
            "minute" => "marker",
            unit => unit,
        }
    }
}

/// Growth per round of the parts of the footprint; NaN: not known.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub live: f64,
    pub held_back: f64,
    pub recycled: f64,
    pub file: f64,
    pub shmem: f64,
    pub swap: f64,
    /// Outside of malloc and files: Python's small objects, pinned buffers, stacks.
    pub other: f64,
    /// Of the other: what has a name. Pinned buffers may be mapped from a device instead.
    pub pymalloc: f64,
    pub arrow: f64,
    pub pinned: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Live,
    HeldBack,
    File,
    Shmem,
    Swap,
    Outside,
    /// Nothing but RSS is known.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cause {
    pub holder: Holder,
    /// Of the growth, 0 to 1.
    pub share: f64,
}

impl Cause {
    pub fn verdict(self) -> Verdict {
        match self.holder {
            Holder::Live | Holder::Outside => Verdict::LiveGrowth,
            Holder::HeldBack => Verdict::Retention,
            Holder::File | Holder::Shmem => Verdict::FileBacked,
            Holder::Swap => Verdict::Swap,
            Holder::Unknown => Verdict::Growth,
        }
    }
}
