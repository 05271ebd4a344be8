//! The verdict on one process: is it growing, and who holds the memory?

use flarena_shared::stages::Stage;

use crate::report::analyse::attribution::{causes, parts, typical};
use crate::report::analyse::finding::{Cause, Finding, Holder, Quantity, Verdict};
use crate::report::analyse::garbage;
use crate::report::analyse::stats::{median, quantile, Course, Trend};
use crate::report::model::{Point, Process, Series, Size, Sizes};

/// The finding, and the trend of each stage, which the finding's is one of.
pub fn judge(process: &Process) -> Option<(Finding, Vec<Trend>)> {
    let looks: Vec<Look> = process.stages.iter().map(Look::at).collect();
    let decisive = decisive(&looks)?;
    let mut finding = decisive.finding();
    if let Some(trend) = garbage::hidden_growth(process, decisive.series, &finding) {
        (finding.verdict, finding.quantity) = (Verdict::LiveGrowth, Quantity::Floor);
        finding.trend = trend;
        finding.causes = vec![Cause {
            holder: Holder::Live,
            share: 1.0,
        }];
    } else if garbage::keeps_level(process, decisive.series, &finding) {
        (finding.verdict, finding.by_collections) = (Verdict::Flat, true);
    } else if garbage::explains(process, decisive.series, &finding) {
        finding.verdict = Verdict::CyclicGarbage;
    }
    Some((finding, looks.into_iter().map(|look| look.trend).collect()))
}

/// A stage that grows; else, of those that come in most rounds, the one that holds least: there it
/// shows best that nothing grows.
fn decisive<'l, 'a>(looks: &'l [Look<'a>]) -> Option<&'l Look<'a>> {
    let length = |look: &Look| look.series.len();
    // Asleep it holds least, and what of it is where says nothing of its work.
    let is_asleep = |look: &&Look| look.stage == Stage::Hibernated.name();
    let looks: Vec<&Look> = match looks.iter().all(|look| is_asleep(&look)) {
        true => looks.iter().collect(),
        false => looks.iter().filter(|look| !is_asleep(look)).collect(),
    };
    let growing = looks.iter().copied().filter(|look| look.trend.is_growing());
    if let Some(look) = growing.max_by_key(|look| length(look)) {
        return Some(look);
    }
    let most = looks.iter().copied().map(length).max()?;
    let is_regular = |look: &&Look| 5 * length(look) >= 4 * most;
    let regular = looks.into_iter().filter(is_regular);
    regular.min_by(|a, b| a.level.total_cmp(&b.level))
}

/// One stage: its samples without gaps, and what they do.
struct Look<'a> {
    stage: &'a str,
    series: &'a Series,
    x: Vec<f64>,
    sizes: Vec<Sizes>,
    /// The footprint in the middle.
    level: f64,
    trend: Trend,
}

impl<'a> Look<'a> {
    fn at((stage, series): &'a (Box<str>, Series)) -> Look<'a> {
        let (x, sizes) = (series.axis(), without_gaps(series.points()));
        let footprint: Vec<f64> = sizes.iter().map(Sizes::footprint).collect();
        let level = median(&footprint);
        let trend = Trend::of(&x, &footprint, level);
        Look {
            stage,
            series,
            x,
            sizes,
            level,
            trend,
        }
    }

    fn finding(&self) -> Finding {
        let (quantity, trend) = self.judged();
        let parts = parts(&self.trend, &self.x, &self.sizes);
        let causes = causes(&parts);
        let settled = &self.sizes[trend.warm_up.min(self.sizes.len() - 1)..];
        let footprint: Vec<f64> = settled.iter().map(Sizes::footprint).collect();
        let verdict = match (trend.course, quantity) {
            (Course::TooFew, _) => Verdict::NotEnoughRounds,
            (Course::Settling, _) => Verdict::WarmingUp,
            (Course::Unclear, _) => Verdict::Unclear,
            (Course::Level | Course::Falling, _) => Verdict::Flat,
            (Course::Growing, Quantity::Live | Quantity::Floor) => Verdict::LiveGrowth,
            (Course::Growing, Quantity::Swap) => Verdict::Swap,
            (Course::Growing, Quantity::Footprint) => match causes.first() {
                Some(cause) => cause.verdict(),
                None => Verdict::Growth,
            },
        };
        Finding {
            verdict,
            quantity,
            stage: self.stage.to_owned(),
            rounds: self.series.rounds,
            unit: self.series.unit(),
            seconds_per_unit: self.seconds_per_unit(),
            seconds: self.seconds(),
            trend,
            parts,
            causes,
            typical: typical(settled.iter()),
            range: (quantile(&footprint, 0.05), quantile(&footprint, 0.95)),
            by_collections: false,
        }
    }

    /// Where the footprint does not grow, pages may still be pushed out to swap, or the program may
    /// fill pages that the allocator had left.
    fn judged(&self) -> (Quantity, Trend) {
        let quiet = !matches!(self.trend.course, Course::Growing | Course::TooFew);
        let swap: fn(&Sizes) -> f64 = Sizes::pushed_out;
        let live: fn(&Sizes) -> f64 = |sizes| sizes[Size::Live];
        for (quantity, of) in [(Quantity::Swap, swap), (Quantity::Live, live)] {
            let values: Vec<f64> = self.sizes.iter().map(of).collect();
            if !quiet || values.iter().any(|v| v.is_nan()) {
                continue;
            }
            let trend = Trend::of(&self.x, &values, self.level);
            if trend.is_growing() {
                return (quantity, trend);
            }
        }
        (Quantity::Footprint, self.trend.clone())
    }

    fn seconds(&self) -> f64 {
        let points = self.series.points();
        let ends = points.first().zip(points.last());
        ends.map_or(f64::NAN, |(first, last)| last.t - first.t)
    }

    fn seconds_per_unit(&self) -> f64 {
        let steps = self.series.points().windows(2).zip(self.x.windows(2));
        let rates = steps.map(|(p, x)| (p[1].t - p[0].t) / (x[1] - x[0]));
        match &rates.filter(|rate| *rate > 0.0).collect::<Vec<_>>()[..] {
            [] => f64::NAN,
            rates => median(rates),
        }
    }
}

/// A size that a few markers lack is taken from the marker before; one that many lack is not known.
fn without_gaps(points: &[Point]) -> Vec<Sizes> {
    let mut sizes: Vec<Sizes> = points.iter().map(|point| point.sizes).collect();
    for kind in 0..Sizes::UNKNOWN.0.len() {
        let all = sizes.iter().map(|s| s.0[kind]);
        let mut known = all.filter(|bytes| !bytes.is_nan());
        let lacking = sizes.len() - known.clone().count();
        let usable = 5 * lacking <= sizes.len();
        let mut last = known.next().unwrap_or(f64::NAN);
        for bytes in sizes.iter_mut().map(|s| &mut s.0[kind]) {
            last = if bytes.is_nan() { last } else { *bytes };
            *bytes = if usable { last } else { f64::NAN };
        }
    }
    sizes
}

#[cfg(test)]
#[path = "garbage_tests.rs"]
mod garbage_tests;
#[cfg(test)]
#[path = "verdict_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
