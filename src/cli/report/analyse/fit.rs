//! Fits a trend to the memory of a process at each of its stages, and chooses the stage that decides the verdict.
//!
//! Markers of the stage `periodic` are written when the size changes, at irregular times. Beside stages they are no
//! fair sample, and at the start of a process they show imports.

use flarena_shared::stages::Stage;

use super::between_stages::{highest, own_points};
use super::finding::{PeakGrowth, Quantity};
use super::stats::{material_growth, median, quantile, Estimate, Trend, TrendClass, MIN_ROUNDS};
use crate::report::model::{Order, Point, Process, Series, Size, Sizes, Unit};

/// A stage of a process with its growth.
pub struct StageGrowth<'a> {
    pub series: &'a Series,
    /// Growth of RSS and swap per unit of the finding; `None` for too few rounds, and for periodic
    /// markers beside rounds, whose growth is one per minute.
    pub slope: Option<Estimate>,
}

/// The fit of each stage.
pub fn fits(process: &Process) -> Vec<Fit<'_>> {
    let with_round = own_points(process).filter(|(_, point)| point.round.is_some());
    let first_round = with_round.map(|(_, point)| point.order).min();
    let stages = process.stages.iter();
    let fits = stages.map(|stage| Fit::of(process, stage, first_round));
    fits.collect()
}

/// The stage with the most points among those that grow. If none grows, the one with the smallest
/// footprint among those that occur in most rounds: there a growth would show best.
pub fn deciding<'f, 'a>(fits: &'f [Fit<'a>]) -> Option<&'f Fit<'a>> {
    let is_judged = |fit: &Fit| fit.trend.class != TrendClass::TooFewRounds;
    // `load` is the library's: of processes that follow each other it would be a stage with as many rounds.
    let is_load = |fit: &Fit| *fit.series.stage == *Stage::Load.name();
    let is_enough = |fit: &Fit| is_judged(fit) && !fit.series.is_periodic() && !is_load(fit);
    let has_enough_stage = fits.iter().any(is_enough);
    // Beside stages, periodic markers are no fair sample. A few beside rounds show the start of the process.
    let has_rounds = || fits.iter().any(Fit::has_rounds);
    let is_no_sample = |fit: &Fit| has_enough_stage || fit.is_short() && has_rounds();
    let is_fair = |fit: &&Fit| match fit.series.is_periodic() {
        true => fits.len() == 1 || !is_no_sample(fit),
        false => !is_load(fit) || !has_enough_stage,
    };
    let fair = fits.iter().filter(is_fair);
    let length = |fit: &Fit| fit.points.len();
    let longest = fair.clone().map(length).max()?;
    let is_regular = |fit: &&Fit| 5 * length(fit) >= 4 * longest;
    // In NVFlare's logs one stage of a round has all sizes, and the others have RSS alone.
    let explains = |fit: &&Fit| is_regular(fit) && fit.knows_live;
    let growing = fair.clone().filter(|fit| fit.trend.is_growing());
    let growing = growing.max_by_key(|fit| (explains(fit), length(fit)));
    growing.or_else(|| {
        let regular = fair.filter(is_regular);
        regular.min_by(|a, b| a.size.total_cmp(&b.size))
    })
}

/// One stage of a process with the trend of its footprint.
pub struct Fit<'a> {
    pub process: &'a Process,
    pub series: &'a Series,
    pub unit: Unit,
    /// All points, or for periodic markers those from the first round on, or after an import.
    pub points: &'a [Point],
    /// Periodic markers of an import before the points. They count as a warm-up.
    import: usize,
    /// The positions and sizes of the samples: those of the points, and after an import also of the minutes between them.
    pub x: Vec<f64>,
    pub sizes: Vec<Sizes>,
    pub knows_live: bool,
    /// The quantity of `trend`: the footprint, or the footprint without cached pages where that swings less.
    pub quantity: Quantity,
    /// The median of the footprint.
    pub size: f64,
    pub trend: Trend,
}

impl<'a> Fit<'a> {
    fn of(process: &'a Process, series: &'a Series, first_round: Option<Order>) -> Fit<'a> {
        let all = series.points();
        let (begin, import) = match first_round {
            _ if !series.is_periodic() => (0, 0),
            Some(round) => (all.partition_point(|point| point.order < round), 0),
            None => [import(process, all); 2].into(),
        };
        let points = &all[begin..];
        let (x, sizes) = samples(process, series, points, import > 0);
        let [footprint, without] =
            [Quantity::Footprint, Quantity::WithoutCached].map(|quantity| -> Vec<f64> {
                sizes.iter().filter_map(|one| quantity.of(one)).collect()
            });
        let size = median(&footprint);
        let changes = |values: &[f64]| -> f64 {
            let pairs = values.windows(2);
            pairs.map(|pair| (pair[1] - pair[0]).abs()).sum()
        };
        let (quantity, values) = match changes(&without) < changes(&footprint) {
            true => (Quantity::WithoutCached, without),
            false => (Quantity::Footprint, footprint),
        };
        Fit {
            process,
            series,
            unit: series.unit(),
            points,
            import,
            knows_live: sizes.iter().all(|sizes| sizes.get(Size::Live).is_some()),
            quantity,
            size,
            trend: after_import(Trend::of(&x, &values, size), series, import),
            x,
            sizes,
        }
    }

    fn has_rounds(&self) -> bool {
        !self.series.is_periodic() && self.points.iter().any(|point| point.round.is_some())
    }

    /// Fewer than five points, or less than five minutes.
    fn is_short(&self) -> bool {
        let ends = self.points.first().zip(self.points.last());
        let seconds = ends.and_then(|(first, last)| Some(last.t? - first.t?));
        self.points.len() < MIN_ROUNDS || seconds.unwrap_or(0.0) < 60.0 * MIN_ROUNDS as f64
    }

    /// The trend of the peaks inside the rounds if they grow faster than the size at the markers, and the stage before
    /// whose markers most of them come.
    pub fn growth_of_peaks(&self) -> Option<(Trend, PeakGrowth)> {
        // A chain has a stage for the peak of each process.
        if self.series.is_periodic() || self.process.processes > 1 {
            return None;
        }
        let peaks = highest(self.process, self.series, |_, marker| marker.recent_peak);
        let values: Vec<f64> = peaks.iter().map(|(peak, _)| *peak).collect();
        let at_marker = self.points.iter().map(|point| point.sizes.rss());
        let above = values.iter().zip(at_marker).map(|(peak, rss)| peak - rss);
        let (above, size) = (above.collect::<Vec<f64>>(), median(&values));
        // Peaks vary more than sizes at a marker: without this, 8 of 1,000 level series with a noise of 20 % grow.
        let (before, last) = above.split_at(above.len() - above.len() / 3);
        if quantile(last, 0.25) <= quantile(before, 0.75)
            || !Trend::of(&self.x, &above, size).is_growing()
        {
            return None;
        }
        let trend = Trend::of(&self.x, &values, size);
        let is_certain = 2.0 * trend.slope.low > trend.slope.value;
        if !trend.is_growing() || !is_certain {
            return None;
        }
        let settled = &peaks[trend.warm_up..];
        let count = |stage: &str| settled.iter().filter(|(_, other)| *other == stage).count();
        let mut stages = settled.iter().map(|(_, stage)| stage);
        let most = stages.find(|stage| 2 * count(stage) > settled.len());
        let growth = PeakGrowth {
            slope: trend.slope,
            before_stage: most.map(|stage| (*stage).to_owned()),
        };
        Some((trend, growth))
    }

    /// Swap, live memory or the peaks inside the rounds if they grow while the footprint does not, else the footprint.
    /// Live memory can grow alone, because new blocks fill free pages of the allocator.
    pub fn deciding_quantity(&self, peak: Option<&(Trend, PeakGrowth)>) -> (Quantity, Trend) {
        use TrendClass::{Growing, TooFewRounds};
        if matches!(self.trend.class, Growing | TooFewRounds) {
            return (self.quantity, self.trend.clone());
        }
        let mut others = [Quantity::Swap, Quantity::Live].into_iter();
        let growing = others.find_map(|quantity| {
            let values: Option<Vec<f64>> = self.sizes.iter().map(|one| quantity.of(one)).collect();
            let trend = Trend::of(&self.x, &values?, self.size);
            let trend = after_import(trend, self.series, self.import);
            trend.is_growing().then_some((quantity, trend))
        });
        let growing = growing.or(peak.map(|(trend, _)| (Quantity::Peak, trend.clone())));
        growing.unwrap_or((self.quantity, self.trend.clone()))
    }

    /// The sizes after the warm-up of a trend.
    pub fn settled(&self, trend: &Trend) -> &[Sizes] {
        let warm_up = self.x.partition_point(|at| *at < trend.settled_from);
        &self.sizes[warm_up.min(self.sizes.len() - 1)..]
    }

    pub fn material_collections(&self) -> usize {
        let material = material_growth(self.size);
        self.process.collections.releasing_at_least(material)
    }
}

/// The trend, if so many points came before its series. Its warm-up is counted in points, and not in samples.
fn after_import(mut trend: Trend, series: &Series, import: usize) -> Trend {
    if import > 0 {
        let (points, positions) = (series.points(), series.positions());
        trend.warm_up = positions.partition_point(|at| *at < trend.settled_from);
        trend.rise_before += points[import].sizes.footprint() - points[0].sizes.footprint();
    }
    trend
}

/// The positions and sizes of the points. A periodic marker shows a change of the size. After an import there are few,
/// and the size counts again after each minute without a change.
fn samples(
    process: &Process,
    series: &Series,
    points: &[Point],
    is_held: bool,
) -> (Vec<f64>, Vec<Sizes>) {
    const MAX_POINTS: f64 = 32.0;
    let x = series.positions().split_off(series.len() - points.len());
    let sizes = without_gaps(points);
    let begin = points.first().and_then(|point| point.t);
    let times = process.last_time().zip(begin);
    let Some((last, first)) = times.filter(|_| is_held) else {
        return (x, sizes);
    };
    let minutes = (last - first) / 60.0;
    let step = (minutes / MAX_POINTS)
        .max(1.0)
        .min(minutes / MIN_ROUNDS as f64);
    let ends = x[1..].iter().copied().chain([x[0] + minutes + step]);
    let (mut held_x, mut held) = (Vec::new(), Vec::new());
    for ((at, end), size) in x.iter().zip(ends).zip(sizes) {
        let times = std::iter::successors(Some(*at), |before| Some(before + step));
        held_x.extend(times.take_while(|time| *time == *at || *time < end - step / 2.0));
        held.resize(held_x.len(), size);
    }
    (held_x, held)
}

/// The periodic markers of an import: those before the last rise that matters, if the process was level for longer
/// after it than before. 0 if it was not.
fn import(process: &Process, points: &[Point]) -> usize {
    let sizes = points.iter().map(|point| point.sizes.footprint());
    let material = material_growth(sizes.clone().fold(0.0, f64::max));
    let (mut highest, mut last_rise) = (f64::NEG_INFINITY, 0);
    for (place, size) in sizes.enumerate() {
        if size > highest + material {
            last_rise = place;
        }
        highest = highest.max(size);
    }
    match (process.first_time, points[last_rise].t, process.last_time()) {
        (Some(first), Some(begin), Some(last)) if last - begin > begin - first => last_rise,
        (_, _, _) => 0,
    }
}

/// Fills gaps of a size with its previous value. A size that more than a fifth of the markers lack
/// becomes unknown.
pub fn without_gaps(points: &[Point]) -> Vec<Sizes> {
    let mut sizes: Vec<Sizes> = points.iter().map(|point| point.sizes).collect();
    for (size, _) in Size::FIELDS {
        let mut known = sizes.iter().filter_map(|one| one.get(*size));
        let missing = sizes.len() - known.clone().count();
        let is_usable = 5 * missing <= sizes.len();
        let mut last = known.next().filter(|_| is_usable);
        for one in &mut sizes {
            last = last.and(one.get(*size).or(last));
            one.set(*size, last);
        }
    }
    sizes
}
