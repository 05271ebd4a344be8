//! The stages of a round, one bar each: the parts of memory at that stage, as medians over the settled
//! rounds.

use std::cmp::Ordering;

use super::frame::{svg_element, HEIGHT, WIDTH};
use super::scale::{size_range, size_ticks, Scale};
use super::svg::{shortened, Svg};
use crate::report::analyse::{median_sizes, ProcessReport};
use crate::report::model::{or_zero, Series, Size, Sizes, Unit};
use crate::report::units::{size, MB};

const LEFT: f64 = 190.0;
const RIGHT: f64 = 86.0;
const TOP: f64 = 52.0;
const MAX_STAGES: usize = 14;

pub fn chart(report: &ProcessReport, id: &str) -> Option<String> {
    let warm_up = report.finding.trend.warm_up;
    let typical = |series: &Series| {
        let points = series.points();
        let settled = &points[warm_up.min(points.len() - 1)..];
        median_sizes(settled.iter().map(|point| &point.sizes))
    };
    let stages = in_order(report).into_iter();
    let stages: Vec<_> = stages.map(|(name, s)| (name, typical(s))).collect();
    let footprints = stages.iter().map(|(_, sizes)| sizes.footprint());
    let (low, high) = size_range(0.0, footprints.fold(MB, f64::max));
    let x = Scale::new((low, high), (LEFT, WIDTH - RIGHT));
    let bar_height = ((HEIGHT - TOP - 34.0) / stages.len() as f64).clamp(18.0, 26.0);
    let bottom = TOP + bar_height * stages.len() as f64 + 4.0;
    let mut svg = Svg::default();
    let heading = match report.finding.unit {
        Unit::Round => "Within a round",
        Unit::Minute | Unit::Marker => "At each stage",
    };
    svg.heading((16.0, 17.0), heading, "median of each stage");
    for (value, label) in size_ticks(low, high, 5.0) {
        let x = x.place(value);
        svg.line("grid", (x, TOP - 2.0), (x, bottom));
        svg.text("tick", (x, bottom + 17.0), "middle", &label);
    }
    let mut present = [false; PARTS.len()];
    for (i, (name, sizes)) in stages.iter().enumerate() {
        let y = (TOP + bar_height * i as f64, bar_height);
        bar(&mut svg, &x, y, name, sizes, &mut present);
    }
    legend(&mut svg, &present);
    let title = format!("{}: memory at each stage", report.full_name());
    let value = |(name, s): &(&str, Sizes)| format!("{name} {}", size(s[Size::Rss]));
    let text = stages.iter().map(value).collect::<Vec<_>>().join(", ");
    Some(svg_element(
        id,
        (WIDTH, bottom + 28.0),
        &title,
        &text,
        &svg.out,
    ))
}

/// A part of a bar: class, name and size. The order is from left to right.
type Part = (&'static str, &'static str, fn(&Sizes) -> f64);

const PARTS: [Part; 7] = [
    ("fill-live", "live", live),
    ("fill-cached", "cached", |s| s[Size::Recycled]),
    ("fill-held", "retained", |s| s[Size::Retained]),
    ("fill-file", "file", Sizes::file_backed),
    ("fill-other", "other", other),
    ("fill-whole", "RSS", whole),
    ("fill-swap", "swap", |s| s[Size::Swap]),
];

/// Live memory, but at most RSS: live memory includes pages that were never touched.
fn live(sizes: &Sizes) -> f64 {
    let (live, rss) = (sizes[Size::Live], sizes[Size::Rss]);
    if live > rss {
        rss
    } else {
        live
    }
}

/// RSS if no part of it is known, else 0.
fn whole(sizes: &Sizes) -> f64 {
    match sizes[Size::Live].is_nan() && sizes.file_backed().is_nan() {
        true => sizes[Size::Rss],
        false => 0.0,
    }
}

/// The part of RSS that belongs to no other part.
fn other(sizes: &Sizes) -> f64 {
    if whole(sizes) > 0.0 {
        return 0.0;
    }
    let parts =
        or_zero(sizes[Size::Live]) + or_zero(sizes.kept_free()) + or_zero(sizes.file_backed());
    f64::max(sizes[Size::Rss] - parts, 0.0)
}

/// Draws one bar. `y` is its upper edge and its height.
fn bar(
    svg: &mut Svg,
    x: &Scale,
    (y, height): (f64, f64),
    name: &str,
    sizes: &Sizes,
    present: &mut [bool; PARTS.len()],
) {
    let baseline = y + height / 2.0 + 5.0;
    svg.text("stage", (LEFT - 8.0, baseline), "end", &shortened(name));
    let mut at = 0.0;
    for (i, (class, part, of)) in PARTS.iter().enumerate() {
        let bytes = of(sizes);
        if bytes.is_nan() || bytes <= 0.0 {
            continue;
        }
        present[i] = true;
        let (left, right) = (x.place(at), x.place(at + bytes));
        let title = format!("{name}, {part}: {}", size(bytes));
        let width = f64::max(right - left - 1.0, 0.3);
        svg.rect(class, (left, y + 2.5), (width, height - 5.0), &title);
        at += bytes;
    }
    let (end, rss) = (x.place(at) + 6.0, size(sizes[Size::Rss]));
    svg.text("tick", (end, baseline), "start", &rss);
}

fn legend(svg: &mut Svg, present: &[bool; PARTS.len()]) {
    let mut at = 16.0;
    for ((class, name, _), _) in PARTS.iter().zip(present).filter(|(_, present)| **present) {
        svg.rect(class, (at, 28.0), (14.0, 9.0), "");
        svg.text("key", (at + 19.0, 36.0), "start", name);
        at += 30.0 + 7.8 * name.len() as f64;
    }
}

/// The stages that occur in at least half the rounds, in the order in which they occur.
fn in_order(report: &ProcessReport) -> Vec<(&str, &Series)> {
    let all = || report.process.stages.iter().map(|(name, s)| (&**name, s));
    let most = all().map(|(_, s)| s.len()).max().unwrap_or(0);
    let regular = all().filter(|(_, s)| 2 * s.len() >= most);
    let mut stages: Vec<(&str, &Series)> = regular.collect();
    let place = |(_, series): &(&str, &Series)| {
        let middle = &series.points()[series.len() / 2];
        (middle.round, middle.order)
    };
    stages.sort_by(|a, b| place(a).partial_cmp(&place(b)).unwrap_or(Ordering::Equal));
    stages.truncate(MAX_STAGES);
    stages
}
