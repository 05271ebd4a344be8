//! Charts of areas on each other: the memory of all processes over the time of day, and that of one process over its rounds,
//! at the stage that decided the verdict.

use super::scale::Axis;
use super::stages::{keys, parts, SWAP, WHOLE};
use super::{thinned, visible, Chart, Key};
use crate::report::analyse::{Finding, Group, Together};
use crate::report::model::Point;
use crate::report::units::{size, time_of_day};

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
        ..stacked(&visible(&keys(), &columns), &columns, |x| {
            format!("{unit} {x:.0}")
        })
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
