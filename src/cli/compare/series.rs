//! The memory of one run over time, and its peak, mean and idle size. Pure.

use std::time::Duration;

use crate::report::median;

/// The state of all processes of the command at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    pub pss_bytes: f64,
    /// CPU seconds used since the start.
    pub cpu_s: f64,
}

/// The command is idle at a sample if it used less than this share of one CPU in the window before.
const IDLE_SHARE: f64 = 0.05;
const IDLE_WINDOW_S: f64 = 1.0;
/// Fewer samples are no idle phase.
const MIN_IDLE_SAMPLES: usize = 3;

/// The samples of one run, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    samples: Vec<Sample>,
}

impl Series {
    pub fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// Ends the series: the last size is taken to hold until the end.
    pub fn finish(&mut self, at: f64) {
        if let Some(last) = self.samples.last().copied() {
            self.push(Sample { at, ..last });
        }
    }

    pub fn peak(&self) -> f64 {
        self.samples.iter().map(|s| s.pss_bytes).fold(0.0, f64::max)
    }

    /// The mean over time. The intervals between the samples differ.
    pub fn mean(&self) -> f64 {
        let area = |pair: &[Sample]| {
            (pair[1].at - pair[0].at) * (pair[0].pss_bytes + pair[1].pss_bytes) / 2.0
        };
        let area: f64 = self.samples.windows(2).map(area).sum();
        match (self.samples.first(), self.samples.last()) {
            (Some(first), Some(last)) if last.at > first.at => area / (last.at - first.at),
            (Some(only), _) => only.pss_bytes,
            _ => 0.0,
        }
    }

    /// The median size while the command used almost no CPU; `None` without such a phase.
    pub fn idle(&self) -> Option<f64> {
        let mut begin = 0;
        let mut sizes = Vec::new();
        // No window ends at the first sample.
        for sample in self.samples.iter().skip(1) {
            // The latest sample that is a whole window older.
            while self.samples[begin + 1].at <= sample.at - IDLE_WINDOW_S {
                begin += 1;
            }
            let before = self.samples[begin];
            let seconds = sample.at - before.at;
            let is_idle = sample.cpu_s - before.cpu_s < IDLE_SHARE * seconds;
            if seconds >= IDLE_WINDOW_S && is_idle {
                sizes.push(sample.pss_bytes);
            }
        }
        (sizes.len() >= MIN_IDLE_SAMPLES).then(|| median(&sizes))
    }

    /// Seconds and bytes, for charts.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let point = |sample: &Sample| (sample.at, sample.pss_bytes);
        self.samples.iter().map(point).collect()
    }
}

/// The pause after a sample: short at first, so that a short command is sampled too, and longer if
/// samples take long, up to a second.
pub fn pause(elapsed: Duration, cost: Duration) -> Duration {
    let regular = (elapsed / 100).clamp(Duration::from_millis(10), Duration::from_millis(250));
    regular.max((cost * 10).min(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples from (seconds, bytes, CPU seconds).
    fn series(samples: impl IntoIterator<Item = (f64, f64, f64)>) -> Series {
        let sample = |(at, pss_bytes, cpu_s)| Sample {
            at,
            pss_bytes,
            cpu_s,
        };
        Series {
            samples: samples.into_iter().map(sample).collect(),
        }
    }

    #[test]
    fn the_mean_is_weighted_by_time() {
        let series = series([
            (0.0, 0.0, 0.0),
            (1.0, 0.0, 0.0),
            (1.0, 8.0, 0.0),
            (4.0, 8.0, 0.0),
        ]);
        assert_eq!(series.mean(), 6.0);
        assert_eq!(series.peak(), 8.0);
    }

    #[test]
    fn the_last_size_holds_until_the_end() {
        let mut series = series([(0.0, 0.0, 0.0), (2.0, 8.0, 0.0)]);
        series.finish(6.0);
        assert_eq!(series.mean(), (8.0 + 4.0 * 8.0) / 6.0);
    }

    #[test]
    fn one_sample_is_peak_and_mean_and_not_idle() {
        let of = |series: &Series| (series.peak(), series.mean(), series.idle());
        assert_eq!(of(&series([(0.0, 7.0, 0.0)])), (7.0, 7.0, None));
        assert_eq!(of(&Series::default()), (0.0, 0.0, None));
    }

    #[test]
    fn the_idle_size_is_the_one_after_a_second_without_cpu_use() {
        // Busy for four seconds with 100 bytes, then idle with 40.
        let sample = |i: u32| {
            let at = f64::from(i) / 4.0;
            (at, if at < 4.0 { 100.0 } else { 40.0 }, at.min(4.0))
        };
        assert_eq!(series((0..32).map(sample)).idle(), Some(40.0));
        assert_eq!(series((0..16).map(sample)).idle(), None);
    }

    #[test]
    fn a_little_cpu_use_is_idle_too() {
        let sample = |share: f64| move |i: u32| (f64::from(i), 5.0, share * f64::from(i));
        assert_eq!(series((0..8).map(sample(0.04))).idle(), Some(5.0));
        assert_eq!(series((0..8).map(sample(0.06))).idle(), None);
    }

    #[test]
    fn the_pause_grows_with_the_age_of_the_run_and_with_the_cost_of_a_sample() {
        let ms = Duration::from_millis;
        assert_eq!(pause(ms(0), ms(0)), ms(10));
        assert_eq!(pause(ms(5_000), ms(1)), ms(50));
        assert_eq!(pause(ms(900_000), ms(1)), ms(250));
        assert_eq!(pause(ms(900_000), ms(40)), ms(400));
        assert_eq!(pause(ms(900_000), ms(400)), ms(1000));
    }
}
