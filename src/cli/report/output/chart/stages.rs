//! The stages of a round, one bar each: the parts of memory at that stage, as medians over the settled
//! rounds.

use std::cmp::Ordering;

use maud::{html, Markup};

use super::{figure, short, Key};
use crate::report::analyse::{median_sizes, ProcessReport};
use crate::report::model::{or_zero, Series, Size, Sizes, Unit};
use crate::report::units::{size, MB};

const MAX_STAGES: usize = 14;

pub fn chart(report: &ProcessReport) -> Markup {
    let warm_up = report.finding.trend.warm_up;
    let typical = |series: &Series| {
        let points = series.points();
        let settled = &points[warm_up.min(points.len() - 1)..];
        median_sizes(settled.iter().map(|point| &point.sizes))
    };
    let stages = in_order(report).into_iter();
    let stages: Vec<_> = stages.map(|(name, s)| (name, typical(s))).collect();
    let highest = stages
        .iter()
        .map(|(_, sizes)| sizes.footprint())
        .fold(MB, f64::max);
    let title = match report.finding.unit {
        Unit::Round => "Within a round",
        Unit::Minute | Unit::Marker => "At each stage",
    };
    let value = |(name, sizes): &(&str, Sizes)| format!("{name} {}", size(sizes[Size::Rss]));
    let values = stages.iter().map(value).collect::<Vec<_>>().join(", ");
    let width = |bytes: f64| format!("width:{:.1}%", 100.0 * bytes / highest);
    let bars = html! {
        div.bars role="img" aria-label={ (report.full_name()) ": memory at each stage. " (values) } {
            @for (name, sizes) in &stages {
                (short(name))
                div {
                    @for (class, part, bytes) in parts(sizes) {
                        i class=(class) style=(width(bytes)) title={ (name) ", " (part) ": " (size(bytes)) } {}
                    }
                }
                span.n { (size(sizes[Size::Rss])) }
            }
        }
    };
    let is_present = |part: &&Part| stages.iter().any(|(_, sizes)| part.2(sizes) > 0.0);
    let keys = PARTS
        .iter()
        .filter(is_present)
        .map(|(class, name, _)| (*class, (*name).to_owned()));
    figure(
        title,
        "median of each stage",
        &bars,
        &keys.collect::<Vec<Key>>(),
    )
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

/// The known parts that are not empty.
fn parts(sizes: &Sizes) -> impl Iterator<Item = (&'static str, &'static str, f64)> + '_ {
    let parts = PARTS
        .iter()
        .map(|(class, name, of)| (*class, *name, of(sizes)));
    parts.filter(|(_, _, bytes)| *bytes > 0.0)
}

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
