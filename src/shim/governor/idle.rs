//! Decides when the program is idle, and which trims that makes worthwhile. `Idle` is pure: times
//! in, advice out; `program_cpu_time` reads them.
//!
//! A program is idle while all of its threads together use little CPU time. Each idle period gets
//! one trim of the heap: a trim costs time and locks, and without work between them a second one
//! finds nothing new.

use std::time::{Duration, Instant};

use flarena_shared::backoff::Backoff;
use rustix::time::ClockId;

use crate::memory_limit::WORTHWHILE_BYTES;
use flarena_sys::time;

/// Interval between two checks while the program works or was just trimmed.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Interval once an idle program has nothing more to return.
const LONG_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// An idle program uses less than this share of a core. A heartbeat does, a training loop does not.
const IDLE_SHARE: f64 = 0.05;
/// The program was idle for so long before a trim.
const QUIET: Duration = Duration::from_secs(1);
/// An idle period of this length gets a trim, also after many that released little.
const LONG_QUIET: Duration = Duration::from_secs(10);
/// CPU time after which the heap may have new free memory.
const WORK: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(120);

/// The CPU time of the program's threads, without the governor's.
pub fn program_cpu_time() -> Duration {
    let governor = time::now(ClockId::ThreadCPUTime);
    time::now(ClockId::ProcessCPUTime).saturating_sub(governor)
}

pub struct Idle {
    /// Time and CPU time of the last check.
    last: Option<(Instant, Duration)>,
    idle_since: Option<Instant>,
    /// Time and CPU time of the last trim.
    trimmed: Option<(Instant, Duration)>,
    /// The program worked since the last trim, even if for less than [`WORK`]. A program that waits
    /// for a processor or a disk in the middle of its work gets trimmed before it has freed
    /// anything.
    worked_since_trim: bool,
    backoff: Backoff<Duration>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Advice {
    /// Let the backend return the pages that its own decay says are due.
    pub decay_backend: bool,
    pub trim_backend: bool,
    /// The program was idle for at least [`QUIET`].
    pub is_quiet: bool,
    /// Zero if the program works.
    pub idle_for: Duration,
    /// The time until the next check.
    pub pause: Duration,
}

impl Idle {
    pub fn new() -> Idle {
        Idle {
            last: None,
            idle_since: None,
            trimmed: None,
            worked_since_trim: false,
            backoff: Backoff::between(QUIET, LONGEST_BACKOFF).starting_at(Duration::ZERO),
        }
    }

    /// `cpu` is the CPU time of the program so far.
    pub fn check(&mut self, now: Instant, cpu: Duration) -> Advice {
        if !self.is_idle(now, cpu) {
            self.idle_since = None;
            self.worked_since_trim = true;
            return Advice {
                pause: CHECK_INTERVAL,
                ..Advice::default()
            };
        }
        let since = *self.idle_since.get_or_insert(now);
        let is_trim_due = self.is_trim_due(now, cpu, since);
        let idle_for = now.duration_since(since);
        let is_quiet = idle_for >= QUIET;
        // The decay goes on after the trim: the caches of other threads drain later, and so do
        // muzzy pages.
        let has_settled = !is_trim_due && idle_for > LONG_QUIET;
        Advice {
            decay_backend: true,
            trim_backend: is_trim_due && is_quiet,
            is_quiet,
            idle_for,
            pause: if has_settled {
                LONG_CHECK_INTERVAL
            } else {
                CHECK_INTERVAL
            },
        }
    }

    /// Records the trim that [`Idle::check`] advised.
    pub fn trimmed(&mut self, now: Instant, released_bytes: u64) {
        self.trimmed = self.last.map(|(_, cpu)| (now, cpu));
        self.worked_since_trim = false;
        if released_bytes >= WORTHWHILE_BYTES {
            self.backoff.reset();
        } else {
            self.backoff.lengthen();
        }
    }

    /// The heap may have new free memory, although the program did not work.
    pub fn note_collection(&mut self) {
        self.worked_since_trim = true;
    }

    /// Two checks in quick succession measure nothing, so the second keeps the result of the first.
    fn is_idle(&mut self, now: Instant, cpu: Duration) -> bool {
        let (last, cpu_then) = *self.last.get_or_insert((now, cpu));
        let passed = now.duration_since(last);
        if passed < CHECK_INTERVAL / 4 {
            return self.idle_since.is_some();
        }
        self.last = Some((now, cpu));
        cpu.saturating_sub(cpu_then).as_secs_f64() < IDLE_SHARE * passed.as_secs_f64()
    }

    fn is_trim_due(&self, now: Instant, cpu: Duration, idle_since: Instant) -> bool {
        self.trimmed.is_none_or(|(at, cpu_then)| {
            let has_worked = self.worked_since_trim || cpu.saturating_sub(cpu_then) >= WORK;
            let is_first_of_rest = at < idle_since && now.duration_since(idle_since) >= LONG_QUIET;
            has_worked && (is_first_of_rest || now.duration_since(at) >= self.backoff.value())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process with a simulated clock.
    struct Process {
        idle: Idle,
        now: Instant,
        cpu: Duration,
    }

    impl Process {
        fn new() -> Process {
            Process {
                idle: Idle::new(),
                now: Instant::now(),
                cpu: Duration::ZERO,
            }
        }

        /// Runs for `seconds` at this share of a core. Returns the number of trims that were
        /// advised; each releases `bytes`.
        fn run(&mut self, seconds: u32, share: f64, bytes: u64) -> u32 {
            let mut trims = 0;
            for _ in 0..seconds * 2 {
                let advice = self.check_after(CHECK_INTERVAL, share);
                if advice.trim_backend {
                    trims += 1;
                    self.idle.trimmed(self.now, bytes);
                }
            }
            trims
        }

        fn check_after(&mut self, passed: Duration, share: f64) -> Advice {
            self.now += passed;
            self.cpu += passed.mul_f64(share);
            self.idle.check(self.now, self.cpu)
        }
    }

    #[test]
    fn a_busy_process_is_not_trimmed() {
        assert_eq!(Process::new().run(60, 0.8, 1 << 30), 0);
    }

    #[test]
    fn a_twentieth_of_a_core_is_work() {
        assert_eq!(Process::new().run(60, 0.05, 1 << 30), 0);
    }

    #[test]
    fn an_idle_heap_decays_at_once_and_is_trimmed_after_a_second() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        let advice = [0, 1, 2].map(|_| process.check_after(CHECK_INTERVAL, 0.0));
        assert_eq!(advice.map(|advice| advice.decay_backend), [true; 3]);
        assert_eq!(
            advice.map(|advice| advice.trim_backend),
            [false, false, true]
        );
        // Work between two checks in quick succession does not count.
        let soon = process.check_after(CHECK_INTERVAL / 50, 1.0);
        assert!(soon.decay_backend);
    }

    #[test]
    fn a_quarter_of_the_interval_is_enough_for_a_check() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        assert!(process.check_after(CHECK_INTERVAL / 4, 0.0).decay_backend);
        assert!(!process.check_after(CHECK_INTERVAL / 4, 1.0).decay_backend);
    }

    #[test]
    fn a_heap_that_was_just_trimmed_is_checked_at_the_short_interval() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        assert_eq!(process.run(3, 0.0, 1 << 30), 1);
        assert_eq!(
            process.check_after(CHECK_INTERVAL, 0.0).pause,
            CHECK_INTERVAL
        );
    }

    #[test]
    fn each_idle_period_gets_one_trim() {
        let mut process = Process::new();
        for _ in 0..3 {
            process.run(5, 1.0, 1 << 30);
            assert_eq!(process.run(30, 0.001, 1 << 30), 1);
        }
    }

    #[test]
    fn memory_freed_after_a_stall_is_trimmed() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        assert_eq!(process.run(2, 0.0, 0), 1);
        assert!(!process.check_after(CHECK_INTERVAL, 0.15).trim_backend);
        assert_eq!(process.run(5, 0.0, 1 << 30), 1);
    }

    #[test]
    fn a_collection_at_rest_is_followed_by_a_trim() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        assert_eq!(process.run(30, 0.0, 1 << 30), 1);
        process.idle.note_collection();
        assert_eq!(process.run(30, 0.0, 1 << 30), 1);
    }

    #[test]
    fn trims_that_release_little_become_rarer() {
        let mut process = Process::new();
        let mut trims = 0;
        for _ in 0..120 {
            process.run(1, 1.0, 0);
            trims += process.run(4, 0.0, 0);
        }
        assert!(
            (3..=15).contains(&trims),
            "{trims} trims in ten minutes of short idle periods"
        );
    }

    #[test]
    fn a_long_idle_period_gets_its_trim_after_short_ones_that_released_little() {
        let mut process = Process::new();
        for _ in 0..100 {
            process.run(1, 1.0, 0);
            process.run(4, 0.0, 0);
        }
        process.run(1, 1.0, 0);
        assert_eq!(process.run(12, 0.01, 0), 1);
        assert_eq!(process.run(60, 0.01, 0), 0);
    }

    #[test]
    fn an_idle_process_is_checked_at_the_long_interval_after_ten_seconds() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        process.run(10, 0.0, 1 << 30);
        let after_ten_seconds = process.check_after(CHECK_INTERVAL, 0.0);
        assert_eq!(after_ten_seconds.pause, CHECK_INTERVAL);
        let advice = process.check_after(CHECK_INTERVAL, 0.0);
        assert_eq!(
            (advice.pause, advice.trim_backend),
            (LONG_CHECK_INTERVAL, false)
        );
    }

    #[test]
    fn cpu_time_of_another_thread_counts_as_the_programs() {
        let (before, work) = (program_cpu_time(), Duration::from_millis(5));
        let other = std::thread::spawn(move || {
            while time::now(ClockId::ThreadCPUTime) < work {
                std::hint::spin_loop();
            }
        });
        other.join().expect("it only counts");
        // The two clocks are read some microseconds apart.
        assert!(program_cpu_time() > before + work / 2);
    }
}
