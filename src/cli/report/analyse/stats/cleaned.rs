//! Prepares a series for its division into segments: without teeth, without isolated outliers, and
//! with a bounded number of samples.

use super::noise::Noise;
use super::robust::{median, without_outliers, RobustLine};
use super::teeth::Lows;

/// A longer series is divided into this many groups, whose medians are used.
const MAX_GROUPS: usize = 200;
/// In a shorter series, an isolated low sample may be the foot of a sawtooth.
const MIN_FOR_OUTLIERS: usize = 12;

#[derive(Clone, Debug, Default)]
pub struct Cleaned {
    /// The first sample of each group.
    pub starts: Vec<usize>,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub noise: Noise,
    /// The first value, although it may be an outlier: the start of a warm-up looks like one.
    pub first: f64,
    /// Outliers and bursts, which were replaced.
    pub is_replaced: Vec<bool>,
    /// Shapes of the samples beside a line.
    shapes: Vec<Vec<f64>>,
}

impl Cleaned {
    pub fn of(x: &[f64], y: &[f64], teeth: Option<Lows>, resolution: f64) -> Cleaned {
        let starts = evenly_spaced(y.len());
        let mut y = y.to_vec();
        let mut shapes = Vec::new();
        if let Some(lows) = teeth {
            shapes = lows
                .shapes
                .iter()
                .map(|shape| medians(&starts, shape))
                .collect();
            y = lows.y;
        }
        let before = medians(&starts, &y);
        if y.len() >= MIN_FOR_OUTLIERS {
            y = without_outliers(x, &y, Noise::of(&y, resolution).deviation);
        }
        let (x, y) = (medians(&starts, x), medians(&starts, &y));
        let is_replaced = y
            .iter()
            .zip(&before)
            .map(|(y, before)| y != before)
            .collect();
        let noise = Noise::of(&y, resolution);
        Cleaned {
            starts,
            x,
            y,
            noise,
            first: before[0],
            is_replaced,
            shapes,
        }
    }

    /// The shapes of the groups from this one on.
    pub fn shapes_from(&self, first: usize) -> Vec<Vec<f64>> {
        self.shapes
            .iter()
            .map(|shape| shape[first..].to_vec())
            .collect()
    }

    /// The groups of another quantity of the same samples, with the same samples replaced: by the
    /// line between their neighbours.
    pub fn same_of(&self, y: &[f64]) -> Vec<f64> {
        let mut values = medians(&self.starts, y);
        let n = values.len();
        let mut from = 0;
        for run in self.is_replaced.chunk_by(|a, b| a == b) {
            let to = from + run.len();
            if run[0] && run.len() < n {
                let before = from.checked_sub(1).unwrap_or(to);
                let after = if to < n { to } else { before };
                for i in from..to {
                    let width = (self.x[after] - self.x[before]).max(f64::MIN_POSITIVE);
                    let share = (self.x[i] - self.x[before]) / width;
                    let share = if after == before { 0.0 } else { share };
                    values[i] = values[before] + share * (values[after] - values[before]);
                }
            }
            from = to;
        }
        values
    }

    /// A series that is one line, except for bursts: these are replaced by the line. `None` if too
    /// many samples are elsewhere, on both sides of the line, or for too long.
    pub fn one_line(x: &[f64], y: &[f64], resolution: f64) -> Option<Cleaned> {
        let starts = evenly_spaced(y.len());
        let (x, mut y) = (medians(&starts, x), medians(&starts, y));
        let line = RobustLine::through(&x, &y, resolution)?;
        let is_outside = |(x, y): (&f64, &f64)| line.is_outside(*x, *y);
        let is_replaced: Vec<bool> = x.iter().zip(&y).map(is_outside).collect();
        let n = y.len();
        let runs = is_replaced.chunk_by(|a, b| a == b);
        let longest = runs.filter(|run| run[0]).map(<[bool]>::len).max()?;
        let at_end = is_replaced.iter().rev().take_while(|is| **is).count();
        if longest > usize::max(6, n / 10) || at_end > 3 {
            return None;
        }
        let above = x.iter().zip(&y).zip(&is_replaced);
        let mut above = above
            .filter(|(_, is)| **is)
            .map(|((x, y), _)| *y > line.at(*x));
        let is_above = above.next()?;
        if above.any(|other| other != is_above) {
            return None;
        }
        for i in (0..n).filter(|i| is_replaced[*i]) {
            y[i] = line.at(x[i]);
        }
        let noise = Noise::of(&y, resolution);
        Some(Cleaned {
            starts,
            first: y[0],
            x,
            y,
            noise,
            is_replaced,
            shapes: Vec::new(),
        })
    }
}

/// The first samples of groups of equal size. The size is odd, so that a median is a sample.
fn evenly_spaced(n: usize) -> Vec<usize> {
    let size = n.div_ceil(MAX_GROUPS) | 1;
    (0..n).step_by(size).collect()
}

/// The first sample of each group, and the one after its last.
fn groups(starts: &[usize], n: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = starts.iter().skip(1).copied().chain([n]);
    starts.iter().copied().zip(ends)
}

/// The median of each group that begins at one of these samples.
fn medians(starts: &[usize], of: &[f64]) -> Vec<f64> {
    groups(starts, of.len())
        .map(|(from, to)| median(&of[from..to]))
        .collect()
}
