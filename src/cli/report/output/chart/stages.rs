//! The stages of a round, one bar each: what the memory consists of there, in the middle of the
//! settled rounds.

use std::cmp::Ordering;

use super::frame::{chart as finish, HEIGHT, WIDTH};
use super::scale::{size_range, sizes, Scale};
use super::svg::{shortened, Svg};
use crate::report::analyse::attribution::typical;
use crate::report::analyse::ProcessReport;
use crate::report::model::{or_zero, Series, Size, Sizes};
use crate::report::units::{size, MB};

const LEFT: f64 = 190.0;
const RIGHT: f64 = 86.0;
const TOP: f64 = 52.0;
const MOST_STAGES: usize = 14;

pub fn chart(report: &ProcessReport, id: &str) -> Option<String> {
    let warm_up = report.finding.trend.warm_up;
    let typical = |series: &Series| {
        let points = series.points();
        let settled = &points[warm_up.min(points.len() - 1)..];
        typical(settled.iter().map(|point| &point.sizes))
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
        "round" => "Within a round",
        _ => "At each stage",
    };
    svg.heading((16.0, 17.0), heading, "median of each stage");
    for (value, label) in sizes(low, high, 5.0) {
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
    let title = format!("{}: memory at each stage", report.name());
    let told = |(name, s): &(&str, Sizes)| format!("{name} {}", size(s[Size::Rss]));
    let text = stages.iter().map(told).collect::<Vec<_>>().join(", ");
    Some(finish(id, (WIDTH, bottom + 28.0), &title, &text, &svg.out))
}

/// Class, name and size of what a bar consists of, from the left.
type Part = (&'static str, &'static str, fn(&Sizes) -> f64);

const PARTS: [Part; 8] = [
    ("fill-live", "live", live),
    ("fill-cached", "cached", |s| s[Size::Recycled]),
    ("fill-held", "retained", |s| s[Size::Retained]),
    ("fill-file", "file", Sizes::file_backed),
    ("fill-other", "other", other),
    ("fill-whole", "RSS", whole),
    ("fill-hibernated", "hibernated", |s| s[Size::Hibernated]),
    ("fill-swap", "swap", Sizes::pushed_out),
];

/// Live memory can be larger than RSS: pages that were never touched.
fn live(sizes: &Sizes) -> f64 {
    let (live, rss) = (sizes[Size::Live], sizes[Size::Rss]);
    if live > rss {
        rss
    } else {
        live
    }
}

/// RSS where nothing else is known.
fn whole(sizes: &Sizes) -> f64 {
    match sizes[Size::Live].is_nan() && sizes.file_backed().is_nan() {
        true => sizes[Size::Rss],
        false => 0.0,
    }
}

/// What of RSS is nothing of the above.
fn other(sizes: &Sizes) -> f64 {
    if whole(sizes) > 0.0 {
        return 0.0;
    }
    let parts =
        or_zero(sizes[Size::Live]) + or_zero(sizes.held_back()) + or_zero(sizes.file_backed());
    f64::max(sizes[Size::Rss] - parts, 0.0)
}

/// `y`: the upper edge and the height.
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

/// Stages of one round in the order in which they come; those of start and end beside them.
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
    stages.truncate(MOST_STAGES);
    stages
}
