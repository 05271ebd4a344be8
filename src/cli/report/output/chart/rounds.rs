//! Memory over the rounds, at the stage that decided the verdict.

use super::scale::Axis;
use super::{area, steps, thinned, Chart, Curve, Points};
use crate::report::analyse::ProcessReport;
use crate::report::explain::live_suffix;
use crate::report::model::{Point, Size, Sizes};
use crate::report::units::{signed_size, size, MB};

const MAX_POINTS: usize = 240;
const SIZE: (f64, f64) = (530.0, 240.0);

pub fn chart(report: &ProcessReport) -> Option<Chart> {
    let series = report.series().filter(|series| series.len() > 1)?;
    let points: Vec<(f64, &Point)> = series.positioned().collect();
    let points = thinned(&points, MAX_POINTS, |(_, point)| point.sizes[Size::Rss]);
    let unit = report.finding.unit.name();
    let tip = |(x, point): &(f64, &Point)| {
        let (rss, live) = (point.sizes[Size::Rss], point.sizes[Size::Live]);
        (
            *x,
            format!("{unit} {x:.0}: RSS {}{}", size(rss), live_suffix(live)),
        )
    };
    let (y, curves) = curves(&points);
    Some(Chart {
        title: format!("Over {unit}s"),
        note: format!("at {}", report.finding.stage),
        label: label(report),
        size: SIZE,
        axis: Axis::Count(unit),
        x: (points.first()?.0, points.last()?.0),
        y,
        limit: report.process.cgroup_limit,
        curves,
        warm_up: Some(report.finding.trend.settled_from)
            .filter(|_| report.finding.trend.warm_up > 0),
        kills: Vec::new(),
        tips: points.iter().map(tip).collect(),
    })
}

/// The range of sizes, and the curves with known values.
fn curves(points: &[(f64, &Point)]) -> ((f64, f64), Vec<Curve>) {
    let known = |value: fn(&Sizes) -> f64| -> Points {
        let values = points.iter().map(|(x, point)| (*x, value(&point.sizes)));
        values.filter(|(_, y)| !y.is_nan()).collect()
    };
    let line = |class, name: &str, value| Curve {
        class,
        name: name.to_owned(),
        points: steps(&known(value)),
    };
    let mut curves = vec![
        line("rss", "RSS", |s| s[Size::Rss]),
        line("live", "live", |s| s[Size::Live]),
        line("swap", "swap", |s| s[Size::Swap]),
    ];
    curves.retain(|curve| curve.points.iter().any(|(_, y)| *y > 0.0));
    let sizes = || {
        curves
            .iter()
            .flat_map(|curve| &curve.points)
            .map(|(_, y)| *y)
    };
    let (low, high) = (
        sizes().fold(f64::INFINITY, f64::min),
        sizes().fold(MB, f64::max),
    );
    // The height of an area shows its size, so the axis starts at zero. Lines alone may start far above zero.
    let held = known(|s| s[Size::Live] + s.kept_free());
    let y = match held.is_empty() && low.is_finite() && low > 0.5 * high {
        true => (low, high),
        false => (0.0, high),
    };
    let file = line("file", "file", Sizes::file_backed);
    // It would hide the lower edge.
    let is_visible = |(_, bytes): &(f64, f64)| *bytes > y.0 + 0.05 * (y.1 - y.0);
    curves.extend(Some(file).filter(|file| file.points.iter().any(is_visible)));
    if !held.is_empty() {
        curves.push(Curve {
            class: "fill-held",
            name: "cached + retained".to_owned(),
            points: area(steps(&held), steps(&known(|s| s[Size::Live]))),
        });
    }
    (y, curves)
}

fn label(report: &ProcessReport) -> String {
    let finding = &report.finding;
    format!(
        "{}: memory over {}s. RSS at {} ends at {}; peak {}; slope {} per {}. Verdict: {}.",
        report.full_name(),
        finding.unit,
        finding.stage,
        size(report.last_rss),
        size(report.process.peak_rss),
        signed_size(finding.trend.slope.per_x),
        finding.unit,
        finding.verdict.name(),
    )
}
