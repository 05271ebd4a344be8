//! The verdict on one process: is it growing, and who holds the memory?

use super::model::{Point, Process, Series, Size, Sizes};
use super::stats::{median, Course, Shape, Trend};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    LiveGrowth,
    Retention,
    /// It grows, and the markers do not say why: they hold nothing but RSS.
    Growth,
    Swap,
    FileBacked,
    WarmingUp,
    Flat,
    NotEnoughRounds,
}

impl Verdict {
    pub const ALL: [Verdict; 8] = [
        Verdict::LiveGrowth,
        Verdict::Retention,
        Verdict::Growth,
        Verdict::Swap,
        Verdict::FileBacked,
        Verdict::WarmingUp,
        Verdict::Flat,
        Verdict::NotEnoughRounds,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Verdict::LiveGrowth => "live growth",
            Verdict::Retention => "retention",
            Verdict::Growth => "growth",
            Verdict::Swap => "swap",
            Verdict::FileBacked => "file-backed",
            Verdict::WarmingUp => "warming up",
            Verdict::Flat => "flat",
            Verdict::NotEnoughRounds => "not enough rounds",
        }
    }

    pub fn is_growth(self) -> bool {
        self <= Verdict::FileBacked
    }
}

/// What the verdict rests on.
pub struct Finding {
    pub verdict: Verdict,
    /// The stage whose rounds were compared.
    pub stage: String,
    pub rounds: u64,
    /// `round`, or `marker` where the markers have no rounds.
    pub unit: &'static str,
    /// Seconds from one to the next, in the middle; NaN: not known.
    pub seconds_per_unit: f64,
    /// Growth of what the process takes, RSS and swap.
    pub trend: Trend,
    /// Growth per round of its parts; NaN: not known.
    pub parts: Parts,
    /// Median sizes of the settled rounds.
    pub typical: Sizes,
}

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
}

/// Stages that come in most rounds, the one that holds least first, the one that holds most last.
fn telling_stages(process: &Process) -> Vec<&(Box<str>, Series)> {
    let most = process
        .stages
        .iter()
        .map(|(_, series)| series.len())
        .max()
        .unwrap_or(0);
    let mut regular: Vec<_> = process
        .stages
        .iter()
        .filter(|(_, series)| 5 * series.len() >= 4 * most)
        .collect();
    let level = |series: &Series| {
        let half = &series.points()[series.len() / 2..];
        median(&half.iter().map(|p| p.sizes.footprint()).collect::<Vec<_>>())
    };
    regular.sort_by(|(_, a), (_, b)| level(a).total_cmp(&level(b)));
    if regular.len() > 2 {
        regular.drain(1..regular.len() - 1);
    }
    regular
}

/// A stage where memory is low tells growth best; one where it is high may still grow alone.
pub fn judge(process: &Process) -> Option<Finding> {
    let mut findings = telling_stages(process)
        .into_iter()
        .map(|(stage, s)| finding(stage, s));
    let low = findings.next()?;
    match findings.next() {
        Some(high) if low.verdict == Verdict::Flat && high.verdict.is_growth() => Some(high),
        _ => Some(low),
    }
}

fn finding(stage: &str, series: &Series) -> Finding {
    let look = Look {
        x: series.axis(),
        sizes: without_gaps(series.points()),
        points: series.points(),
    };
    let trend = look.trend(Sizes::footprint);
    let parts = look.parts(&trend);
    let settled = &series.points()[trend.warm_up.min(series.len())..];
    let mut typical = Sizes::UNKNOWN;
    for (i, size) in typical.0.iter_mut().enumerate() {
        *size = median(&settled.iter().map(|p| p.sizes.0[i]).collect::<Vec<_>>());
    }
    let verdict = look.verdict(&trend, &parts);
    let unit = if series.has_rounds() {
        "round"
    } else {
        "marker"
    };
    let seconds_per_unit = look.seconds_per_unit();
    let (stage, rounds) = (stage.to_owned(), series.rounds);
    Finding {
        verdict,
        stage,
        rounds,
        unit,
        seconds_per_unit,
        trend,
        parts,
        typical,
    }
}

/// A size that a few markers lack is taken from the marker before; one that many lack is not known.
fn without_gaps(points: &[Point]) -> Vec<Sizes> {
    let mut sizes: Vec<Sizes> = points.iter().map(|point| point.sizes).collect();
    for kind in 0..Sizes::UNKNOWN.0.len() {
        let known = sizes
            .iter()
            .map(|s| s.0[kind])
            .filter(|bytes| !bytes.is_nan());
        let lacking = sizes.len() - known.clone().count();
        let usable = 5 * lacking <= sizes.len();
        let mut last = known.into_iter().next().unwrap_or(f64::NAN);
        for bytes in sizes.iter_mut().map(|s| &mut s.0[kind]) {
            last = if bytes.is_nan() { last } else { *bytes };
            *bytes = if usable { last } else { f64::NAN };
        }
    }
    sizes
}

struct Look<'a> {
    x: Vec<f64>,
    sizes: Vec<Sizes>,
    points: &'a [Point],
}

impl Look<'_> {
    fn values(&self, of: impl Fn(&Sizes) -> f64) -> Vec<f64> {
        self.sizes.iter().map(of).collect()
    }

    fn trend(&self, of: impl Fn(&Sizes) -> f64) -> Trend {
        Trend::of(&self.x, &self.values(of))
    }

    fn seconds_per_unit(&self) -> f64 {
        let steps = self.points.windows(2).zip(self.x.windows(2));
        let rates: Vec<f64> = steps
            .map(|(p, x)| (p[1].t - p[0].t) / (x[1] - x[0]))
            .collect();
        let known = rates.iter().all(|rate| rate.is_finite()) && !rates.is_empty();
        if known {
            median(&rates)
        } else {
            f64::NAN
        }
    }

    /// Growth over the rounds that the trend compares; NaN where the size is not known.
    fn growth(&self, trend: &Trend, of: impl Fn(&Sizes) -> f64) -> f64 {
        let values = self.values(of);
        if values.iter().any(|v| v.is_nan()) {
            f64::NAN
        } else {
            trend.slope_of(&self.x, &values)
        }
    }

    fn parts(&self, trend: &Trend) -> Parts {
        let growth = |size: Size| self.growth(trend, move |sizes| sizes[size]);
        let file_backed = self.growth(trend, Sizes::file_backed);
        let (live, held_back) = (growth(Size::Live), self.growth(trend, Sizes::held_back));
        let known = |bytes: f64| if bytes.is_nan() { 0.0 } else { bytes };
        let rest = trend.slope.per_x - known(live) - known(file_backed);
        // What is neither live nor in files nor known to be held back, malloc holds back.
        let held_back = if held_back.is_nan() && !live.is_nan() {
            rest
        } else {
            held_back
        };
        Parts {
            live,
            held_back,
            recycled: growth(Size::Recycled),
            file: growth(Size::File),
            shmem: growth(Size::Shmem),
            swap: growth(Size::Swap),
            other: rest - known(held_back),
        }
    }

    fn verdict(&self, trend: &Trend, parts: &Parts) -> Verdict {
        match trend.course {
            Course::TooFew => Verdict::NotEnoughRounds,
            Course::Settling => Verdict::WarmingUp,
            Course::Growing => who_grows(trend.slope.per_x, parts),
            Course::Level | Course::Falling if self.is_pushed_out() => Verdict::Swap,
            Course::Level | Course::Falling if self.grows_unseen() => Verdict::LiveGrowth,
            Course::Level | Course::Falling => Verdict::Flat,
        }
    }

    /// Pages move to swap while the process takes no more in all.
    fn is_pushed_out(&self) -> bool {
        let known = self.sizes.iter().all(|sizes| !sizes[Size::Swap].is_nan());
        known && self.trend(|sizes| sizes[Size::Swap]).is_growing()
    }

    /// The program holds more each round, but so far fills pages that the allocator had left.
    fn grows_unseen(&self) -> bool {
        let live = self.values(|sizes| sizes[Size::Live]);
        if live.iter().any(|v| v.is_nan()) {
            return false;
        }
        let trend = Trend::of(&self.x, &live);
        let span = self.x.last().unwrap_or(&0.0) - trend.settled_x;
        let footprint = median(&self.values(Sizes::footprint));
        let steady = !matches!(trend.shape, Shape::Sawtooth { .. });
        trend.is_growing() && steady && trend.slope.per_x * span > 0.05 * footprint
    }
}

fn who_grows(all: f64, parts: &Parts) -> Verdict {
    let known = |bytes: f64| if bytes.is_nan() { 0.0 } else { bytes };
    let file_backed = known(parts.file) + known(parts.shmem);
    let swapped = known(parts.swap) >= 0.5 * all;
    if parts.live.is_nan() {
        return match () {
            () if file_backed >= 0.5 * all => Verdict::FileBacked,
            () if swapped => Verdict::Swap,
            () => Verdict::Growth,
        };
    }
    let other = if swapped {
        Verdict::Swap
    } else {
        Verdict::LiveGrowth
    };
    let shares = [
        (parts.live, Verdict::LiveGrowth),
        (known(parts.held_back), Verdict::Retention),
        (file_backed, Verdict::FileBacked),
        (parts.other, other),
    ];
    shares
        .into_iter()
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(Verdict::Growth, |(_, v)| v)
}

#[cfg(test)]
mod tests;
