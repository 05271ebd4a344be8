//! Whether memory has been unused for long enough.

/// How far a stamp may be ahead of another thread's look at the clock.
const FUTURE_MS: u32 = 60_000;

pub fn is_ripe(now: u32, stamp: u32, decay_ms: u32) -> bool {
    let age_ms = now.wrapping_sub(stamp);
    // The clock wraps after 49 days, and a stamp may be a little in the future of `now`.
    decay_ms == 0 || (decay_ms..u32::MAX - FUTURE_MS).contains(&age_ms)
}

#[cfg(test)]
mod tests {
    use super::is_ripe;

    #[test]
    fn what_is_unused_for_weeks_is_ripe_and_a_stamp_of_the_next_moment_is_not() {
        let day_ms = 24 * 60 * 60 * 1000;
        for stamp in [0, 7, u32::MAX - 5, 1 << 31] {
            assert!(!is_ripe(stamp.wrapping_sub(3), stamp, 300));
            assert!(!is_ripe(stamp.wrapping_add(299), stamp, 300));
            for age_ms in [300, day_ms, 25 * day_ms, 49 * day_ms] {
                assert!(is_ripe(stamp.wrapping_add(age_ms), stamp, 300));
            }
            assert!(is_ripe(stamp, stamp, 0));
        }
    }
}
