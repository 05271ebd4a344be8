//! Prepares a series for its division into segments: with a bounded number of samples.
//!
//! Outliers leave the series, so that they count neither for its slope nor for that of its parts.

use std::ops::Range;

use super::line::Known;
use super::robust::{deviation, median, Noise};

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
                    rest.groups.remove(i);
                    rest.x.remove(i);
                    rest.y.remove(i);
                }
            }
        }
        if 3 * rest.y.len() >= 2 * self.y.len() {
            *self = rest;
        }
    }
}

/// The median of each group.
pub fn medians(groups: &[Range<usize>], of: &[f64]) -> Vec<f64> {
    groups
        .iter()
        .map(|group| median(&of[group.clone()]))
        .collect()
}
