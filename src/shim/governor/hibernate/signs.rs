//! Signs that an idle program works again, within some hundredths of a second. Pure: numbers in, a word out.

use std::time::{Duration, Instant};

/// CPU that no heartbeat takes, in so long.
const CPU: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(50));
/// That none takes whose heap is in swap as well: it waits for it more than it computes.
const MUCH_CPU: (Duration, Duration) = (Duration::from_millis(60), Duration::from_millis(100));
/// Pages that the program waited for in the shorter time: it is at its blocks again.
const FAULTS: u64 = 4;

/// What the program's threads have used so far, the governor's own left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu: Duration,
    /// Major faults.
    pub faults: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    None,
    /// Work, unless what small things need is out as well.
    Light,
    /// Work.
    Heavy,
}

#[derive(Default)]
pub struct Signs {
    short: Option<(Instant, Usage)>,
    long: Option<(Instant, Usage)>,
}

impl Signs {
    pub fn tell(&mut self, now: Instant, usage: Usage) -> Sign {
        let short = used(&mut self.short, CPU.1, now, usage);
        let long = used(&mut self.long, MUCH_CPU.1, now, usage);
        if long.cpu >= MUCH_CPU.0 {
            Sign::Heavy
        } else if short.cpu >= CPU.0 || short.faults >= FAULTS {
            Sign::Light
        } else {
            Sign::None
        }
    }
}

/// Since the window began; when it is over, the next begins.
fn used(
    window: &mut Option<(Instant, Usage)>,
    length: Duration,
    now: Instant,
    usage: Usage,
) -> Usage {
    let (since, before) = *window.get_or_insert((now, usage));
    if now.duration_since(since) >= length {
        *window = Some((now, usage));
    }
    Usage {
        cpu: usage.cpu.saturating_sub(before.cpu),
        faults: usage.faults.saturating_sub(before.faults),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told at the last of these looks, so many milliseconds apart, each with as much CPU.
    fn told(looks: u32, apart_ms: u64, cpu_ms: u64) -> Sign {
        let (mut signs, start) = (Signs::default(), Instant::now());
        let mut look = |look: u32| {
            let cpu = look * Duration::from_millis(cpu_ms);
            let usage = Usage { cpu, faults: 0 };
            signs.tell(start + look * Duration::from_millis(apart_ms), usage)
        };
        (0..=looks).fold(Sign::None, |_, index| look(index))
    }

    #[test]
    fn work_is_told_by_the_cpu_of_one_window_and_not_of_several() {
        assert_eq!(told(4, 10, 4), Sign::None);
        assert_eq!(told(5, 10, 4), Sign::Light);
        assert_eq!(told(8, 50, 10), Sign::None);
        assert_eq!(told(1, 50, 20), Sign::Light);
    }

    #[test]
    fn much_work_is_told_by_a_longer_window() {
        assert_eq!(told(1, 50, 50), Sign::Light);
        assert_eq!(told(2, 50, 30), Sign::Heavy);
        assert_eq!(told(20, 50, 28), Sign::Light);
    }
}
