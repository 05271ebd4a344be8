//! When the control channel is open. Anybody on the machine may connect, and each look at who it is costs the
//! process CPU: after strangers it stays shut for a while, longer each time. Pure: times in, advice out.
//!
//! Those who may ask wait in the queue meanwhile, for a second at most, as everybody is looked at who waits
//! when it opens.

use std::time::{Duration, Instant};

const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

pub struct Door {
    shut_until: Option<Instant>,
    pause: Duration,
}

impl Door {
    pub fn new() -> Door {
        Door {
            shut_until: None,
            pause: Duration::ZERO,
        }
    }

    /// How long it stays shut; `None` when it is open.
    pub fn opens_in(&self, now: Instant) -> Option<Duration> {
        let left = self.shut_until?.saturating_duration_since(now);
        (left > Duration::ZERO).then_some(left)
    }

    /// Tells whether there was a stranger among those who were looked at.
    pub fn looked(&mut self, now: Instant, strangers: bool) {
        if !strangers {
            // Not open for good: a stranger a moment later is likely the same one.
            self.pause /= 2;
            return;
        }
        self.pause = (self.pause * 2).clamp(SHORTEST, LONGEST);
        self.shut_until = Some(now + self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_may_ask_are_never_shut_out() {
        let (mut door, now) = (Door::new(), Instant::now());
        for _ in 0..1000 {
            door.looked(now, false);
            assert_eq!(door.opens_in(now), None);
        }
    }

    #[test]
    fn strangers_without_end_are_looked_at_once_a_second() {
        let (mut door, start) = (Door::new(), Instant::now());
        let (mut now, mut looks) = (start, 0);
        while now < start + Duration::from_secs(60) {
            if door.opens_in(now).is_none() {
                door.looked(now, true);
                looks += 1;
            }
            now += Duration::from_millis(1);
        }
        assert!((60..=70).contains(&looks), "{looks} looks in a minute");
    }

    #[test]
    fn one_stranger_delays_nobody_for_long() {
        let (mut door, now) = (Door::new(), Instant::now());
        door.looked(now, true);
        assert_eq!(door.opens_in(now), Some(SHORTEST));
        assert_eq!(door.opens_in(now + SHORTEST), None);
    }
}
