//! Decides the verdict on one process: whether it grows, and which memory grows.

use flarena_shared::stages::Stage;

use super::attribution::{causes, growth_parts, median_sizes, step_parts};
use super::finding::{
    Cause, Finding, GarbageEvidence, Level, MemoryKind, NamedStep, Quantity, Verdict,
};
use super::garbage;
use super::stats::{material_growth, median, Line, Slope, Step, Trend, TrendClass, MIN_ROUNDS};
use crate::report::model::{Order, Point, Process, Series, Size, Sizes, Unit};

/// What one process shows alone. The finding follows, once it is known how much processes of its kind swing.
pub struct Judged {
    by_trend: Finding,
    garbage: Option<GarbageEvidence>,
    /// The trend of the footprint at each stage.
    pub trends: Vec<Trend>,
}

impl Judged {
    /// The swing as a share of the size, if collections may explain it.
    pub fn swing_share(&self) -> Option<f64> {
        self.garbage.as_ref()?.swing_share
    }

    /// The finding. `swing_share` replaces that of the process: processes that do the same get the same verdict, although
    /// one swings a little more.
    pub fn finding(self, swing_share: Option<f64>) -> (Finding, Vec<Trend>) {
        let finding = match &self.garbage {
            Some(evidence) => self.by_trend.explained_by(evidence, swing_share),
            None => self.by_trend,
        };
        (finding, self.trends)
    }
}

/// `None` for a process without stages.
pub fn judge(process: &Process) -> Option<Judged> {
    let first_round = first_round(process);
    let stages = process.stages.iter();
    let stages: Vec<StageTrend> = stages
        .map(|stage| StageTrend::of(process, stage, first_round))
        .collect();
    let deciding = deciding_stage(&stages)?;
    let by_trend = deciding.finding(process);
    let garbage = match by_trend.quantity {
        // It is known without the garbage already.
        Quantity::AfterCollections => None,
        Quantity::Footprint | Quantity::WithoutCached | Quantity::Live | Quantity::Swap => {
            garbage::evidence(process, deciding.series, &by_trend)
        }
    };
    Some(Judged {
        by_trend,
        garbage,
        trends: stages.into_iter().map(|stage| stage.trend).collect(),
    })
}

/// The stage with the most points among those that grow. If none grows, the one with the smallest
/// footprint among those that occur in most rounds: there a growth would show best.
fn deciding_stage<'l, 'a>(stages: &'l [StageTrend<'a>]) -> Option<&'l StageTrend<'a>> {
    let length = |stage: &StageTrend| stage.points.len();
    let mut stages: Vec<&StageTrend> = stages.iter().collect();
    // A periodic marker shows a change of the size, so beside stages their series is not a fair sample.
    let has_enough = |stage: &&StageTrend| stage.trend.class != TrendClass::TooFewRounds;
    let is_periodic = |stage: &&StageTrend| stage.stage == Stage::Periodic.name();
    let has_enough_stage = stages.iter().any(|s| has_enough(s) && !is_periodic(s));
    if stages.len() > 1 {
        stages.retain(|s| !is_periodic(s) || !has_enough_stage && !s.shows_only_start);
    }
    let growing = stages.iter().copied().filter(|s| s.trend.is_growing());
    let longest = stages.iter().copied().map(length).max()?;
    let is_regular = |stage: &&StageTrend| 5 * length(stage) >= 4 * longest;
    // In NVFlare's logs one stage of a round has all sizes, and the others have RSS alone.
    let explains = |stage: &&StageTrend| {
        is_regular(stage) && stage.sizes.iter().all(|sizes| !sizes[Size::Live].is_nan())
    };
    if let Some(stage) = growing.max_by_key(|stage| (explains(stage), length(stage))) {
        return Some(stage);
    }
    let regular = stages.into_iter().filter(is_regular);
    regular.min_by(|a, b| a.median_footprint.total_cmp(&b.median_footprint))
}

/// The first marker of a round. Periodic markers before it show imports.
fn first_round(process: &Process) -> Option<Order> {
    let regular = process.stages.iter();
    let regular = regular.filter(|(stage, _)| **stage != *Stage::Periodic.name());
    let points = regular.flat_map(|(_, series)| series.points());
    let with_round = points.filter(|point| !point.round.is_nan());
    with_round.map(|point| point.order).min()
}

/// One stage: its samples without gaps, and the trend of its footprint.
struct StageTrend<'a> {
    stage: &'a str,
    series: &'a Series,
    /// All points, or for periodic markers those from the first round on, if these are enough for a verdict.
    points: &'a [Point],
    /// Periodic markers of a process with rounds: from the first round on they are fewer than five, or span less than
    /// five minutes.
    shows_only_start: bool,
    /// Periodic markers before these, which show an import.
    import: usize,
    x: Vec<f64>,
    sizes: Vec<Sizes>,
    /// What `trend` judges: the footprint, or the footprint without cached pages where that swings less.
    quantity: Quantity,
    median_footprint: f64,
    trend: Trend,
}

impl<'a> StageTrend<'a> {
    fn of(
        process: &Process,
        (stage, series): &'a (Box<str>, Series),
        first_round: Option<Order>,
    ) -> StageTrend<'a> {
        let is_periodic = **stage == *Stage::Periodic.name();
        let is_early = |point: &&Point| first_round.is_some_and(|begin| point.order < begin);
        let early = match is_periodic {
            true => series.points().iter().filter(is_early).count(),
            false => 0,
        };
        let mut x = series.positions();
        let minutes = &x[early..];
        let span = minutes.last().unwrap_or(&0.0) - minutes.first().unwrap_or(&0.0);
        let is_short = minutes.len() < MIN_ROUNDS || span < MIN_ROUNDS as f64;
        let shows_only_start = is_periodic && first_round.is_some() && is_short;
        let import = match is_periodic && first_round.is_none() {
            true => import(process, series.points()),
            false => 0,
        };
        let skipped = if shows_only_start {
            import
        } else {
            early.max(import)
        };
        let points = &series.points()[skipped..];
        let (mut x, mut sizes) = (x.split_off(skipped), without_gaps(points));
        if import > 0 {
            hold(
                &mut x,
                &mut sizes,
                (process.last_time() - points[0].t) / 60.0,
            );
        }
        let (quantity, values) = footprint(&sizes);
        let median_footprint = median(&sizes.iter().map(Sizes::footprint).collect::<Vec<_>>());
        let trend = Trend::of(&x, &values, median_footprint);
        StageTrend {
            stage,
            series,
            points,
            shows_only_start,
            import,
            x,
            sizes,
            quantity,
            median_footprint,
            trend,
        }
    }

    fn finding(&self, process: &Process) -> Finding {
        let (mut quantity, mut trend) = self.deciding_quantity();
        let parts = growth_parts(&self.trend, &self.sizes);
        let mut causes = causes(&parts);
        let settled = &self.sizes[trend.warm_up.min(self.sizes.len() - 1)..];
        let level: Vec<f64> = settled.iter().map(|sizes| self.judged(sizes)).collect();
        let cached: Vec<f64> = settled.iter().map(Sizes::cached).collect();
        let mut verdict = match (trend.class, quantity) {
            (TrendClass::TooFewRounds, _) => Verdict::NotEnoughRounds,
            (TrendClass::WarmingUp, _) => Verdict::WarmingUp,
            (TrendClass::Unclear, _) => Verdict::Unclear,
            (TrendClass::Level, _) => Verdict::Flat,
            (TrendClass::Falling, _) => Verdict::Falling,
            (TrendClass::Growing, Quantity::Live | Quantity::AfterCollections) => {
                Verdict::LiveGrowth
            }
            (TrendClass::Growing, Quantity::Swap) => Verdict::Swap,
            (TrendClass::Growing, Quantity::Footprint | Quantity::WithoutCached) => {
                match causes.first() {
                    Some(cause) => cause.verdict(),
                    None => Verdict::Growth,
                }
            }
        };
        let steps = trend.steps.iter().map(|step| self.named(step)).collect();
        trend = self.after_import(trend);
        if let Some(without) =
            garbage::growth_after_collections(process, self.series, verdict, &trend)
        {
            (verdict, quantity, trend) = (Verdict::LiveGrowth, Quantity::AfterCollections, without);
            causes = vec![Cause {
                kind: MemoryKind::Live,
                share: 1.0,
            }];
        }
        let (pace, pause) = self.pace();
        Finding {
            verdict,
            quantity,
            stage: self.stage.to_owned(),
            rounds: self.series.rounds,
            unit: self.series.unit(),
            pace,
            pause,
            observed_seconds: self.clock().last().copied().unwrap_or(f64::NAN),
            steps,
            trend,
            parts,
            causes,
            typical: median_sizes(settled.iter()),
            level: Level::of(&level),
            cached: Level::of(&cached),
        }
    }

    /// The trend after an import, which counts as a warm-up.
    fn after_import(&self, trend: Trend) -> Trend {
        let before = self.series.points()[..self.import].first();
        let rise = before.map(|first| self.points[0].sizes.footprint() - first.sizes.footprint());
        trend.after(self.import, rise.unwrap_or(0.0))
    }

    fn judged(&self, sizes: &Sizes) -> f64 {
        match self.quantity {
            Quantity::WithoutCached => sizes.footprint() - sizes.cached(),
            Quantity::Footprint | Quantity::Live | Quantity::Swap | Quantity::AfterCollections => {
                sizes.footprint()
            }
        }
    }

    /// Swap or live memory if it grows while the footprint does not, else the footprint. Live
    /// memory can grow alone, because new blocks fill free pages of the allocator.
    fn deciding_quantity(&self) -> (Quantity, Trend) {
        let footprint_decides = matches!(
            self.trend.class,
            TrendClass::Growing | TrendClass::TooFewRounds
        );
        let swap: fn(&Sizes) -> f64 = |sizes| sizes[Size::Swap];
        let live: fn(&Sizes) -> f64 = |sizes| sizes[Size::Live];
        for (quantity, value) in [(Quantity::Swap, swap), (Quantity::Live, live)] {
            let values: Vec<f64> = self.sizes.iter().map(value).collect();
            if footprint_decides || values.iter().any(|v| v.is_nan()) {
                continue;
            }
            let trend = Trend::of(&self.x, &values, self.median_footprint);
            if trend.is_growing() {
                return (quantity, trend);
            }
        }
        (self.quantity, self.trend.clone())
    }

    fn named(&self, step: &Step) -> NamedStep {
        let parts = step_parts(step, &self.sizes, |sizes| self.judged(sizes));
        let largest = match step.height > 0.0 {
            true => causes(&parts),
            false => causes(&parts.negated()),
        };
        NamedStep {
            at: match self.series.unit() {
                Unit::Round => self.points[step.index].round,
                Unit::Minute | Unit::Marker => self.x[step.index],
            },
            bytes: step.height,
            kind: largest
                .first()
                .map_or(MemoryKind::Unknown, |cause| cause.kind),
            samples_after: self.x.len() - step.index,
        }
    }

    /// Seconds from the first point to each. If the clock was set back, it goes on from there.
    fn clock(&self) -> Vec<f64> {
        let mut seconds = 0.0;
        let later = self.points.windows(2).map(|pair| {
            let step = match pair[1].mono - pair[0].mono {
                unknown if unknown.is_nan() => pair[1].t - pair[0].t,
                known => known,
            };
            // NaN stays NaN.
            seconds += if step < 0.0 { 0.0 } else { step };
            seconds
        });
        std::iter::once(0.0).chain(later).collect()
    }

    /// Elapsed seconds over elapsed rounds: a median would miss the pauses between quick rounds. A single pause of more
    /// than ten times the median round is left out, and returned.
    fn pace(&self) -> (Slope, Option<f64>) {
        const LONG_PAUSE: f64 = 10.0;
        /// More frequent pauses belong to the pace.
        const MIN_ROUNDS_PER_PAUSE: usize = 10;
        if self.series.unit() == Unit::Minute {
            let minute = Slope {
                per_x: 60.0,
                low: 60.0,
                high: 60.0,
            };
            return (minute, None);
        }
        let (x, mut clock) = (&self.x, self.clock());
        let steps =
            |of: &[f64]| -> Vec<f64> { of.windows(2).map(|pair| pair[1] - pair[0]).collect() };
        let per_x = steps(&clock)
            .into_iter()
            .zip(steps(x))
            .map(|(seconds, rounds)| seconds / rounds);
        let per_x: Vec<f64> = per_x.collect();
        let typical = median(&per_x);
        let is_long = |seconds: f64| typical > 0.0 && seconds > LONG_PAUSE * typical;
        let pauses: Vec<usize> = (0..per_x.len()).filter(|i| is_long(per_x[*i])).collect();
        let pause = match MIN_ROUNDS_PER_PAUSE * pauses.len() <= per_x.len() {
            true => pauses
                .iter()
                .map(|i| clock[i + 1] - clock[*i])
                .reduce(f64::max),
            false => None,
        };
        if pause.is_some() {
            for at in pauses {
                let excess = (per_x[at] - typical) * (x[at + 1] - x[at]);
                clock[at + 1..]
                    .iter_mut()
                    .for_each(|seconds| *seconds -= excess);
            }
        }
        let ends = x.first().zip(x.last()).zip(clock.last());
        let mean = ends.map_or(f64::NAN, |((first, last), seconds)| {
            seconds / (last - first)
        });
        if x.len() < MIN_ROUNDS || !(mean > 0.0 && mean.is_finite()) {
            let unknown = Slope {
                per_x: f64::NAN,
                low: f64::NAN,
                high: f64::NAN,
            };
            return (unknown, None);
        }
        // One more long pause could have been observed, or one less.
        let pauses = steps(&clock);
        let longest = pauses.iter().copied().fold(0.0, f64::max);
        let of_pause = (longest - median(&pauses)) / (x[x.len() - 1] - x[0]);
        let Slope { low, high, .. } = Line::with_resolution(x, &clock, 0.0).slope;
        let half_width = f64::max((high - low) / 2.0, of_pause);
        let pace = Slope {
            per_x: mean,
            low: mean - half_width,
            high: mean + half_width,
        };
        (pace, pause)
    }
}

/// The periodic markers of an import: those before the last rise that matters, if the process was level for longer after it
/// than before. 0 if it was not.
fn import(process: &Process, points: &[Point]) -> usize {
    let footprint = |point: &Point| point.sizes.footprint();
    let material = material_growth(points.iter().map(footprint).fold(0.0, f64::max));
    let (mut highest, mut last_rise) = (f64::NEG_INFINITY, 0);
    for (place, point) in points.iter().enumerate() {
        if footprint(point) > highest {
            if footprint(point) > highest + material {
                last_rise = place;
            }
            highest = footprint(point);
        }
    }
    let begin = points[last_rise].t;
    let is_level = process.last_time() - begin > begin - process.first_time;
    if is_level {
        last_rise
    } else {
        0
    }
}

/// A periodic marker shows a change of the size. While there is none, the size stays: it counts again after each minute.
fn hold(x: &mut Vec<f64>, sizes: &mut Vec<Sizes>, minutes: f64) {
    const MAX_POINTS: f64 = 32.0;
    let step = (minutes / MAX_POINTS)
        .max(1.0)
        .min(minutes / MIN_ROUNDS as f64);
    let end = x[0] + minutes;
    let (mut held_x, mut held) = (Vec::new(), Vec::new());
    for (place, (at, size)) in x.iter().zip(&*sizes).enumerate() {
        let next = x.get(place + 1).copied().unwrap_or(end + step);
        let times = std::iter::successors(Some(*at), |before| Some(before + step));
        let times = times.take_while(|time| *time == *at || *time < next - step / 2.0);
        held_x.extend(times);
        held.resize(held_x.len(), *size);
    }
    (*x, *sizes) = (held_x, held);
}

/// The footprint, or the footprint without cached pages where that swings less.
fn footprint(sizes: &[Sizes]) -> (Quantity, Vec<f64>) {
    let all: Vec<f64> = sizes.iter().map(Sizes::footprint).collect();
    let without: Vec<f64> = sizes
        .iter()
        .map(|one| one.footprint() - one.cached())
        .collect();
    let range = |values: &[f64]| {
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        highest - values.iter().copied().fold(f64::INFINITY, f64::min)
    };
    match range(&without) < range(&all) {
        true => (Quantity::WithoutCached, without),
        false => (Quantity::Footprint, all),
    }
}

/// Fills gaps of a size with its previous value. A size that more than a fifth of the markers lack
/// becomes unknown.
pub fn without_gaps(points: &[Point]) -> Vec<Sizes> {
    let mut sizes: Vec<Sizes> = points.iter().map(|point| point.sizes).collect();
    for kind in 0..Sizes::UNKNOWN.0.len() {
        let all = sizes.iter().map(|s| s.0[kind]);
        let mut known = all.filter(|bytes| !bytes.is_nan());
        let missing = sizes.len() - known.clone().count();
        let is_usable = 5 * missing <= sizes.len();
        let mut last = known.next().unwrap_or(f64::NAN);
        for bytes in sizes.iter_mut().map(|s| &mut s.0[kind]) {
            last = if bytes.is_nan() { last } else { *bytes };
            *bytes = if is_usable { last } else { f64::NAN };
        }
    }
    sizes
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{judge, process_and_finding, processes, sample, sizes};
    use crate::report::analyse::stats::random::Random;
    use crate::report::model::Sample;
    use crate::report::units::MB;

    fn judge_rounds(sizes: impl IntoIterator<Item = Sizes>) -> (Finding, Vec<Trend>) {
        let rounds = sizes.into_iter().enumerate();
        let samples = rounds.map(|(round, sizes)| sample(round, sizes));
        judge(&processes(samples)[0]).unwrap()
    }

    pub fn verdict_of(sizes: impl IntoIterator<Item = Sizes>) -> Verdict {
        judge_rounds(sizes).0.verdict
    }

    /// `n` rounds with these sizes in MB.
    fn rounds<const N: usize>(n: u32, of: impl Fn(f64) -> [(Size, f64); N]) -> Vec<Sizes> {
        (0..n).map(|round| sizes(&of(f64::from(round)))).collect()
    }

    /// `n` rounds with this RSS in MB.
    fn rss(n: u32, mut of: impl FnMut(f64) -> f64) -> Vec<Sizes> {
        let one = |round| sizes(&[(Size::Rss, of(f64::from(round)))]);
        (0..n).map(one).collect()
    }

    #[test]
    fn fewer_than_five_rounds_are_not_enough() {
        for rounds in 1..5 {
            let found = verdict_of(rss(rounds, |i| 100.0 + 50.0 * i));
            assert_eq!(found, Verdict::NotEnoughRounds, "{rounds} rounds");
        }
    }

    #[test]
    fn growth_over_six_rounds_is_warming_up() {
        let found = verdict_of(rss(6, |i| 100.0 + 50.0 * i));
        assert_eq!(found, Verdict::WarmingUp);
    }

    #[test]
    fn growth_that_slows_down_is_warming_up() {
        let found = verdict_of(rss(40, |i| 900.0 - 800.0 * (-i / 15.0).exp()));
        assert_eq!(found, Verdict::WarmingUp);
    }

    #[test]
    fn growth_that_ended_early_is_flat() {
        let found = verdict_of(rss(60, |i| 100.0 + 20.0 * i.min(25.0)));
        assert_eq!(found, Verdict::Flat);
    }

    /// A recorded process: 4 MB per round, but one page less from round 13 on. The residuals are
    /// autocorrelated, but so small that they do not matter.
    #[test]
    fn a_nearly_perfect_line_after_a_drop_is_growth() {
        let start = [13972.0, 22682.0, 22682.0, 18079.0, 19104.0, 19107.0];
        let line = (0..18).map(|i| 20132.0 + 1025.0 * i as f64 - f64::from(u8::from(i >= 7)));
        let pages: Vec<f64> = start.into_iter().chain(line).collect();
        let found = verdict_of(rss(24, |i| pages[i as usize] * 4096.0 / MB));
        assert_eq!(found, Verdict::Growth);
    }

    #[test]
    fn growth_with_only_rss_known_is_plain_growth() {
        let found = verdict_of(rss(40, |i| 100.0 + 5.0 * i));
        assert_eq!(found, Verdict::Growth);
    }

    #[test]
    fn pages_moved_from_rss_to_swap_are_swap() {
        let swapped = rounds(40, |i| {
            [(Size::Rss, 900.0 - 5.0 * i), (Size::Swap, 5.0 * i)]
        });
        assert_eq!(verdict_of(swapped), Verdict::Swap);
    }

    #[test]
    fn cached_pages_that_were_never_touched_do_not_become_growth_outside_malloc() {
        let (finding, _) = judge_rounds(rounds(14, |i| {
            [
                (Size::Rss, 43.0 + 16.0 * i),
                (Size::Anon, 13.5),
                (Size::File, 29.5 + 16.0 * i),
                (Size::Shmem, 0.0),
                (Size::Live, 4.4),
                (Size::Retained, 0.5),
                (Size::Recycled, if i < 2.0 { 64.0 } else { 0.0 }),
                (Size::Swap, 0.0),
            ]
        }));
        assert_eq!(finding.causes[0].kind, MemoryKind::File);
        assert!(finding.causes[0].share > 0.9, "{}", finding.causes[0].share);
    }

    #[test]
    fn markers_of_one_round_are_not_growth_per_round() {
        let marker = |seq: usize| {
            let is_round = seq < 6;
            Sample {
                round: is_round.then_some(seq as i64),
                stage: if is_round { "train" } else { "grow" }.into(),
                ..sample(seq, sizes(&[(Size::Rss, 100.0 + 10.0 * seq as f64)]))
            }
        };
        let (finding, _) = judge(&processes((0..20).map(marker))[0]).unwrap();
        let found = (finding.unit, finding.rounds, &*finding.stage);
        assert_eq!(found, (Unit::Marker, 14, "grow"));
    }

    #[test]
    fn gaps_in_a_size_do_not_hide_its_growth() {
        let gaps = rounds(40, |i| {
            let live = 200.0 + 10.0 * i;
            let live = if i % 9.0 == 4.0 { f64::NAN } else { live };
            [(Size::Rss, 300.0 + 10.0 * i), (Size::Live, live)]
        });
        assert_eq!(verdict_of(gaps), Verdict::LiveGrowth);
    }

    #[test]
    fn growth_of_live_memory_within_constant_rss_is_live_growth() {
        let constant_rss = rounds(40, |i| [(Size::Rss, 900.0), (Size::Live, 300.0 + 10.0 * i)]);
        assert_eq!(verdict_of(constant_rss), Verdict::LiveGrowth);
    }

    #[test]
    fn the_slope_is_within_its_interval_and_equals_that_of_the_stage() {
        let mut random = Random::new(5);
        for rounds in [5, 6, 9, 17, 40] {
            let (finding, stages) = judge_rounds(rss(rounds, |i| {
                400.0 + 1.4 * i + random.between(-9.0, 9.0) - if i == 3.0 { 60.0 } else { 0.0 }
            }));
            let slope = finding.trend.slope;
            let inside = slope.low < slope.per_x && slope.per_x < slope.high;
            assert!(inside, "{slope:?}");
            assert_eq!(stages[0].slope, slope);
        }
    }

    #[test]
    fn periodic_markers_between_regular_stages_do_not_decide() {
        let marker = |seq: usize| {
            let is_stage = seq.is_multiple_of(2);
            let rss = if is_stage {
                500.0
            } else {
                600.0 + 20.0 * seq as f64
            };
            Sample {
                round: is_stage.then_some(seq as i64 / 2),
                stage: if is_stage { "send" } else { "periodic" }.into(),
                t: Some(60.0 * seq as f64),
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
            }
        };
        let (finding, _) = judge(&processes((0..48).map(marker))[0]).unwrap();
        let found = (finding.verdict, &*finding.stage);
        assert_eq!(found, (Verdict::Flat, "send"));
    }

    #[test]
    fn a_stage_that_grows_decides_even_if_another_is_flat() {
        let marker = |seq: usize| {
            let (round, low) = (seq / 2, seq.is_multiple_of(2));
            let stage = if low { "send" } else { "receive" };
            let rss = if low {
                300.0
            } else {
                500.0 + 23.0 * round as f64
            };
            Sample {
                round: Some(round as i64),
                stage: stage.into(),
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
            }
        };
        let (finding, stages) = judge(&processes((0..48).map(marker))[0]).unwrap();
        let found = (finding.verdict, &*finding.stage);
        assert_eq!(found, (Verdict::Growth, "receive"));
        assert!(stages
            .iter()
            .any(|trend| trend.slope == finding.trend.slope));
    }

    #[test]
    fn a_small_rise_is_flat_with_any_noise() {
        let mut random = Random::new(11);
        for jitter in [0.0, 0.01, 0.1, 0.3] {
            let found = verdict_of(rss(24, |i| {
                95.0 + 0.1 * i + random.between(-jitter, jitter)
            }));
            assert_eq!(found, Verdict::Flat, "{jitter}");
        }
    }

    #[test]
    fn a_small_rise_over_many_rounds_is_growth() {
        let found = verdict_of(rss(400, |i| 95.0 + 0.1 * i));
        assert_eq!(found, Verdict::Growth);
    }

    #[test]
    fn a_rise_that_adds_too_little_is_flat() {
        let found = verdict_of(rss(20, |i| 220.0 + 0.28 * i));
        assert_eq!(found, Verdict::Flat);
    }

    #[test]
    fn mixed_causes_have_their_shares_of_the_growth() {
        let (finding, _) = judge_rounds(rounds(30, |i| {
            [
                (Size::Live, 200.0 + 6.0 * i),
                (Size::Retained, 50.0 + 3.0 * i),
                (Size::Recycled, 0.0),
                (Size::Rss, 330.0 + 10.0 * i),
            ]
        }));
        assert_eq!(finding.verdict, Verdict::LiveGrowth);
        let percent = |cause: &Cause| (cause.kind, (100.0 * cause.share).round() as i64);
        let shares: Vec<(MemoryKind, i64)> = finding.causes.iter().map(percent).collect();
        let expected = [
            (MemoryKind::Live, 60),
            (MemoryKind::KeptFree, 30),
            (MemoryKind::OutsideMalloc, 10),
        ];
        assert_eq!(shares, expected);
    }

    #[test]
    fn a_sawtooth_is_flat_and_rising_lows_are_growth() {
        for (period, rounds) in [(2.0, 24), (5.0, 48), (7.0, 20), (7.0, 24), (12.0, 48)] {
            let tooth = |i: f64| 300.0 + 40.0 * (i % period);
            assert_eq!(verdict_of(rss(rounds, tooth)), Verdict::Flat, "{period}");
            let rising = rss(rounds, |i| tooth(i) + 4.0 * i);
            assert_eq!(verdict_of(rising), Verdict::Growth, "{period}");
        }
    }

    #[test]
    fn noise_far_above_a_possible_rise_is_unclear() {
        let mut random = Random::new(3);
        let found = verdict_of(rss(8, |i| 300.0 + 2.0 * i + random.between(0.0, 900.0)));
        assert_eq!(found, Verdict::Unclear);
    }

    #[test]
    fn steps_are_named_with_their_round_and_kind_of_memory() {
        let steps = |size: Size, at: Vec<f64>| {
            judge_rounds(rounds(40, |i| {
                let height = 120.0 * at.iter().filter(|at| i >= **at).count() as f64;
                let known = [
                    (Size::Live, 200.0),
                    (Size::Retained, 60.0),
                    (Size::Recycled, 0.0),
                ];
                let part = |of: Size| if of == size { height } else { 0.0 };
                let [live, retained, recycled] = known.map(|(of, mb)| (of, mb + part(of)));
                [live, retained, recycled, (Size::Rss, 300.0 + height)]
            }))
            .0
        };
        for (size, kind) in [
            (Size::Live, MemoryKind::Live),
            (Size::Retained, MemoryKind::KeptFree),
        ] {
            for at in [vec![20.0], vec![10.0, 20.0, 30.0]] {
                let finding = steps(size, at.clone());
                assert_eq!(finding.verdict, Verdict::Flat);
                let found: Vec<f64> = finding.steps.iter().map(|step| step.at).collect();
                assert_eq!(found, at);
                assert!(finding.steps.iter().all(|step| step.kind == kind));
                assert!((finding.steps[0].bytes / MB - 120.0).abs() < 1.0);
            }
        }
    }

    #[test]
    fn falling_memory_is_falling() {
        let found = verdict_of(rss(40, |i| 900.0 - 5.0 * i));
        assert_eq!(found, Verdict::Falling);
    }

    /// Five rounds in five minutes of each hour, 0.4 MB per round: 2 MB per hour.
    #[test]
    fn rates_per_hour_count_the_pauses_between_quick_rounds() {
        let marker = |round: usize| Sample {
            t: Some(3600.0 * (round / 5) as f64 + 60.0 * (round % 5) as f64),
            ..sample(round, sizes(&[(Size::Rss, 300.0 + 0.4 * round as f64)]))
        };
        let (_, finding) = process_and_finding((0..60).map(marker));
        let hourly = finding.per_hour(finding.trend.slope).unwrap();
        let [low, middle, high] = [hourly.low, hourly.per_x, hourly.high].map(|b| b / MB);
        assert!(low < 2.0 && 2.0 < high, "{low} {high}");
        assert!(
            (1.9..2.2).contains(&middle) && high < 2.6,
            "{middle} {high}"
        );
    }

    /// Swarm learning: a client's task has no round, but its training has.
    #[test]
    fn a_stage_without_rounds_is_judged_by_the_rounds_of_the_process() {
        let marker = |seq: usize| {
            let (round, stage) = (seq / 3, ["train", "trim", "trim"][seq % 3]);
            Sample {
                round: (stage == "train").then_some(round as i64),
                stage: stage.into(),
                ..sample(seq, sizes(&[(Size::Rss, 300.0 + 9.0 * round as f64)]))
            }
        };
        let process = &processes((0..60).map(marker))[0];
        let series = process.series("trim").unwrap();
        assert_eq!(
            (series.unit(), series.rounds, series.len()),
            (Unit::Round, 20, 40)
        );
        let (_, trends) = judge(process).unwrap();
        for trend in trends {
            let per_round = trend.slope.per_x / MB;
            assert!((per_round - 9.0).abs() < 0.5, "{per_round}");
        }
    }

    /// Two trainers of one NVFlare job, in MB at `send`: glibc keeps 15 MB in some rounds.
    #[test]
    fn recorded_twins_of_one_job_are_flat() {
        let site_1 = [
            119.0, 105.0, 106.0, 104.0, 122.0, 125.0, 127.0, 127.0, 127.0, 121.0, 125.0, 123.0,
            127.0, 124.0, 106.0, 107.0, 107.0, 122.0, 123.0, 125.0, 124.0, 108.0, 107.0, 108.0,
            109.0, 113.0, 110.0, 114.0, 115.0, 113.0, 116.0, 100.0, 113.0, 114.0, 113.0, 132.0,
            131.0, 131.0, 131.0, 131.0, 121.0, 131.0, 119.0, 129.0, 120.0, 108.0, 120.0, 114.0,
            116.0, 113.0, 130.0, 131.0, 133.0, 133.0, 131.0, 113.0, 114.0, 113.0, 114.0, 114.0,
        ];
        let site_2 = [
            121.0, 119.0, 105.0, 126.0, 124.0, 121.0, 122.0, 123.0, 121.0, 125.0, 121.0, 123.0,
            128.0, 107.0, 126.0, 114.0, 109.0, 124.0, 122.0, 125.0, 123.0, 124.0, 129.0, 126.0,
            128.0, 121.0, 114.0, 113.0, 108.0, 113.0, 114.0, 113.0, 114.0, 114.0, 113.0, 120.0,
            129.0, 130.0, 129.0, 131.0, 126.0, 115.0, 113.0, 114.0, 113.0, 129.0, 113.0, 114.0,
            115.0, 114.0, 108.0, 124.0, 128.0, 129.0, 115.0, 114.0, 115.0, 114.0, 110.0, 114.0,
        ];
        for recorded in [site_1, site_2] {
            let found = verdict_of(rss(60, |i| recorded[i as usize]));
            assert_eq!(found, Verdict::Flat);
        }
    }

    /// Beside rounds, the growth of periodic markers per minute is not one per round: during an import
    /// of 20 seconds it is large.
    #[test]
    fn the_growth_per_minute_of_periodic_markers_is_not_shown_beside_rounds() {
        let marker = |seq: usize, t: f64, stage: &'static str, rss: f64| Sample {
            seq: Some(seq as u64),
            round: (stage == "send").then(|| seq as i64 - 20),
            stage: stage.into(),
            t: Some(t),
            ..sample(0, sizes(&[(Size::Rss, rss)]))
        };
        let import = (0..20).map(|i| marker(i, i as f64, "periodic", 5.0 + 10.0 * i as f64));
        let rounds = (20..40).map(|i| marker(i, 60.0 * i as f64, "send", 200.0));
        let process = processes(import.chain(rounds)).remove(0);
        let (finding, trends) = judge(&process).unwrap();
        assert_eq!(
            (finding.verdict, finding.unit),
            (Verdict::Flat, Unit::Round)
        );
        assert!(trends[0].slope.per_x > 500.0 * MB);
        let report = analyse(vec![process]).remove(0);
        let growth: Vec<_> = report.stages.iter().map(|s| s.growth.is_some()).collect();
        assert_eq!(growth, [false, true]);
    }

    #[test]
    fn the_start_of_a_process_with_few_rounds_is_not_judged() {
        let finding = |rounds: usize, waits: usize, growth: f64| {
            let marker = |seq: usize, stage: &'static str, rss: f64| Sample {
                seq: Some(seq as u64),
                round: (stage == "send").then(|| seq as i64 - 8),
                stage: stage.into(),
                t: Some(60.0 * seq as f64),
                ..sample(0, sizes(&[(Size::Rss, rss)]))
            };
            let import = (0..8).map(|i| marker(i, "periodic", 5.0 + 100.0 * i as f64));
            let rounds = (8..8 + rounds).map(|i| marker(i, "send", 900.0));
            let waits =
                (20..20 + waits).map(|i| marker(i, "periodic", 900.0 + growth * (i - 20) as f64));
            process_and_finding(import.chain(rounds).chain(waits)).1
        };
        let few = finding(3, 0, 0.0);
        assert_eq!(
            (few.verdict, few.stage.as_str()),
            (Verdict::NotEnoughRounds, "send")
        );
        assert_eq!(finding(0, 0, 0.0).stage, "periodic");
        assert_eq!(finding(3, 5, 0.0).verdict, Verdict::NotEnoughRounds);
        for waits in 6..12 {
            assert_eq!(finding(3, waits, 0.0).verdict, Verdict::Flat, "{waits}");
        }
        assert_eq!(finding(1, 12, 100.0).verdict, Verdict::Growth);
    }

    /// A program without stages writes a marker per minute, and none while its memory is unchanged.
    #[test]
    fn periodic_markers_are_judged_per_minute() {
        let mut minute = 0.0;
        let marker = |seq: usize| {
            minute += if seq % 4 == 3 { 8.0 } else { 1.0 };
            Sample {
                round: None,
                stage: "periodic".into(),
                t: Some(60.0 * minute),
                ..sample(seq, sizes(&[(Size::Rss, 300.0 + 2.0 * minute)]))
            }
        };
        let (_, finding) = process_and_finding((0..20).map(marker));
        assert_eq!(
            (finding.verdict, finding.unit),
            (Verdict::Growth, Unit::Minute)
        );
        assert_eq!((finding.rounds, finding.rounds_unit()), (20, Unit::Marker));
        let slope = finding.trend.slope.per_x / MB;
        assert!((slope - 2.0).abs() < 0.01, "{slope}");
        assert!((finding.pace.per_x - 60.0).abs() < 1e-6);
    }
}
