//! Whether hibernating pays. Pure: times in, advice out.
//!
//! One that made the program wait for more than a hundredth of the round, or that put out next to nothing, did not pay:
//! then twice the idle time is asked for, and so on. One that paid ends that. A round is the time from one waking to the
//! next, and what the program waited is the time in which its pages came back, less what it computed meanwhile.

use std::time::{Duration, Instant};

/// One part in so many of a round may be waited for.
const PARTS: u32 = 100;
const LONGEST: Duration = Duration::from_secs(3600);

pub struct Worth {
    setting: Duration,
    asked: Duration,
    woke_at: Instant,
    is_enough: bool,
}

impl Worth {
    pub fn new(setting: Duration, now: Instant) -> Worth {
        Worth {
            setting,
            asked: setting,
            woke_at: now,
            is_enough: false,
        }
    }

    /// A waking that used hardly any CPU counts as work.
    pub fn is_due(&self, now: Instant, idle_for: Duration) -> bool {
        idle_for.min(now.duration_since(self.woke_at)) >= self.asked
    }

    /// How much went out.
    pub fn is_enough(&mut self, is_enough: bool) {
        self.is_enough = is_enough;
    }

    pub fn woke(&mut self, now: Instant, waited: Duration) {
        let round = now.duration_since(self.woke_at);
        self.woke_at = now;
        self.asked = if self.is_enough && waited <= round / PARTS {
            self.setting
        } else {
            (self.asked * 2).min(LONGEST.max(self.setting))
        };
    }
}
