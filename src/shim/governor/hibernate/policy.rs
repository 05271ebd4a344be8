//! The policies of hibernation: when it is due, and when the program works again. Pure: times and
//! numbers in, advice out.

use std::time::{Duration, Instant};

use flarena_shared::backoff::Backoff;

use crate::governor::idle::Usage;

/// Less is not worth a hibernation.
pub const WORTHWHILE_BYTES: u64 = 16 << 20;

/// A hibernation may make the program wait for one part in so many of a round.
const ROUND_PARTS: u32 = 100;
const LONGEST: Duration = Duration::from_secs(3600);

/// The idle time that the next hibernation needs.
///
/// It doubles after each hibernation that did not pay: it made the program wait for more than a
/// hundredth of the round, or moved too little. One that paid resets it. A round is the time from
/// one wake-up to the next.
///
/// The heap follows the blocks after the same time again. If the program wakes before the heap was
/// out for as long, the heap's time doubles.
pub struct HibernationBackoff {
    blocks: Backoff<Duration>,
    /// In addition to the time of the blocks.
    heap: Backoff<Duration>,
    heap_out_at: Option<Instant>,
    woke_at: Instant,
}

/// The outcome of one hibernation.
#[derive(Clone, Copy)]
pub struct Outcome {
    /// Bytes in swap at the first sign of work.
    pub out_bytes: u64,
    /// The time that the program waited for its pages.
    pub waited: Duration,
}

impl HibernationBackoff {
    pub fn new(setting: Duration, now: Instant) -> HibernationBackoff {
        let backoff = Backoff::between(setting, LONGEST.max(setting));
        HibernationBackoff {
            blocks: backoff,
            heap: backoff,
            heap_out_at: None,
            woke_at: now,
        }
    }

    pub fn are_blocks_due(&self, now: Instant, idle_for: Duration) -> bool {
        self.rested(now, idle_for) >= self.blocks.value()
    }

    pub fn is_heap_due(&self, now: Instant, idle_for: Duration) -> bool {
        self.rested(now, idle_for) >= self.blocks.value() + self.heap.value()
    }

    /// A wake-up counts as work, even if it used hardly any CPU time.
    fn rested(&self, now: Instant, idle_for: Duration) -> Duration {
        idle_for.min(now.duration_since(self.woke_at))
    }

    pub fn heap_goes_out(&mut self, now: Instant) {
        self.heap_out_at = Some(now);
    }

    pub fn woke(&mut self, now: Instant, outcome: Outcome) {
        let round = now.duration_since(self.woke_at);
        self.woke_at = now;
        let has_paid =
            outcome.out_bytes >= WORTHWHILE_BYTES && outcome.waited <= round / ROUND_PARTS;
        reset_if(has_paid, &mut self.blocks);
        if let Some(since) = self.heap_out_at.take() {
            reset_if(
                now.duration_since(since) >= self.heap.value(),
                &mut self.heap,
            );
        }
    }
}

fn reset_if(has_paid: bool, backoff: &mut Backoff<Duration>) {
    if has_paid {
        backoff.reset();
    } else {
        backoff.lengthen();
    }
}

/// An amount of CPU time within a window.
struct CpuThreshold {
    cpu: Duration,
    window: Duration,
}

/// More than a heartbeat uses.
const LIGHT_CPU: CpuThreshold = CpuThreshold {
    cpu: Duration::from_millis(20),
    window: Duration::from_millis(50),
};
/// More than a heartbeat uses while its heap is in swap: it waits for pages more than it computes.
const HEAVY_CPU: CpuThreshold = CpuThreshold {
    cpu: Duration::from_millis(60),
    window: Duration::from_millis(100),
};
/// Major faults within the window of `LIGHT_CPU`: the program uses its blocks.
const LIGHT_FAULTS: u64 = 4;

/// How much the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    None,
    /// Work, unless the heap is out: then a heartbeat shows the same.
    Light,
    Heavy,
}

/// Detects that an idle program works again, within some hundredths of a second.
#[derive(Default)]
pub struct WakeDetector {
    light: Window,
    heavy: Window,
}

impl WakeDetector {
    pub fn observe(&mut self, now: Instant, usage: Usage) -> Activity {
        let light = self.light.used(LIGHT_CPU.window, now, usage);
        let heavy = self.heavy.used(HEAVY_CPU.window, now, usage);
        if heavy.cpu >= HEAVY_CPU.cpu {
            Activity::Heavy
        } else if light.cpu >= LIGHT_CPU.cpu || light.faults >= LIGHT_FAULTS {
            Activity::Light
        } else {
            Activity::None
        }
    }
}

/// The time at which the current window began, and the usage until then.
#[derive(Default)]
struct Window(Option<(Instant, Usage)>);

impl Window {
    /// The usage since the window began. After `length` the next window begins.
    fn used(&mut self, length: Duration, now: Instant, usage: Usage) -> Usage {
        let (since, before) = *self.0.get_or_insert((now, usage));
        if now.duration_since(since) >= length {
            self.0 = Some((now, usage));
        }
        usage.since(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The activity at the last of some observations with equal intervals and CPU times.
    fn activity(observations: u32, interval_ms: u64, cpu_ms: u64) -> Activity {
        let (mut detector, start) = (WakeDetector::default(), Instant::now());
        let mut observe = |index: u32| {
            let cpu = index * Duration::from_millis(cpu_ms);
            let usage = Usage { cpu, faults: 0 };
            detector.observe(start + index * Duration::from_millis(interval_ms), usage)
        };
        (0..=observations).fold(Activity::None, |_, index| observe(index))
    }

    #[test]
    fn light_activity_is_the_cpu_time_of_one_window_not_of_several() {
        assert_eq!(activity(4, 10, 4), Activity::None);
        assert_eq!(activity(5, 10, 4), Activity::Light);
        assert_eq!(activity(8, 50, 10), Activity::None);
        assert_eq!(activity(1, 50, 20), Activity::Light);
    }

    #[test]
    fn heavy_activity_needs_more_cpu_time_within_a_longer_window() {
        assert_eq!(activity(1, 50, 50), Activity::Light);
        assert_eq!(activity(2, 50, 30), Activity::Heavy);
        assert_eq!(activity(20, 50, 28), Activity::Light);
    }
}
