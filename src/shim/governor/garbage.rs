//! When to ask the program for a full garbage collection. Pure: times and bytes in, advice out.
//!
//! Programs with stages collect there by themselves (`_collector.py` of the Python package, which looks more
//! often and for less). This is for the others, and for two moments: when a limit is near, where a collection is what
//! stands between the program and the kernel, and when the program waits and can spare the time.

use std::time::{Duration, Instant};

use crate::report::garbage::Total;

/// Growth since the last collection that may be garbage, near a limit and at rest.
const NEAR_LIMIT_BYTES: u64 = 16 << 20;
const IDLE_BYTES: u64 = 64 << 20;
/// At rest also this part of what was live then.
const IDLE_SHARE: u64 = 4;
/// A collection that released less was hardly worth its time.
const WORTHWHILE_BYTES: u64 = 16 << 20;
const LARGEST_FACTOR: u64 = 1 << 10;
/// One second in so many may go into collections.
const TIME_PARTS: u32 = 100;
/// What an hour of quiet saves up is not spent in one minute.
const LARGEST_CREDIT: Duration = Duration::from_secs(1);

pub struct Garbage {
    factor: u64,
    looked: Option<Instant>,
    credit: Duration,
    cost: Duration,
    /// The totals when the last one was asked for.
    asked: Option<Total>,
}

/// What one look needs to know.
#[derive(Clone, Copy)]
pub struct View {
    pub live_bytes: u64,
    pub total: Total,
    pub near_limit: bool,
    pub idle: bool,
    /// What was asked for is still to come.
    pub waiting: bool,
}

impl Garbage {
    pub const fn new() -> Garbage {
        Garbage {
            factor: 1,
            looked: None,
            credit: Duration::ZERO,
            cost: Duration::ZERO,
            asked: None,
        }
    }

    /// True when a collection is due. [`Garbage::asked`] tells that it was asked for.
    pub fn look(&mut self, now: Instant, view: View) -> bool {
        self.settle(view);
        let passed = now.duration_since(*self.looked.get_or_insert(now));
        self.looked = Some(now);
        let earned = self.credit + passed / TIME_PARTS;
        self.credit = earned.min(LARGEST_CREDIT.max(self.cost));
        let last = view.total.live_after_bytes;
        let grown = view.live_bytes.saturating_sub(last);
        let near = view.near_limit && grown >= NEAR_LIMIT_BYTES * self.factor;
        let idle = view.idle && grown >= IDLE_BYTES.max(last / IDLE_SHARE) * self.factor;
        self.asked.is_none() && (near || idle) && self.credit >= self.cost
    }

    pub fn asked(&mut self, total: Total) {
        self.asked = Some(total);
    }

    /// Learns from what was asked for, once it is over.
    fn settle(&mut self, view: View) {
        let Some(then) = self.asked.filter(|_| !view.waiting) else {
            return;
        };
        let total = view.total;
        self.asked = None;
        self.cost = Duration::from_millis(total.ms.saturating_sub(then.ms));
        self.credit = self.credit.saturating_sub(self.cost);
        let released = total.released_bytes.saturating_sub(then.released_bytes);
        self.factor = if released >= WORTHWHILE_BYTES {
            1
        } else if then.collections == 0 && total.collections > 0 {
            // The first finds the program itself: that says nothing of what will grow.
            self.factor
        } else {
            // Or none came of it, as where the program has turned collections off.
            (self.factor * 2).min(LARGEST_FACTOR)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const LOOK: Duration = Duration::from_millis(500);

    /// A program with a clock of its own, which collects when it is asked to.
    struct Program {
        garbage: Garbage,
        now: Instant,
        live_bytes: u64,
        dead_bytes: u64,
        total: Total,
        cost_ms: u64,
        answer: Answer,
    }

    #[derive(PartialEq)]
    enum Answer {
        Collect,
        Refuse,
        Never,
    }

    impl Program {
        fn new() -> Program {
            Program {
                garbage: Garbage::new(),
                now: Instant::now(),
                live_bytes: 0,
                dead_bytes: 0,
                total: Total {
                    collections: 0,
                    released_bytes: 0,
                    ms: 0,
                    live_after_bytes: 0,
                },
                cost_ms: 20,
                answer: Answer::Collect,
            }
        }

        fn forget(&mut self, bytes: u64) {
            self.live_bytes += bytes;
            self.dead_bytes += bytes;
        }

        /// One look; true when it led to a collection.
        fn look(&mut self, near_limit: bool, idle: bool) -> bool {
            self.now += LOOK;
            let view = View {
                live_bytes: self.live_bytes,
                total: self.total,
                near_limit,
                idle,
                waiting: self.answer == Answer::Never && self.garbage.asked.is_some(),
            };
            if !self.garbage.look(self.now, view) {
                return false;
            }
            self.garbage.asked(self.total);
            if self.answer != Answer::Collect {
                return true;
            }
            self.live_bytes -= self.dead_bytes;
            self.total.collections += 1;
            self.total.released_bytes += self.dead_bytes;
            self.total.ms += self.cost_ms;
            self.total.live_after_bytes = self.live_bytes;
            self.dead_bytes = 0;
            true
        }
    }

    #[test]
    fn a_program_at_work_far_from_its_limit_is_left_alone() {
        let mut program = Program::new();
        for _ in 0..100 {
            program.forget(100 * MB);
            assert!(!program.look(false, false));
        }
    }

    #[test]
    fn an_idle_program_that_grew_is_asked_once() {
        let mut program = Program::new();
        program.forget(200 * MB);
        assert!(program.look(false, true));
        assert!((0..100).all(|_| !program.look(false, true)));
        program.forget(63 * MB);
        assert!(!program.look(false, true));
        program.forget(MB);
        assert!(program.look(false, true));
    }

    #[test]
    fn near_the_limit_less_is_enough() {
        let mut program = Program::new();
        program.live_bytes = 1000 * MB;
        assert!(program.look(true, false));
        program.forget(16 * MB);
        let looks = (1..).find(|_| program.look(true, false));
        assert!(looks < Some(10), "{looks:?} looks");
    }

    #[test]
    fn live_memory_near_the_limit_backs_off() {
        let mut program = Program::new();
        let mut asked = 0;
        for _ in 0..2000 {
            program.live_bytes += MB;
            asked += u32::from(program.look(true, false));
        }
        assert!((2..=9).contains(&asked), "{asked} collections");
    }

    #[test]
    fn a_request_that_nobody_answers_is_not_repeated() {
        let mut program = Program::new();
        program.answer = Answer::Never;
        program.forget(200 * MB);
        assert!(program.look(false, true));
        assert!((0..100).all(|_| !program.look(true, true)));
    }

    #[test]
    fn a_program_that_refuses_is_asked_less_and_less() {
        let mut program = Program::new();
        program.answer = Answer::Refuse;
        program.forget(1000 * MB);
        let asked = (0..1000).filter(|_| program.look(true, true)).count();
        assert!((1..=8).contains(&asked), "{asked} times");
    }

    #[test]
    fn collections_take_no_more_than_a_hundredth_of_the_time() {
        let mut program = Program::new();
        program.cost_ms = 500;
        for _ in 0..2000 {
            program.forget(100 * MB);
            program.look(true, true);
        }
        assert!(
            (5..=23).contains(&program.total.collections),
            "{:?}",
            program.total
        );
    }
}
