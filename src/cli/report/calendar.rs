//! Dates and times of day in UTC, for seconds since 1970.

use jiff::fmt::strtime;
use jiff::tz::Offset;
use jiff::Timestamp;

/// A time in a format of strftime; the first of 1970 for a time that no calendar has.
pub fn utc(seconds: f64, format: &str) -> String {
    let time = Timestamp::from_second(seconds.floor() as i64).unwrap_or_default();
    strtime::format(format, Offset::UTC.to_datetime(time)).unwrap_or_default()
}

/// `2026-11-20`
pub fn date(seconds: f64) -> String {
    utc(seconds, "%F")
}

/// `06:32:46`
pub fn time_of_day(seconds: f64) -> String {
    utc(seconds, "%T")
}

/// `2026-11-20 06:32 to 07:41`, or with two dates if they differ.
pub fn range(start: f64, end: f64) -> String {
    let time = if end - start < 120.0 { "%T" } else { "%R" };
    let last = match date(start) == date(end) {
        true => utc(end, time),
        false => utc(end, &format!("%F {time}")),
    };
    format!("{} to {last}", utc(start, &format!("%F {time}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_the_second_date_only_if_it_differs() {
        let start = 1_795_156_366.0;
        assert_eq!(range(start, start + 3600.0), "2026-11-20 06:32 to 07:32");
        assert_eq!(
            range(start, start + 86400.0),
            "2026-11-20 06:32 to 2026-11-21 06:32"
        );
        assert_eq!(range(start, start + 5.0), "2026-11-20 06:32:46 to 06:32:51");
        assert_eq!(utc(start, "%b %-d"), "Nov 20");
        assert_eq!(utc(951_782_400.0, "%b %-d"), "Feb 29");
        assert_eq!(date(f64::NAN), "1970-01-01");
    }
}
