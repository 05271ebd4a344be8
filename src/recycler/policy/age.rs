//! Comparison of times in wrapping milliseconds. They wrap after 49 days.

/// A stamp may be ahead of `now` by this much, if another thread read the clock later.
pub const FUTURE_MS: u32 = 60_000;

/// True if at least `max_age_ms` passed from `stamp` to `now`. Always true for a `max_age_ms` of 0.
pub fn is_expired(now: u32, stamp: u32, max_age_ms: u32) -> bool {
    let age_ms = now.wrapping_sub(stamp);
    max_age_ms == 0 || (max_age_ms..u32::MAX - FUTURE_MS).contains(&age_ms)
}

#[cfg(test)]
mod tests {
    use super::is_expired;

    #[test]
    fn an_age_of_weeks_is_expired_and_a_stamp_just_ahead_of_now_is_not() {
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
