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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether work is told at the last of these looks, so many milliseconds apart, each with as much CPU.
    fn told(looks: u32, apart_ms: u64, cpu_ms: u64) -> bool {
        let (mut signs, start) = (Signs::new(), Instant::now());
        let mut look = |look: u32| {
            let cpu = look * Duration::from_millis(cpu_ms);
            let usage = Usage { cpu, faults: 0 };
            signs.tell(start + look * Duration::from_millis(apart_ms), usage)
        };
        (0..=looks).fold(false, |_, index| look(index))
    }

    #[test]
    fn work_is_told_by_the_cpu_of_one_window_and_not_of_several() {
        assert!(!told(4, 10, 4));
        assert!(told(5, 10, 4));
        assert!(!told(8, 50, 10));
        assert!(told(1, 50, 20));
    }
}
