//! Finds growth after a stage of the program that only periodic markers show.

use flarena_shared::stages::Stage;
use serde::Serialize;

use crate::report::model::{Point, Process};

/// Growth after a marker of the program, up to a size that none of its markers shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthInside {
    pub stage: String,
    pub round: Option<i64>,
    pub bytes: f64,
    pub seconds: f64,
    /// A later marker of the program is lower.
    #[serde(skip)]
    pub has_fallen: bool,
}

/// Smaller growth above the markers of the program is not worth a sentence.
const MIN_GROWTH_SHARE: f64 = 0.05;
const MIN_GROWTH_BYTES: f64 = (16 << 20) as f64;

/// The largest growth after a stage. `None` if the program's own markers show the peak, too.
pub fn growth_inside(process: &Process) -> Option<GrowthInside> {
    // `load` is the library's, but begins the time of the program.
    let stages = process.stages.iter();
    let own = stages.filter(|(name, _)| **name != *Stage::Periodic.name());
    let marks = own.flat_map(|(name, series)| series.points().iter().map(|point| (&**name, point)));
    let mut marks: Vec<(&str, &Point)> = marks.collect();
    marks.sort_by_key(|(_, point)| point.order);
    let peaks = marks.iter().map(|(_, point)| point.peak);
    let highest = peaks.fold(f64::NAN, f64::max);
    let least = highest + (highest * MIN_GROWTH_SHARE).max(MIN_GROWTH_BYTES);
    let periodic = process.series(Stage::Periodic.name())?.points().iter();
    let grown = periodic.filter(|point| point.peak > least);
    let growth = grown.filter_map(|point| {
        let before = marks.partition_point(|(_, mark)| mark.order < point.order);
        let (stage, mark) = marks[..before].last()?;
        Some(GrowthInside {
            has_fallen: before < marks.len(),
            stage: (*stage).to_owned(),
            round: mark.known_round(),
            bytes: point.peak - mark.peak,
            seconds: point.t - mark.t,
        })
    });
    growth.max_by(|a, b| a.bytes.total_cmp(&b.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    /// `(seconds, stage, RSS in MB)`
    fn course<'a>(markers: &'a [(f64, &'a str, f64)]) -> impl Iterator<Item = Sample> + 'a {
        markers
            .iter()
            .enumerate()
            .map(|(seq, &(t, stage, rss))| Sample {
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

    #[test]
    fn growth_after_the_only_stage_is_found_with_its_duration() {
        let found = growth_inside(&processes(course(&GROWS))[0]).unwrap();
        assert_eq!((&*found.stage, found.round), ("train", Some(12)));
        assert_eq!((found.bytes / MB, found.seconds), (690.0, 70.0));
        assert!(!found.has_fallen);
    }

    #[test]
    fn growth_that_a_later_stage_shows_is_not_repeated() {
        let after = |rss| {
            let markers = [GROWS.as_slice(), &[(90.0, "send", rss)]].concat();
            growth_inside(&processes(course(&markers))[0])
        };
        assert_eq!(after(700.0), None);
        assert!(after(20.0).is_some_and(|growth| growth.has_fallen));
    }
}
