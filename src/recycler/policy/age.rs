//! Whether memory has been unused for long enough.

/// How far a stamp may be ahead of another thread's look at the clock.
const FUTURE_MS: u32 = 60_000;

pub fn is_expired(now: u32, stamp: u32, decay_ms: u32) -> bool {
    let age_ms = now.wrapping_sub(stamp);
    // The clock wraps after 49 days, and a stamp may be a little in the future of `now`.
    decay_ms == 0 || (decay_ms..u32::MAX - FUTURE_MS).contains(&age_ms)
}

/// The time of an operation that looked at the clock, then waited for the lock: others came first and looked after it.
pub fn later(before: u32, looked: u32) -> u32 {
    if before.wrapping_sub(looked) < FUTURE_MS {
        before
    } else {
        looked
    }
}

#[cfg(test)]
mod tests {
    use super::{is_expired, later, FUTURE_MS};

    #[test]
    fn time_goes_on_where_a_thread_looked_at_the_clock_before_another_and_comes_after_it() {
        for now in [0, 7, u32::MAX - 5, 1 << 31] {
            for late in [0, 1, FUTURE_MS - 1] {
                assert_eq!(later(now, now.wrapping_sub(late)), now);
            }
            for passed in [1, 300, 1 << 31] {
                let next = now.wrapping_add(passed);
                assert_eq!(later(now, next), next);
            }
        }
    }

    #[test]
    fn what_is_unused_for_weeks_is_ripe_and_a_stamp_of_the_next_moment_is_not() {
        let day_ms = 24 * 60 * 60 * 1000;
        for stamp in [0, 7, u32::MAX - 5, 1 << 31] {
            assert!(!is_expired(stamp.wrapping_sub(3), stamp, 300));
            assert!(!is_expired(stamp.wrapping_add(299), stamp, 300));
            for age_ms in [300, day_ms, 25 * day_ms, 49 * day_ms] {
                assert!(is_expired(stamp.wrapping_add(age_ms), stamp, 300));
            }
            assert!(is_expired(stamp, stamp, 0));
        }
    }
}
