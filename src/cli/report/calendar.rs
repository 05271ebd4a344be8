//! Dates and times of day in UTC, for seconds since 1970.

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::Offset;
use jiff::Timestamp;

/// The date and time; the first of 1970 for a time that no calendar has.
fn civil(seconds: f64) -> DateTime {
    let time = Timestamp::from_second(seconds.floor() as i64).unwrap_or_default();
    Offset::UTC.to_datetime(time)
}

fn format(seconds: f64, format: &str) -> String {
    strtime::format(format, civil(seconds)).unwrap_or_default()
}

/// `2026-11-20`
pub fn date(seconds: f64) -> String {
    civil(seconds).date().to_string()
}

/// `Nov 20`
pub fn short_date(seconds: f64) -> String {
    format(seconds, "%b %-d")
}

/// `06:32`
pub fn hour_and_minute(seconds: f64) -> String {
    format(seconds, "%H:%M")
}

/// `06:32:46`
pub fn time_of_day(seconds: f64) -> String {
    format(seconds, "%H:%M:%S")
}

/// `2026-11-20 06:32 to 07:41`, or with two dates if they differ.
pub fn range(start: f64, end: f64) -> String {
    let [from, to] = [start, end].map(date);
    let [begin, finish] = match end - start < 120.0 {
        true => [start, end].map(time_of_day),
        false => [start, end].map(hour_and_minute),
    };
    match from == to {
        true => format!("{from} {begin} to {finish}"),
        false => format!("{from} {begin} to {to} {finish}"),
    }
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
        assert_eq!(short_date(start), "Nov 20");
        assert_eq!(short_date(951_782_400.0), "Feb 29");
        assert_eq!(date(f64::NAN), "1970-01-01");
    }
}
