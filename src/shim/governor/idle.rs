//! When the application is idle, and what is then worth doing. Pure: times in, advice out.
//!
//! Idle means that all threads together used little CPU since the last look. Free memory is given
//! back once for each stretch of work, not again and again: a trim costs time and locks, and a
//! heap in which nothing happened has nothing new to give.

use std::time::{Duration, Instant};

/// How often to look while there is work to judge.
const LOOK: Duration = Duration::from_millis(500);
/// How seldom, once an idle heap has been dealt with.
const REST: Duration = Duration::from_secs(1);
/// Less CPU than this share of one core is idle: heartbeats are, a training loop is not.
const IDLE_SHARE: f64 = 0.05;
/// The application has been idle this long before its heap is trimmed.
const QUIET: Duration = Duration::from_secs(1);
/// The work after which a heap may have something new to give.
const WORK: Duration = Duration::from_millis(100);
/// A trim that gave less was hardly worth its locks.
const WORTHWHILE_BYTES: u64 = 4 << 20;
const LONGEST_BACK_OFF: Duration = Duration::from_secs(120);

pub struct Idle {
    last: Option<(Instant, Duration)>,
    quiet_since: Option<Instant>,
    /// CPU time of the process when its heap was last trimmed.
    trimmed_at_cpu: Option<Duration>,
    /// It was busy since then, be it for less than [`WORK`]: a process that waited for the processor, or for a
    /// disk, in the middle of its work was trimmed before it had freed anything.
    stirred: bool,
    trimmed_at: Option<Instant>,
    back_off: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// Let the backend return what its own decay says is due.
    pub age_backend: bool,
    /// Trim the backend's heap.
    pub trim_backend: bool,
    /// It has been idle for a while.
    pub quiet: bool,
    /// For how long; zero: it works.
    pub idle_for: Duration,
    pub pause: Duration,
}

impl Idle {
    pub fn new() -> Idle {
        Idle {
            last: None,
            quiet_since: None,
            trimmed_at_cpu: None,
            stirred: false,
            trimmed_at: None,
            back_off: Duration::ZERO,
        }
    }

    /// `cpu` is the CPU time of the whole process so far.
    pub fn look(&mut self, now: Instant, cpu: Duration) -> Advice {
        if !self.judge(now, cpu) {
            self.quiet_since = None;
            self.stirred = true;
            return Advice {
                age_backend: false,
                trim_backend: false,
                quiet: false,
                idle_for: Duration::ZERO,
                pause: LOOK,
            };
        }
        let since = *self.quiet_since.get_or_insert(now);
        let due = self.is_trim_due(now, cpu);
        let idle_for = now.duration_since(since);
        let quiet = idle_for >= QUIET;
        let trim_backend = due && quiet;
        // Aging goes on after the trim: other threads' caches drain late, muzzy pages later.
        let settled = !due && idle_for > 10 * QUIET;
        Advice {
            age_backend: true,
            trim_backend,
            quiet,
            idle_for,
            pause: if settled { REST } else { LOOK },
        }
    }

    /// Tells what the trim that was advised gave back.
    pub fn trimmed(&mut self, now: Instant, released_bytes: u64) {
        self.trimmed_at = Some(now);
        self.trimmed_at_cpu = self.last.map(|(_, cpu)| cpu);
        self.stirred = false;
        self.back_off = if released_bytes >= WORTHWHILE_BYTES {
            Duration::ZERO
        } else {
            (self.back_off * 2).clamp(QUIET, LONGEST_BACK_OFF)
        };
    }

    /// Is it idle? Two looks in quick succession say nothing: then the earlier judgement stands.
    fn judge(&mut self, now: Instant, cpu: Duration) -> bool {
        let (then, cpu_then) = *self.last.get_or_insert((now, cpu));
        let passed = now.duration_since(then);
        if passed < LOOK / 4 {
            return self.quiet_since.is_some();
        }
        self.last = Some((now, cpu));
        cpu.saturating_sub(cpu_then).as_secs_f64() < IDLE_SHARE * passed.as_secs_f64()
    }

    fn is_trim_due(&self, now: Instant, cpu: Duration) -> bool {
        let worked = self
            .trimmed_at_cpu
            .is_none_or(|then| cpu.saturating_sub(then) >= WORK);
        let rested = self
            .trimmed_at
            .is_none_or(|then| now.duration_since(then) >= self.back_off);
        (worked || self.stirred) && rested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process with a clock of its own.
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

        /// Lets `seconds` pass with the given share of a core; counts the trims advised, each of
        /// which gives back `bytes`.
        fn run(&mut self, seconds: u32, share: f64, bytes: u64) -> u32 {
            let mut trims = 0;
            for _ in 0..seconds * 2 {
                let advice = self.look_after(LOOK, share);
                if advice.trim_backend {
                    trims += 1;
                    self.idle.trimmed(self.now, bytes);
                }
            }
            trims
        }

        fn look_after(&mut self, passed: Duration, share: f64) -> Advice {
            self.now += passed;
            self.cpu += passed.mul_f64(share);
            self.idle.look(self.now, self.cpu)
        }
    }

    #[test]
    fn a_busy_process_is_left_alone() {
        assert_eq!(Process::new().run(60, 0.8, 1 << 30), 0);
    }

    #[test]
    fn a_twentieth_of_a_core_is_work() {
        assert_eq!(Process::new().run(60, 0.05, 1 << 30), 0);
    }

    #[test]
    fn an_idle_heap_is_aged_at_once_and_trimmed_after_a_second() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        let advice = [0, 1, 2].map(|_| process.look_after(LOOK, 0.0));
        assert_eq!(advice.map(|advice| advice.age_backend), [true; 3]);
        assert_eq!(
            advice.map(|advice| advice.trim_backend),
            [false, false, true]
        );
        // Two looks in quick succession: the work between them says nothing.
        let soon = process.look_after(LOOK / 50, 1.0);
        assert!(soon.age_backend);
    }

    #[test]
    fn a_quarter_of_the_time_between_looks_is_enough_to_judge_by() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        assert!(process.look_after(LOOK / 4, 0.0).age_backend);
        assert!(!process.look_after(LOOK / 4, 1.0).age_backend);
    }

    #[test]
    fn a_heap_that_was_just_trimmed_is_still_looked_at_often() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        assert_eq!(process.run(3, 0.0, 1 << 30), 1);
        assert_eq!(process.look_after(LOOK, 0.0).pause, LOOK);
    }

    #[test]
    fn each_idle_stretch_gets_one_trim() {
        let mut process = Process::new();
        for _ in 0..3 {
            process.run(5, 1.0, 1 << 30);
            assert_eq!(process.run(30, 0.001, 1 << 30), 1);
        }
    }

    #[test]
    fn what_is_freed_after_a_stall_is_trimmed_too() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        assert_eq!(process.run(2, 0.0, 0), 1);
        assert!(!process.look_after(LOOK, 0.15).trim_backend);
        assert_eq!(process.run(5, 0.0, 1 << 30), 1);
    }

    #[test]
    fn trims_that_yield_little_back_off() {
        let mut process = Process::new();
        let mut trims = 0;
        for _ in 0..120 {
            process.run(1, 1.0, 0);
            trims += process.run(4, 0.0, 0);
        }
        assert!(
            (3..=15).contains(&trims),
            "{trims} trims in ten minutes of short idling"
        );
    }

    #[test]
    fn an_idle_process_is_looked_at_seldom_after_ten_seconds() {
        let mut process = Process::new();
        process.run(5, 1.0, 0);
        process.run(10, 0.0, 1 << 30);
        let after_ten_seconds = process.look_after(LOOK, 0.0);
        assert_eq!(after_ten_seconds.pause, LOOK);
        let advice = process.look_after(LOOK, 0.0);
        assert_eq!((advice.pause, advice.trim_backend), (REST, false));
    }
}
