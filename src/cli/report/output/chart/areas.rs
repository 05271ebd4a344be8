//! Charts of the kinds of memory: the memory of all processes over the time of day, and that of one process over its rounds, at
//! the stage that decided the verdict, as areas on each other; and its stages as bars.

use maud::{html, Markup};

use super::scale::Axis;
use super::{figure, key, thinned, Chart, Key};
use crate::report::analyse::{median_sizes, Finding, Group, Together};
use crate::report::model::{Point, Series, Size, Sizes};
use crate::report::units::{size, time_of_day, MB};

/// Rounds that are drawn.
const MAX_ROUNDS: usize = 240;

/// A place of the axis, and the height of each area there.
type Column = (f64, Vec<f64>);

/// `None` if all markers have the same time.
pub fn together(all: &Together) -> Option<Chart> {
    let key = |(place, group): (usize, &Group)| {
        let name = format!("{}, peak {}", group.name, size(group.peak));
        (place, (format!("area-{place}"), name))
    };
    let keys: Vec<(usize, Key)> = all.groups.iter().enumerate().map(key).collect();
    let kill = |(t, name): &(f64, String)| (*t, format!("killed at {}: {name}", time_of_day(*t)));
    (!all.moments.is_empty()).then(|| Chart {
        title: "Memory over time".to_owned(),
        note: "stacked, over the time of day".to_owned(),
        size: (1100.0, 340.0),
        axis: Axis::Clock,
        limit: all.limit,
        kills: all.kills.iter().map(kill).collect(),
        ..stacked(&keys, &all.moments, time_of_day)
    })
}

/// `None` for a process with fewer than two rounds.
pub fn rounds(finding: &Finding) -> Option<Chart> {
    let points: Vec<(f64, &Point)> = finding.series.positioned().collect();
    if points.len() < 2 {
        return None;
    }
    let points = thinned(&points, MAX_ROUNDS, |(_, point)| point.sizes.rss());
    let columns = points.iter().map(|(x, point)| (*x, parts(&point.sizes)));
    let mut columns: Vec<Column> = columns.collect();
    // Where some markers know RSS alone, areas of all parts would be teeth.
    if columns.iter().any(|(_, parts)| parts[WHOLE] > 0.0) {
        for (_, parts) in &mut columns {
            let rss = parts[..SWAP].iter().sum();
            parts[..SWAP].fill(0.0);
            parts[WHOLE] = rss;
        }
    }
    let has_swap = columns.iter().any(|(_, parts)| parts[SWAP] > 0.0);
    let unit = finding.unit.name();
    Some(Chart {
        title: format!("Over {unit}s"),
        note: format!("at {}", finding.series.stage),
        size: (530.0, 240.0),
        axis: Axis::Count(unit),
        // Swap is not in the limit.
        limit: finding.process.cgroup_limit.filter(|_| !has_swap),
        warm_up: (finding.trend.warm_up > 0).then_some(finding.trend.settled_from),
        ..stacked(&visible(&columns), &columns, |x| format!("{unit} {x:.0}"))
    })
}

/// The lowest area comes first. On hover each place shows its name and its sizes.
fn stacked(keys: &[(usize, Key)], columns: &[Column], name: impl Fn(f64) -> String) -> Chart {
    let tip = |(x, heights): &Column| {
        // Without a process a difference of rounding is left.
        let seen = keys.iter().filter(|(place, _)| heights[*place] >= 1.0);
        let parts = seen.map(|(place, (_, name))| format!("\n{} {name}", size(heights[*place])));
        let (parts, sum): (String, f64) = (parts.collect(), heights.iter().sum());
        (*x, format!("{}: {}{parts}", name(*x), size(sum)))
    };
    let top = |areas: usize| {
        let height = move |(x, heights): &Column| (*x, heights[..areas].iter().sum::<f64>());
        columns.iter().map(height)
    };
    let outline = |place: usize| top(place + 1).chain(top(place).rev()).collect();
    let curves = keys.iter().cloned();
    Chart {
        x: (columns[0].0, columns[columns.len() - 1].0),
        curves: curves.map(|(place, key)| (key, outline(place))).collect(),
        tips: columns.iter().map(tip).collect(),
        ..Chart::default()
    }
}

/// More bars are hard to compare. The table has all stages.
const MAX_BARS: usize = 14;
/// The places of two kinds of memory.
const WHOLE: usize = 5;
const SWAP: usize = 6;

/// The stages that occur in at least half the rounds, one bar each: the parts of memory as medians over the settled rounds.
pub fn stages(finding: &Finding) -> Markup {
    let typical = |series: &Series| {
        let settled = series.settled(finding.trend.warm_up);
        median_sizes(settled.iter().map(|point| &point.sizes))
    };
    let all = finding.process.stages.iter();
    let rounds = all.clone().map(Series::len).max();
    // Others, such as the exit, are no part of a round.
    let is_regular = |series: &&Series| Some(2 * series.len()) >= rounds;
    let regular = all.filter(is_regular).take(MAX_BARS);
    let bars = regular.map(|series| (&*series.stage, parts(&typical(series))));
    let bars: Vec<(&str, Vec<f64>)> = bars.collect();
    let sum = |parts: &[f64]| parts.iter().sum::<f64>();
    let highest = bars.iter().map(|(_, parts)| sum(parts)).fold(MB, f64::max);
    let keys = visible(&bars);
    let chart = html! {
        div.bars {
            @for (name, parts) in &bars {
                span { (name) }
                div {
                    @for (part, (class, kind)) in keys.iter().filter(|(part, _)| parts[*part] > 0.0) {
                        @let width = format!("width:{:.1}%", 100.0 * parts[*part] / highest);
                        i class=(class) style=(width) title={ (name) ", " (kind) ": " (size(parts[*part])) } {}
                    }
                }
                span.n { (size(sum(&parts[..SWAP]))) }
            }
        }
    };
    let keys: Vec<Key> = keys.into_iter().map(|(_, key)| key).collect();
    figure("At each stage", "median", &chart, &keys)
}

/// The kinds of memory, as parts of a bar or as areas. Without a known part RSS is one.
const KINDS: [(&str, &str); 7] = [
    ("fill-live", "live"),
    ("fill-cached", "cached"),
    ("fill-held", "retained"),
    ("fill-file", "file"),
    ("fill-other", "other"),
    ("fill-whole", "RSS"),
    ("fill-swap", "swap"),
];

/// The kinds that a column has, each with its place in the columns.
fn visible<X>(columns: &[(X, Vec<f64>)]) -> Vec<(usize, Key)> {
    let has = |place: usize| columns.iter().any(|(_, heights)| heights[place] > 0.0);
    let kinds = KINDS.iter().enumerate().filter(|(place, _)| has(*place));
    kinds
        .map(|(place, (class, name))| (place, key(class, name)))
        .collect()
}

/// The bytes of each kind. Without swap their sum is RSS. Live and free memory include pages that were never touched, and
/// free memory comes first, as in the shares of a growth.
fn parts(sizes: &Sizes) -> Vec<f64> {
    let mut left = sizes.rss();
    let mut take = |bytes: Option<f64>| {
        let part = bytes.map_or(0.0, |bytes| bytes.min(left));
        left -= part;
        part
    };
    let file = take(sizes.file_backed());
    let [cached, retained, live] =
        [Size::Recycled, Size::Retained, Size::Live].map(|size| take(sizes.get(size)));
    let is_known = live + cached + retained + file > 0.0;
    let (other, whole) = if is_known { (left, 0.0) } else { (0.0, left) };
    let swap = sizes.get(Size::Swap).unwrap_or(0.0);
    vec![live, cached, retained, file, other, whole, swap]
}
