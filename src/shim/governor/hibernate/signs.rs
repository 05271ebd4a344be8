//! Signs that an idle program works again, within some hundredths of a second. Pure: numbers in, a word out.

use std::time::{Duration, Instant};

/// The window that is looked at.
const WINDOW: Duration = Duration::from_millis(50);
/// CPU in a window that no heartbeat takes.
const CPU: Duration = Duration::from_millis(20);
/// Pages that the program waited for in a window: it is at its blocks again.
const FAULTS: u64 = 4;

/// What the program's threads have used so far, the governor's own left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu: Duration,
    /// Major faults.
    pub faults: u64,
}

pub struct Signs {
    window: Option<(Instant, Usage)>,
}

impl Signs {
    pub const fn new() -> Signs {
        Signs { window: None }
    }

    /// True when the program works.
    pub fn tell(&mut self, now: Instant, usage: Usage) -> bool {
        let (since, before) = *self.window.get_or_insert((now, usage));
        if now.duration_since(since) >= WINDOW {
            self.window = Some((now, usage));
        }
        usage.cpu.saturating_sub(before.cpu) >= CPU
            || usage.faults.saturating_sub(before.faults) >= FAULTS
    }
}
