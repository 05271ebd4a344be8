//! Prepares a series for its division into segments: without teeth, with a bounded number of samples, and without bursts.
//!
//! Burst samples leave the series, so that they count neither for its slope nor for that of its parts.

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
    /// Shapes of the samples beside a line.
    pub shapes: Vec<Vec<f64>>,
}

impl Series {
    /// `shapes` are those of the samples beside a line.
    pub fn of(x: &[f64], y: &[f64], shapes: &[Vec<f64>], resolution: f64) -> Series {
        // The size is odd, so that a median is a sample.
        let size = y.len().div_ceil(MAX_GROUPS) | 1;
        let starts = (0..y.len()).step_by(size);
        let groups = starts.map(|from| from..(from + size).min(y.len()));
        let groups: Vec<Range<usize>> = groups.collect();
        let of = |values: &[f64]| medians(&groups, values);
        let y = of(y);
        Series {
            x: of(x),
            noise: Noise::of(&y, resolution),
            y,
            shapes: shapes.iter().map(|shape| of(shape)).collect(),
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

    pub fn remove(&mut self, removed: Range<usize>) {
        self.groups.drain(removed.clone());
        let columns = [&mut self.x, &mut self.y];
        for column in columns.into_iter().chain(&mut self.shapes) {
            column.drain(removed.clone());
        }
    }

    /// The segments, after bursts left the series: short segments between two that continue each other.
    pub fn segments_without_bursts(&mut self, material: f64) -> Vec<Segment> {
        let with_bursts = segments(&self.x, &self.y, &self.noise);
        let (mut rest, mut found) = (self.clone(), with_bursts.clone());
        let longest = usize::max(6, self.y.len() / 10);
        while let Some(burst) = rest.burst(&found, longest, material) {
            rest.remove(burst);
            found = segments(&rest.x, &rest.y, &rest.noise);
        }
        // More bursts are a part of the series, such as levels that alternate, or teeth.
        if 3 * rest.y.len() < 2 * self.y.len() {
            return with_bursts;
        }
        *self = rest;
        found
    }

    /// The first burst.
    fn burst(&self, found: &[Segment], longest: usize, material: f64) -> Option<Range<usize>> {
        /// A burst may have several levels.
        const MAX_LEVELS: usize = 4;
        let min_height = f64::max(material, 4.0 * self.noise.deviation);
        let is_burst = |&(i, j): &(usize, usize)| {
            let (before, levels, after) = (&found[i], &found[i + 1..j], &found[j]);
            after.from - before.to <= longest
                && levels.iter().all(|level| {
                    let (left, right) =
                        (before.value_at(level.mean_x), after.value_at(level.mean_x));
                    let edges = [
                        before.value_at(self.x[before.to - 1]),
                        after.value_at(self.x[after.from]),
                        left,
                        right,
                    ];
                    let above = edges.map(|edge| level.mean_y - edge);
                    let lowest = above.iter().copied().fold(f64::INFINITY, f64::min);
                    let highest = above.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let height = f64::max(lowest, -highest);
                    height > min_height && (left - right).abs() < height
                })
        };
        let ends = |i: usize| i + 2..found.len().min(i + 2 + MAX_LEVELS);
        let mut pairs = (0..found.len()).flat_map(|i| ends(i).map(move |j| (i, j)));
        let (i, j) = pairs.find(is_burst)?;
        Some(found[i].to..found[j].from)
    }
}

/// The median of each group.
pub fn medians(groups: &[Range<usize>], of: &[f64]) -> Vec<f64> {
    let medians = groups.iter().map(|group| median(&of[group.clone()]));
    medians.collect()
}
