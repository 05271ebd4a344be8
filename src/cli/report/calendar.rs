//! Dates and times of day in UTC, for seconds since 1970.

use jiff::fmt::strtime;
use jiff::tz::Offset;
use jiff::Timestamp;

/// A time in a format of strftime; the first of 1970 for a time that no calendar has.
pub fn utc(seconds: f64, format: &str) -> String {
    let time = Timestamp::from_second(seconds.floor() as i64).unwrap_or_default();
    strtime::format(format, Offset::UTC.to_datetime(time)).unwrap_or_default()
}

/// `06:32:46`
pub fn time_of_day(seconds: f64) -> String {
    utc(seconds, "%T")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_that_of_utc() {
        let start = 1_795_156_366.0;
        assert_eq!(utc(start, "%F %T"), "2026-11-20 06:32:46");
        assert_eq!(utc(start, "%b %-d"), "Nov 20");
        assert_eq!(utc(951_782_400.0, "%b %-d"), "Feb 29");
        assert_eq!(utc(f64::NAN, "%F"), "1970-01-01");
    }
}
