//! Whether hibernating pays. Pure: times in, advice out.
//!
//! One that made the program wait for more than a hundredth of the round, or that put out next to nothing, did not pay:
//! then twice the idle time is asked for, and so on. One that paid ends that. A round is the time from one waking to the
//! next, and what the program waited is the time in which its pages came back, less what it computed meanwhile.
//!
//! What small things need follows the large blocks after the same time again. Where it was not out for as long, something small
//! wakes the program: then it is left for twice the time.

use std::time::{Duration, Instant};

/// One part in so many of a round may be waited for.
const PARTS: u32 = 100;
const LONGEST: Duration = Duration::from_secs(3600);

pub struct Worth {
    setting: Duration,
    asked: Duration,
    /// Beyond that, for the rest.
    asked_for_rest: Duration,
    rest_out_at: Option<Instant>,
    woke_at: Instant,
    is_enough: bool,
}

impl Worth {
    pub fn new(setting: Duration, now: Instant) -> Worth {
        Worth {
            setting,
            asked: setting,
            asked_for_rest: setting,
            rest_out_at: None,
            woke_at: now,
            is_enough: false,
        }
    }

    pub fn is_due(&self, now: Instant, idle_for: Duration) -> bool {
        self.rested(now, idle_for) >= self.asked
    }

    pub fn is_rest_due(&self, now: Instant, idle_for: Duration) -> bool {
        self.rested(now, idle_for) >= self.asked + self.asked_for_rest
    }

    /// A waking that used hardly any CPU counts as work.
    fn rested(&self, now: Instant, idle_for: Duration) -> Duration {
        idle_for.min(now.duration_since(self.woke_at))
    }

    pub fn rest_goes_out(&mut self, now: Instant) {
        self.rest_out_at = Some(now);
    }

    /// How much went out.
    pub fn is_enough(&mut self, is_enough: bool) {
        self.is_enough = is_enough;
    }

    pub fn woke(&mut self, now: Instant, waited: Duration) {
        let round = now.duration_since(self.woke_at);
        self.woke_at = now;
        self.asked = self.next(self.asked, self.is_enough && waited <= round / PARTS);
        if let Some(since) = self.rest_out_at.take() {
            let was_long = now.duration_since(since) >= self.asked_for_rest;
            self.asked_for_rest = self.next(self.asked_for_rest, was_long);
        }
    }

    fn next(&self, asked: Duration, has_paid: bool) -> Duration {
        if has_paid {
            return self.setting;
        }
        (asked * 2).min(LONGEST.max(self.setting))
    }
}
