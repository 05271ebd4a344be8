//! The memory of all processes over the time of day, stacked by site.
//!
//! Of many sites, those with the highest peaks have a layer each. One layer holds all others.

use std::fmt::Write;

use super::scale::Axis;
use super::{area, shortened, steps, Chart, Curve, Points};
use crate::report::analyse::{Grouping, Moment, Together};
use crate::report::calendar::time_of_day;
use crate::report::units::{plural, size, MB};

const SIZE: (f64, f64) = (1100.0, 340.0);
/// Parts of the time that have a tooltip.
const TOOLTIPS: usize = 100;

/// The class of the colour of each layer.
const SINGLE: [&str; 7] = [
    "area-0", "area-1", "area-2", "area-3", "area-4", "area-5", "area-6",
];
const OTHERS: &str = "area-7";

/// One layer; the lowest comes first.
struct Layer {
    class: &'static str,
    name: String,
    /// Places in the list of groups.
    groups: Vec<usize>,
}

impl Layer {
    fn bytes(&self, moment: &Moment) -> f64 {
        self.groups.iter().map(|group| moment.parts[*group]).sum()
    }
}

/// `None` if all markers have the same time.
pub fn chart(all: &Together) -> Option<Chart> {
    let last = all.moments.last()?;
    let layers = layers(all);
    let label = format!(
        "Memory of all processes. {}, peak {} at {}, {} at the end.",
        plural(layers.len() as u64, "layer"),
        size(all.peak),
        time_of_day(all.peak_time),
        size(last.total),
    );
    let processes: usize = all.groups.iter().map(|group| group.members.len()).sum();
    let (title, note) = match (processes, all.grouping) {
        (1, _) => ("The process", "over the time of day"),
        (_, Grouping::Sites) => ("All processes", "stacked by site"),
        (_, Grouping::Processes) => ("All processes", "stacked by process"),
    };
    let kill = |(t, name): &(f64, String)| (*t, format!("killed at {}: {name}", time_of_day(*t)));
    let parts = all.moments.chunks(all.moments.len().div_ceil(TOOLTIPS));
    Some(Chart {
        title: title.to_owned(),
        note: note.to_owned(),
        label,
        size: SIZE,
        axis: Axis::Clock,
        x: (all.start, all.end),
        y: (0.0, f64::max(all.peak, MB)),
        limit: all.limit,
        curves: curves(all, &layers),
        warm_up: None,
        kills: all.kills.iter().map(kill).collect(),
        tips: parts
            .map(|part| (part[part.len() / 2].t, tip(part, &layers)))
            .collect(),
    })
}

/// The area of each layer, on that of the layer below.
fn curves(all: &Together, layers: &[Layer]) -> Vec<Curve> {
    let outline = |heights: &[f64]| -> Points {
        let moments = all.moments.iter().map(|moment| moment.t).chain([all.end]);
        let last = heights.last().copied();
        let points: Points = moments.zip(heights.iter().copied().chain(last)).collect();
        steps(&points)
    };
    let mut sums = vec![0.0; all.moments.len()];
    let mut below = outline(&sums);
    let mut curve = |layer: &Layer| {
        for (sum, moment) in sums.iter_mut().zip(&all.moments) {
            *sum += layer.bytes(moment);
        }
        let above = outline(&sums);
        Curve {
            class: layer.class,
            name: layer.name.clone(),
            points: area(above.clone(), std::mem::replace(&mut below, above)),
        }
    };
    layers.iter().map(&mut curve).collect()
}

/// The moment with the highest total, and its layers.
fn tip(part: &[Moment], layers: &[Layer]) -> String {
    let highest = part.iter().max_by(|a, b| a.total.total_cmp(&b.total));
    let highest = highest.unwrap_or(&part[0]);
    let mut tip = format!("{}: {}", time_of_day(highest.t), size(highest.total));
    for layer in layers {
        let bytes = layer.bytes(highest);
        if bytes > 0.0 {
            let _ = write!(tip, "\n{} in {}", size(bytes), layer.name);
        }
    }
    tip
}

/// The groups are sorted by their peaks.
fn layers(all: &Together) -> Vec<Layer> {
    let single = all.groups.iter().zip(SINGLE).enumerate();
    let single = single.map(|(place, (group, class))| {
        let (name, peak) = (shortened(&group.name), size(group.peak));
        Layer {
            class,
            name: format!("{name}, peak {peak}"),
            groups: vec![place],
        }
    });
    let others = all.groups.get(SINGLE.len()).map(|highest| Layer {
        class: OTHERS,
        name: format!(
            "{} others, peaks up to {}",
            all.groups.len() - SINGLE.len(),
            size(highest.peak)
        ),
        groups: (SINGLE.len()..all.groups.len()).collect(),
    });
    single.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::{Group, Grouping};
    use crate::report::units::MB;

    const MOMENTS: u32 = 10;

    /// Sites of this size in MB, by place.
    fn together(sites: usize, megabytes: impl Fn(usize) -> f64) -> Together {
        let parts: Vec<f64> = (0..sites).map(|site| megabytes(site) * MB).collect();
        let moment = |t: u32| Moment {
            t: t.into(),
            total: parts.iter().sum(),
            parts: parts.clone(),
        };
        let group = |place: usize| Group {
            name: format!("site-{place}"),
            members: vec![place],
            peak: parts[place],
            mean: f64::NAN,
            at_peak: 0.0,
        };
        Together {
            grouping: Grouping::Sites,
            groups: (0..sites).map(group).collect(),
            start: 0.0,
            end: MOMENTS.into(),
            peak: 0.0,
            peak_time: 0.0,
            mean: 0.0,
            limit: f64::NAN,
            moments: (0..MOMENTS).map(moment).collect(),
            kills: Vec::new(),
            undated: 0,
        }
    }

    #[test]
    fn few_sites_have_a_layer_each() {
        let layers = layers(&together(7, |_| 100.0));
        assert_eq!(layers.len(), 7);
        assert_eq!(layers[6].name, "site-6, peak 100.0 MB");
    }

    #[test]
    fn of_forty_sites_those_with_the_highest_peaks_have_a_layer_each() {
        let all = together(40, |site| 250.0 - site as f64);
        let layers = layers(&all);
        let names: Vec<&str> = layers.iter().map(|layer| &*layer.name).collect();
        assert_eq!(names[0], "site-0, peak 250.0 MB");
        assert_eq!(names[7..], ["33 others, peaks up to 243.0 MB"]);
        for moment in &all.moments {
            let sum: f64 = layers.iter().map(|layer| layer.bytes(moment)).sum();
            assert!((sum - moment.total).abs() < 1.0);
        }
    }
}
