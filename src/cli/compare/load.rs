//! The share of the machine's CPUs that other programs use during a run.

use std::time::Instant;

/// The use of the CPUs since [`Load::start`].
pub struct Load {
    begun: Instant,
    busy_s: f64,
}

impl Load {
    /// `None` if `/proc/stat` cannot be read.
    pub fn start() -> Option<Load> {
        let (busy_s, _) = machine()?;
        let begun = Instant::now();
        Some(Load { begun, busy_s })
    }

    /// The share of all CPUs that was used beside these seconds of the run's own, 0 to 1.
    pub fn share_of_others(&self, own_cpu_s: f64) -> Option<f64> {
        let (busy_s, cpus) = machine()?;
        let all = self.begun.elapsed().as_secs_f64() * cpus as f64;
        let others = busy_s - self.busy_s - own_cpu_s;
        (all > 0.0).then(|| (others / all).clamp(0.0, 1.0))
    }
}

/// The CPU seconds that the machine was busy, and the number of its CPUs.
fn machine() -> Option<(f64, usize)> {
    read(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn read(stat: &str) -> Option<(f64, usize)> {
    let mut lines = stat.lines();
    let fields = lines.next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; a guest's time is in user.
    let busy = [0, 1, 2, 5, 6, 7].map(|field| ticks.get(field).copied().unwrap_or(0));
    let cpus = lines.take_while(|line| line.starts_with("cpu")).count();
    Some((seconds(busy.iter().sum()), cpus))
}

pub fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iowait_is_idle_and_the_time_of_a_guest_counts_once() {
        let stat = "cpu  100 10 20 5000 999 1 2 3 100 10\ncpu0 1 2\ncpu1 1 2\nintr 5\n";
        assert_eq!(read(stat), Some((seconds(136), 2)));
        assert_eq!(read("intr 5\n"), None);
    }

    #[test]
    fn a_busy_thread_that_is_not_the_runs_own_counts() {
        let load = Load::start().unwrap();
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 300 {}
        let all = load.share_of_others(0.0).unwrap();
        let without_own = load.share_of_others(0.25).unwrap();
        assert!(all > 0.0 && without_own < all, "{all} {without_own}");
    }
}
