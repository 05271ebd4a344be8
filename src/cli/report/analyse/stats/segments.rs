//! Divides a series into segments that are flat or straight, by PELT (Killick, Fearnhead and Eckley
//! 2012): the segments with the smallest sum of squared residuals and penalties.
//!
//! The cost is robust, because outliers are replaced before and the noise comes from medians. The
//! penalties are those of the modified BIC (Zhang and Siegmund 2007), times the inflation of
//! autocorrelated noise.

use std::array::from_fn;

use super::robust::Noise;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    pub from: usize,
    /// The index after the last sample.
    pub to: usize,
    /// Growth per x; 0 for a flat segment.
    pub slope: f64,
    pub mean_x: f64,
    pub mean_y: f64,
}

impl Segment {
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    pub fn value_at(&self, x: f64) -> f64 {
        self.mean_y + self.slope * (x - self.mean_x)
    }
}

/// Penalties in units of the noise's variance, per logarithm of the number of samples.
const FLAT_PENALTY: f64 = 3.0;
const LINE_PENALTY: f64 = 5.5;
const MIN_LINE: usize = 8;

/// The segments of the series, in order.
pub fn segments(x: &[f64], y: &[f64], noise: &Noise) -> Vec<Segment> {
    let n = y.len();
    let sums = Sums::of(x, y);
    let unit = noise.deviation.powi(2) * noise.inflation * (n as f64).ln();
    let (flat_penalty, line_penalty) = (FLAT_PENALTY * unit, LINE_PENALTY * unit);
    if sums.residuals(0, n).0 <= flat_penalty {
        return vec![sums.segment(0, n, false)];
    }
    // best[to] is the lowest cost of the samples before `to`, and the start of its last segment.
    let mut best = vec![(0.0, 0, false)];
    // Each start with the lowest cost of a segment from there.
    let mut starts = vec![(0, 0.0)];
    for to in 1..=n {
        let mut lowest = (f64::INFINITY, 0, false);
        for (from, bound) in &mut starts {
            let (flat, line) = sums.residuals(*from, to);
            let before: f64 = best[*from].0;
            *bound = before + line;
            let mut choose = |cost: f64, is_line: bool| {
                if cost < lowest.0 {
                    lowest = (cost, *from, is_line);
                }
            };
            choose(before + flat + flat_penalty, false);
            if to - *from >= MIN_LINE {
                choose(*bound + line_penalty, true);
            }
        }
        best.push(lowest);
        // A start whose cost is too high already never becomes the best one.
        starts.retain(|(from, bound)| to - from < MIN_LINE || *bound <= lowest.0);
        starts.push((to, 0.0));
    }
    let mut found = Vec::new();
    let mut to = n;
    while to > 0 {
        let (_, from, is_line) = best[to];
        found.push(sums.segment(from, to, is_line));
        to = from;
    }
    found.reverse();
    found
}

/// Sums over the first samples, from which the residuals of any segment follow: of x, y, xx, xy, yy.
struct Sums {
    sums: Vec<[f64; 5]>,
    offset: f64,
}

impl Sums {
    fn of(x: &[f64], y: &[f64]) -> Sums {
        // Sizes are large compared with their changes. Without the offset digits would be lost.
        let offset = y.first().copied().unwrap_or(0.0);
        let mut sums = vec![[0.0; 5]];
        for (i, (x, y)) in x.iter().zip(y).enumerate() {
            let y = y - offset;
            let added = [*x, y, x * x, x * y, y * y];
            sums.push(from_fn(|sum| sums[i][sum] + added[sum]));
        }
        Sums { sums, offset }
    }

    /// Mean x, mean y, and the sums of products around the means: xx, xy, yy.
    fn moments(&self, from: usize, to: usize) -> [f64; 5] {
        let n = (to - from) as f64;
        let (begin, end) = (&self.sums[from], &self.sums[to]);
        let sum = |place: usize| end[place] - begin[place];
        let (x, y) = (sum(0), sum(1));
        let xx = (sum(2) - x * x / n).max(0.0);
        let yy = (sum(4) - y * y / n).max(0.0);
        [x / n, y / n, xx, sum(3) - x * y / n, yy]
    }

    /// The sums of the squared residuals of a flat and of a straight segment.
    fn residuals(&self, from: usize, to: usize) -> (f64, f64) {
        let [_, _, xx, xy, yy] = self.moments(from, to);
        let explained = if xx > 0.0 { xy * xy / xx } else { 0.0 };
        (yy, (yy - explained).max(0.0))
    }

    fn segment(&self, from: usize, to: usize, is_line: bool) -> Segment {
        let [mean_x, mean_y, xx, xy, _] = self.moments(from, to);
        Segment {
            from,
            to,
            slope: if is_line && xx > 0.0 { xy / xx } else { 0.0 },
            mean_x,
            mean_y: mean_y + self.offset,
        }
    }
}
