//! Sawtooth series: memory that rises and falls back (a cache that is emptied, a collector, decay).
//! What counts there is whether the low points and the high points rise.

use super::robust::quantile;

/// The turning points of a series that falls back at least twice.
pub struct Teeth {
    /// Indices of the highest sample before each fall.
    pub peaks: Vec<usize>,
    /// Indices of the lowest sample after each fall.
    pub floors: Vec<usize>,
    /// The typical height of a fall.
    pub height: f64,
}

impl Teeth {
    /// The rise of the turning points that is no accident of where in the tooth the samples lie.
    pub fn telling_rise(&self) -> f64 {
        let first_to_last = self.floors[self.floors.len() - 1] - self.floors[0];
        let width = first_to_last / (self.floors.len() - 1).max(1);
        let share = if width < 6 { 0.5 } else { 0.2 };
        share * self.height
    }
}

/// Falls count when they stand out of the noise and of the whole range of the series.
pub fn teeth(y: &[f64], noise: f64) -> Option<Teeth> {
    // A single wild sample is no tooth, and teeth of three samples need no care: no slope sees them.
    let y = &smooth(y);
    let range = quantile(y, 0.98) - quantile(y, 0.02);
    let turn = f64::max(6.0 * noise, 0.25 * range);
    let (mut peaks, mut floors) = (Vec::new(), Vec::new());
    let (mut high, mut low) = (0, 0);
    let mut falling = false;
    for (i, &v) in y.iter().enumerate() {
        if v > y[high] {
            high = i;
        }
        if v < y[low] {
            low = i;
        }
        if !falling && y[high] - v >= turn {
            peaks.push(high);
            (falling, low) = (true, i);
        } else if falling && v - y[low] >= turn {
            floors.push(low);
            (falling, high) = (false, i);
        }
    }
    if falling {
        floors.push(low);
    }
    let falls: Vec<f64> = peaks
        .iter()
        .zip(&floors)
        .map(|(&p, &f)| y[p] - y[f])
        .collect();
    (falls.len() >= 2).then(|| Teeth {
        height: super::median(&falls),
        peaks,
        floors,
    })
}

/// Medians of three.
fn smooth(y: &[f64]) -> Vec<f64> {
    let median = |i: usize| super::median(&y[i.saturating_sub(1)..(i + 2).min(y.len())]);
    (0..y.len()).map(median).collect()
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn a_sawtooth_has_its_floors_and_peaks() {
        let y: Vec<f64> = (0..30).map(|i| f64::from(i % 10) * 10.0).collect();
        let found = teeth(&y, 1.0).expect("it falls twice");
        assert_eq!((found.peaks, found.floors), (vec![8, 18], vec![10, 20]));
        assert_eq!(found.height, 70.0);
    }

    #[test]
    fn a_line_and_noise_have_no_teeth() {
        let line: Vec<f64> = (0..50).map(f64::from).collect();
        assert!(teeth(&line, 0.1).is_none());
        let mut random = Random::new(3);
        let noise: Vec<f64> = (0..300).map(|_| random.normal()).collect();
        assert!(teeth(&noise, 1.0).is_none());
        assert!(teeth(&[], 1.0).is_none());
        let spikes: Vec<f64> = (0..40)
            .map(|i| if i % 9 == 4 { 500.0 } else { 5.0 })
            .collect();
        assert!(teeth(&spikes, 1.0).is_none());
    }
}
