//! Divides a series into segments, with a bounded number of samples and without bursts.
//!
//! Outliers and bursts leave the series, so that they count neither for its slope nor for that of its parts.

use std::ops::Range;

use super::line::Known;
use super::robust::{deviation, median, Noise};
use super::segments::{segments, Segment};

/// A longer series is divided into this many groups, whose medians are used.
const MAX_GROUPS: usize = 200;

#[derive(Clone)]
pub struct Series {
    /// The samples of each group.
    pub groups: Vec<Range<usize>>,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub noise: Noise,
}

impl Series {
    pub fn of(x: &[f64], y: &[f64], resolution: f64) -> Series {
        // The size is odd, so that a median is a sample.
        let size = y.len().div_ceil(MAX_GROUPS) | 1;
        let starts = (0..y.len()).step_by(size);
        let groups = starts.map(|from| from..(from + size).min(y.len()));
        let groups: Vec<Range<usize>> = groups.collect();
        let y = medians(&groups, y);
        Series {
            x: medians(&groups, x),
            noise: Noise::of(&y, resolution),
            y,
            groups,
        }
    }

    /// Removes samples far from one line through all, unless these are more than a third.
    pub fn remove_outliers(&mut self, resolution: f64) {
        let mut rest = self.clone();
        for _ in 0..2 {
            let mut line = Known::constant(rest.y.len());
            line.add(&rest.x);
            let left = line.left_of(&rest.y);
            let (middle, limit) = (median(&left), 4.0 * deviation(&left).max(resolution));
            for i in (0..left.len()).rev() {
                if (left[i] - middle).abs() > limit {
                    rest.remove(i..i + 1);
                }
            }
        }
        if 3 * rest.y.len() >= 2 * self.y.len() {
            *self = rest;
        }
    }

    fn remove(&mut self, removed: Range<usize>) {
        self.groups.drain(removed.clone());
        self.x.drain(removed.clone());
        self.y.drain(removed);
    }

    /// The segments, after bursts left the series: short segments between two that continue each other. If they are more
    /// than three of ten samples, they are a part of the series, such as levels that alternate, or teeth.
    pub fn segments_without_bursts(&mut self, material: f64) -> Vec<Segment> {
        let with_bursts = segments(&self.x, &self.y, &self.noise);
        let (mut rest, mut found) = (self.clone(), with_bursts.clone());
        let longest = usize::max(6, self.y.len() / 10);
        while let Some(burst) = rest.burst(&found, longest, material) {
            rest.remove(burst);
            found = segments(&rest.x, &rest.y, &rest.noise);
        }
        if 10 * rest.y.len() < 7 * self.y.len() {
            return with_bursts;
        }
        *self = rest;
        found
    }

    /// The first burst.
    fn burst(&self, found: &[Segment], longest: usize, material: f64) -> Option<Range<usize>> {
        let min_height = f64::max(material, 4.0 * self.noise.deviation);
        let is_burst = |three: &&[Segment]| {
            let (burst, around) = (&three[1], [&three[0], &three[2]]);
            let heights = around.map(|one| burst.mean_y - one.value_at(burst.mean_x));
            let [left, right] = heights;
            let height = f64::min(left.abs(), right.abs());
            let continues = left * right > 0.0 && (left - right).abs() < height;
            burst.len() <= longest && height > min_height && continues
        };
        let burst = found.windows(3).find(is_burst)?;
        Some(burst[1].from..burst[1].to)
    }
}

/// The median of each group.
pub fn medians(groups: &[Range<usize>], of: &[f64]) -> Vec<f64> {
    groups
        .iter()
        .map(|group| median(&of[group.clone()]))
        .collect()
}
