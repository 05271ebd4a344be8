//! The layers of the chart of all processes. Of many sites, those that grow fastest have one, then those with the
//! highest peaks. One layer holds all others.

use super::{shortened, Key};
use crate::report::analyse::{Moment, Together};
use crate::report::units::size;

/// The class of the colour of each layer.
const SINGLE: [&str; 7] = [
    "area-0", "area-1", "area-2", "area-3", "area-4", "area-5", "area-6",
];
const OTHERS: &str = "area-7";

/// One layer; the lowest comes first.
pub struct Layer {
    pub key: Key,
    /// Places in the list of groups.
    groups: Vec<usize>,
}

impl Layer {
    pub fn bytes(&self, moment: &Moment) -> f64 {
        self.groups.iter().map(|group| moment.parts[*group]).sum()
    }
}

pub fn layers(all: &Together) -> Vec<Layer> {
    // A group that does not grow has 0. The sort is stable, and the groups are sorted by their peak.
    let growth = |place: &usize| f64::max(all.groups[*place].growth, 0.0);
    let mut order: Vec<usize> = (0..all.groups.len()).collect();
    order.sort_by(|a, b| growth(b).total_cmp(&growth(a)));
    let (single, others) = order.split_at(order.len().min(SINGLE.len()));
    let mut layers: Vec<Layer> = Vec::new();
    for (class, place) in SINGLE.into_iter().zip(single) {
        let group = &all.groups[*place];
        // The sign of that verdict.
        let sign = if group.growth.is_nan() {
            ""
        } else {
            "\u{25b2} "
        };
        let name = format!(
            "{sign}{}, peak {}",
            shortened(&group.name),
            size(group.peak)
        );
        layers.push(Layer {
            key: (class, name),
            groups: vec![*place],
        });
    }
    if let Some(highest) = others.first() {
        let highest = size(all.groups[*highest].peak);
        let name = format!("{} others, peaks up to {highest}", others.len());
        layers.push(Layer {
            key: (OTHERS, name),
            groups: others.to_vec(),
        });
    }
    layers
}

/// The class of the colour of each group.
pub fn colours(all: &Together) -> Vec<&'static str> {
    let mut colours = vec![OTHERS; all.groups.len()];
    for layer in layers(all) {
        for group in layer.groups {
            colours[group] = layer.key.0;
        }
    }
    colours
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
            peak_time: 0.0,
            mean: f64::NAN,
            at_peak: 0.0,
            growth: f64::NAN,
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
        assert_eq!(layers[6].key.1, "site-6, peak 100.0 MB");
    }

    #[test]
    fn of_forty_sites_those_that_grow_come_first_then_those_with_the_highest_peaks() {
        let mut all = together(40, |site| 250.0 - site as f64);
        for (site, growth) in [(20, 2.0), (25, 3.0), (30, 2.5)] {
            all.groups[site].growth = growth * MB;
        }
        let layers = layers(&all);
        let names: Vec<&str> = layers.iter().map(|layer| &*layer.key.1).collect();
        assert_eq!(
            names[..4],
            [
                "▲ site-25, peak 225.0 MB",
                "▲ site-30, peak 220.0 MB",
                "▲ site-20, peak 230.0 MB",
                "site-0, peak 250.0 MB"
            ]
        );
        assert_eq!(names[7..], ["33 others, peaks up to 246.0 MB"]);
        for moment in &all.moments {
            let sum: f64 = layers.iter().map(|layer| layer.bytes(moment)).sum();
            assert!((sum - moment.total).abs() < 1.0);
        }
        let colours = colours(&all);
        assert_eq!([colours[25], colours[39]], ["area-0", OTHERS]);
    }
}
