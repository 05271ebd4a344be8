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
    let mut keys: Vec<Key> = Vec::new();
    for (class, name, _) in stages.iter().flat_map(|(_, sizes)| parts(sizes)) {
        if !keys.iter().any(|(known, _)| *known == class) {
            keys.push((class, name.to_owned()));
        }
    }
    figure(title, "median of each stage", &bars, &keys)
}

/// The known parts of a bar from left to right: class, name and size.
fn parts(sizes: &Sizes) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
    let (rss, live, file) = (sizes[Size::Rss], sizes[Size::Live], sizes.file_backed());
    // Live memory includes pages that were never touched.
    let live = if live > rss { rss } else { live };
    let known = or_zero(live) + or_zero(sizes.kept_free()) + or_zero(file);
    let rest = match live.is_nan() && file.is_nan() {
        true => ("fill-whole", "RSS", rss),
        false => ("fill-other", "other", rss - known),
    };
    let parts = [
        ("fill-live", "live", live),
        ("fill-cached", "cached", sizes[Size::Recycled]),
        ("fill-held", "retained", sizes[Size::Retained]),
        ("fill-file", "file", file),
        rest,
        ("fill-swap", "swap", sizes[Size::Swap]),
    ];
    parts.into_iter().filter(|(_, _, bytes)| *bytes > 0.0)
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
