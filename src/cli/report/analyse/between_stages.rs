//! Finds growth between the visits of the program's stages: a peak inside the rounds, or growth after a stage that only
//! periodic markers show.

use flarena_shared::stages::Stage;
use serde::Serialize;

use super::Finding;
use crate::report::model::{Point, Process, Series};

/// Growth after a marker of the program, up to a size that none of its markers shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthInside {
    pub stage: String,
    pub round: Option<i64>,
    pub bytes: f64,
    pub seconds: Option<f64>,
}

/// Smaller growth above the markers of the program is not worth a sentence.
const MIN_GROWTH_SHARE: f64 = 0.05;
const MIN_GROWTH_BYTES: f64 = (16 << 20) as f64;

/// The largest growth after a stage. `None` if the program's own markers show the peak, or if the periodic ones are judged.
pub fn growth_inside(finding: &Finding) -> Option<GrowthInside> {
    let process = finding.process;
    if finding.series.is_periodic() {
        return None;
    }
    let mut marks: Vec<(&str, &Point)> = own_points(process).collect();
    marks.sort_by_key(|(_, point)| point.order);
    let peaks = marks.iter().map(|(_, point)| point.peak);
    let highest = peaks.fold(0.0, f64::max);
    let least = highest + (highest * MIN_GROWTH_SHARE).max(MIN_GROWTH_BYTES);
    let periodic = process.series(Stage::Periodic.name())?.points().iter();
    let grown = periodic.filter(|point| point.peak > least);
    let growth = grown.filter_map(|point| {
        let before = marks.partition_point(|(_, mark)| mark.order < point.order);
        let (stage, mark) = marks[..before].last()?;
        Some(GrowthInside {
            stage: (*stage).to_owned(),
            round: mark.round,
            bytes: point.peak - mark.peak,
            seconds: point.t.zip(mark.t).map(|(to, from)| to - from),
        })
    });
    growth.max_by(|a, b| a.bytes.total_cmp(&b.bytes))
}

/// For each point of a series the highest value of a marker since the point before it, and the stage of that marker. `value`
/// gets the place of the point and the marker.
pub fn highest<'a>(
    process: &'a Process,
    series: &Series,
    value: impl Fn(usize, &Point) -> f64,
) -> Vec<(f64, &'a str)> {
    let visits = series.points();
    let mut highest = vec![(0.0, ""); visits.len()];
    for stage in &process.stages {
        for marker in stage.points() {
            let place = visits.partition_point(|visit| visit.order < marker.order);
            let Some(found) = highest.get_mut(place) else {
                break;
            };
            let value = value(place, marker);
            if value > found.0 {
                *found = (value, &stage.stage);
            }
        }
    }
    highest
}

/// The markers of the program's own, with their stages. `load` is the library's, but begins the time of the program.
pub fn own_points(process: &Process) -> impl Iterator<Item = (&str, &Point)> {
    let all = process.visits();
    all.filter(|(stage, _)| *stage != Stage::Periodic.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{bytes, finding_of, sample, sizes, Random};
    use crate::report::analyse::{Quantity, Verdict};
    use crate::report::model::Size;
    use crate::report::units::MB;
    use flarena_shared::marker::Marker;

    /// `(seconds, stage, RSS in MB)`
    fn course<'a>(markers: &'a [(f64, &'a str, f64)]) -> impl Iterator<Item = Marker> + 'a {
        markers
            .iter()
            .enumerate()
            .map(|(seq, &(t, stage, rss))| Marker {
                t: Some(t),
                stage: stage.into(),
                round: (stage == "train").then_some(12),
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
            })
    }

    const GROWS: [(f64, &str, f64); 4] = [
        (0.0, "load", 5.0),
        (10.0, "train", 15.0),
        (50.0, "periodic", 415.0),
        (80.0, "periodic", 705.0),
    ];

    /// 40 rounds of 300 MB at both markers. The peak before the marker `train` is this much higher.
    fn rounds(leak: f64, mut excess: impl FnMut(f64) -> f64) -> Finding<'static> {
        let markers = (0..80).map(|seq| {
            let (round, is_train) = (seq / 2, seq % 2 == 0);
            let rss = 300.0 + leak * round as f64;
            let peak = if is_train {
                rss + excess(round as f64)
            } else {
                rss
            };
            Marker {
                stage: if is_train { "train" } else { "send" }.into(),
                round: Some(round as i64),
                peak_bytes: bytes(peak),
                cgroup_limit_bytes: bytes(4000.0),
                ..sample(seq, sizes(&[(Size::Rss, rss), (Size::Live, rss)]))
            }
        });
        finding_of(markers)
    }

    #[test]
    fn a_peak_that_grows_inside_the_rounds_is_growth_with_a_time_to_the_limit() {
        let finding = rounds(0.0, |round| 100.0 + 40.0 * round);
        assert_eq!(
            (finding.verdict, finding.quantity),
            (Verdict::Growth, Quantity::Peak)
        );
        let growth = finding.peak_growth.as_ref().unwrap();
        assert_eq!(growth.before_stage.as_deref(), Some("train"));
        let limit = finding.time_to_limit().unwrap();
        // 20 s a round.
        let seconds = (4000.0 - 400.0 - 39.0 * 40.0) / 40.0 * 20.0;
        assert!(
            (limit.seconds / seconds - 1.0).abs() < 0.02,
            "{}",
            limit.seconds
        );
    }

    #[test]
    fn a_peak_that_grows_faster_than_the_markers_decides_the_time_to_the_limit() {
        let finding = rounds(10.0, |round| 100.0 + 40.0 * round);
        assert_eq!(
            (finding.verdict, finding.quantity),
            (Verdict::LiveGrowth, Quantity::Footprint)
        );
        assert!((finding.fastest_growth().value / MB - 50.0).abs() < 0.5);
        let limit = finding.time_to_limit().unwrap();
        let seconds = (4000.0 - 400.0 - 39.0 * 50.0) / 50.0 * 20.0;
        assert!(
            (limit.seconds / seconds - 1.0).abs() < 0.02,
            "{}",
            limit.seconds
        );
    }

    #[test]
    fn a_peak_that_grows_above_garbage_that_is_collected_is_growth() {
        let marker = |round: usize| {
            let live = 300.0 + 60.0 * (round % 4) as f64;
            let released = if round.is_multiple_of(4) { 180.0 } else { 0.0 };
            Marker {
                peak_bytes: bytes(live + 100.0 + 40.0 * round as f64),
                gc_released_bytes: bytes(released),
                gc_live_after_bytes: bytes(300.0).filter(|_| released > 0.0),
                ..sample(
                    round,
                    sizes(&[(Size::Live, live), (Size::Rss, live + 50.0)]),
                )
            }
        };
        let finding = finding_of((0..40).map(marker));
        assert_eq!(
            (finding.verdict, finding.quantity),
            (Verdict::Growth, Quantity::Peak)
        );
    }

    #[test]
    fn peaks_without_a_trend_do_not_change_the_verdict() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            for spread in [0.05, 0.2, 0.5] {
                let excess = |_| 200.0 * f64::exp(spread * random.normal());
                let finding = rounds(0.0, excess);
                assert_eq!(finding.verdict, Verdict::Flat, "{seed} {spread}");
            }
            let finding = rounds(10.0, |_| 200.0 + 10.0 * random.normal());
            assert!(finding.peak_growth.is_none(), "{seed}");
        }
    }

    #[test]
    fn growth_after_the_only_stage_is_found_with_its_duration() {
        let found = growth_inside(&finding_of(course(&GROWS))).unwrap();
        assert_eq!((&*found.stage, found.round), ("train", Some(12)));
        assert_eq!((found.bytes / MB, found.seconds), (690.0, Some(70.0)));
    }

    #[test]
    fn growth_of_periodic_markers_that_are_judged_is_not_repeated() {
        let start = [(0.0, "load", 5.0), (40.0, "periodic", 300.0)];
        let level = (1..20).map(|minute| (60.0 * f64::from(minute), "periodic", 300.0));
        let markers: Vec<_> = start.into_iter().chain(level).collect();
        let finding = finding_of(course(&markers));
        assert_eq!(&*finding.series.stage, "periodic");
        assert_eq!(growth_inside(&finding), None);
    }

    #[test]
    fn growth_that_a_later_stage_shows_is_not_repeated() {
        let after = |rss| {
            let markers = [GROWS.as_slice(), &[(90.0, "send", rss)]].concat();
            growth_inside(&finding_of(course(&markers)))
        };
        assert_eq!(after(700.0), None);
        assert!(after(20.0).is_some());
    }
}
