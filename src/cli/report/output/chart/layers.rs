//! The layers of the stacked chart of all processes. Few sites have a layer each. Of many, those that
//! grow have one, then those that differ most from the median site. Bands of sites of similar size hold
//! the others.

use super::svg::shortened;
use crate::report::analyse::stats::median;
use crate::report::analyse::{Group, Moment, Together};
use crate::report::units::{range, size, Amount};

/// So many sites have a layer each.
const MAX_SINGLE: usize = 7;
/// The least number of layers with a site each if there are more sites.
const MIN_SINGLE: usize = 4;
const MAX_BANDS: usize = 3;
/// A smaller band is not worth a layer.
const MIN_IN_BAND: usize = 4;

/// One layer; the lowest comes first.
pub struct Layer {
    pub name: String,
    /// The class of its colour.
    pub class: &'static str,
    /// Places in the list of groups.
    groups: Vec<usize>,
}

const SINGLE: [&str; MAX_SINGLE] = [
    "area-0", "area-1", "area-2", "area-3", "area-4", "area-5", "area-6",
];
const BANDS: [&str; MAX_BANDS] = ["area-7", "area-8", "area-9"];

impl Layer {
    pub fn bytes(&self, moment: &Moment) -> f64 {
        self.groups.iter().map(|group| moment.parts[*group]).sum()
    }
}

pub fn layers(all: &Together) -> Vec<Layer> {
    let count = all.groups.len();
    let single = |(place, group): (usize, usize)| Layer {
        name: single_name(&all.groups[group]),
        class: SINGLE[place],
        groups: vec![group],
    };
    if count <= MAX_SINGLE {
        return (0..count).map(|group| single((group, group))).collect();
    }
    let differences = differences(all);
    // A group that does not grow has 0.
    let growth = |place: usize| f64::max(all.groups[place].growth, 0.0);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| {
        let faster = growth(*b).total_cmp(&growth(*a));
        faster.then(differences[*b].total_cmp(&differences[*a]))
    });
    let growing = (0..count).filter(|place| growth(*place) > 0.0).count();
    let mut others = order.split_off(growing.clamp(MIN_SINGLE, MAX_SINGLE));
    // The groups are sorted by their peak.
    others.sort_unstable();
    let bands = (others.len() / MIN_IN_BAND).clamp(1, MAX_BANDS);
    let each = others.len().div_ceil(bands);
    let bands = others.chunks(each).zip(BANDS).map(|(groups, class)| Layer {
        name: band_name(all, groups),
        class,
        groups: groups.to_vec(),
    });
    order
        .into_iter()
        .enumerate()
        .map(single)
        .chain(bands)
        .collect()
}

/// The mean difference of each group from the median group, times the number of moments. The largest
/// difference would be that of the groups that begin or end first.
fn differences(all: &Together) -> Vec<f64> {
    let mut sums = vec![0.0; all.groups.len()];
    for moment in &all.moments {
        let middle = median(&moment.parts);
        for (sum, bytes) in sums.iter_mut().zip(&moment.parts) {
            *sum += (bytes - middle).abs();
        }
    }
    sums
}

/// `site-3, peak 480.2 MB`; one that grows begins with the sign of that verdict. Fits on a phone.
fn single_name(group: &Group) -> String {
    let name = format!("{}, peak {}", shortened(&group.name), size(group.peak));
    match group.growth.is_nan() {
        true => name,
        false => format!("\u{25b2} {name}"),
    }
}

/// `12 others, peaks 118.0 to 134.0 MB`
fn band_name(all: &Together, groups: &[usize]) -> String {
    let peak = |place: Option<&usize>| place.map_or(0.0, |place| all.groups[*place].peak);
    let (lowest, highest) = (peak(groups.last()), peak(groups.first()));
    let count = groups.len();
    match size(lowest) == size(highest) {
        true => format!("{count} others, peak {} each", size(highest)),
        false => {
            let peaks = range(lowest, "to", highest, Amount::Size);
            format!("{count} others, peaks {peaks}")
        }
    }
}

/// The class of the colour of each group.
pub fn colours(all: &Together) -> Vec<&'static str> {
    let mut colours = vec![""; all.groups.len()];
    for layer in layers(all) {
        for group in layer.groups {
            colours[group] = layer.class;
        }
    }
    colours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::Grouping;
    use crate::report::units::MB;

    const MOMENTS: u32 = 10;

    /// Sites of this size in MB at each moment, by place and moment.
    fn together(sites: usize, megabytes: impl Fn(usize, f64) -> f64) -> Together {
        let moment = |t: f64| {
            let parts: Vec<f64> = (0..sites).map(|site| megabytes(site, t) * MB).collect();
            let total = parts.iter().sum();
            Moment { t, total, parts }
        };
        let moments: Vec<Moment> = (0..MOMENTS).map(|t| moment(t.into())).collect();
        let group = |place: usize| Group {
            name: format!("site-{place}"),
            members: vec![place],
            peak: moments.iter().map(|m| m.parts[place]).fold(0.0, f64::max),
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
            moments,
            kills: Vec::new(),
            undated: 0,
        }
    }

    fn names(layers: &[Layer]) -> Vec<&str> {
        layers.iter().map(|layer| layer.name.as_str()).collect()
    }

    #[test]
    fn few_sites_have_a_layer_each() {
        let layers = layers(&together(7, |_, _| 100.0));
        assert_eq!(layers.len(), 7);
        assert_eq!(layers[6].name, "site-6, peak 100.0 MB");
    }

    /// The first ten sites begin before all others, which is the largest difference at one moment.
    #[test]
    fn of_forty_sites_those_that_grow_come_first_then_those_that_differ_most() {
        let mut all = together(40, |site, t| match site {
            0..10 => 300.0,
            _ if t < 1.0 => 0.0,
            20 | 25 | 30 => 200.0 + 2.0 * t,
            35 => 60.0,
            site => 250.0 - site as f64,
        });
        for (site, growth) in [(20, 2.0), (25, 3.0), (30, 2.5)] {
            all.groups[site].growth = growth * MB;
        }
        let layers = layers(&all);
        assert_eq!(
            names(&layers)[..4],
            [
                "▲ site-25, peak 218.0 MB",
                "▲ site-30, peak 218.0 MB",
                "▲ site-20, peak 218.0 MB",
                "site-35, peak 60.0 MB"
            ]
        );
        assert_eq!(layers.len(), 4 + MAX_BANDS);
        assert_eq!(layers[5].name, "12 others, peaks 226.0 to 238.0 MB");
        for moment in &all.moments {
            let sum: f64 = layers.iter().map(|layer| layer.bytes(moment)).sum();
            assert!((sum - moment.total).abs() < 1.0);
        }
        assert!(colours(&all).iter().all(|class| !class.is_empty()));
    }

    #[test]
    fn up_to_seven_sites_that_grow_have_a_layer_each() {
        let mut all = together(40, |site, _| 100.0 + site as f64);
        for site in 0..20 {
            all.groups[site].growth = (1.0 + site as f64) * MB;
        }
        let layers = layers(&all);
        assert_eq!(layers.len(), MAX_SINGLE + MAX_BANDS);
        assert!(
            layers[6].name.starts_with("▲ site-13,"),
            "{}",
            layers[6].name
        );
    }
}
