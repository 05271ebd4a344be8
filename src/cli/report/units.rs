//! Formats and parses times and durations, and parses sizes. Bytes are `f64`, and times seconds since 1970 in UTC.

use flarena_shared::parse;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::Offset;
use jiff::{Span, SpanRelativeTo, Timestamp, Unit};

pub use crate::output::plain as printable;
pub use crate::units::{
    in_one_unit, plural, range, rounds_to_zero, signed_size, size, Amount, GB, MB,
};

/// `42 s`, `18 min`, `7.5 h`, `3.1 d`.
pub fn duration(seconds: f64) -> String {
    let (unit, name) = time_unit(seconds);
    let decimals = if unit < 3600.0 { 0 } else { 1 };
    format!("{:.decimals$} {name}", seconds / unit)
}

/// The unit that fits a duration: its length in seconds and its name.
pub fn time_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s < 120.0 => (1.0, "s"),
        s if s < 7200.0 => (60.0, "min"),
        s if s < 172_800.0 => (3600.0, "h"),
        _ => (86400.0, "d"),
    }
}

/// Bytes from `5MB`, `1.5G`, `300 KiB` or `4096` on the command line. All units are powers of 1024.
pub fn size_argument(text: &str) -> Result<f64, String> {
    let letter = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(letter.unwrap_or(text.len()));
    let number = number.trim().parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    let unit = parse::size_bytes(format!("1{}", unit.trim()).as_bytes());
    let size = number.zip(unit).map(|(number, unit)| number * unit as f64);
    size.ok_or_else(|| format!("`{text}` is not a size, such as 64M or 8G"))
}

/// Seconds from `90 s`, `30min`, `24h`, `2 days` on the command line.
pub fn duration_argument(text: &str) -> Result<f64, String> {
    let span = text.trim().parse::<Span>();
    let seconds =
        span.and_then(|span| span.total((Unit::Second, SpanRelativeTo::days_are_24_hours())));
    let seconds = seconds.ok().filter(|seconds| *seconds >= 0.0);
    seconds.ok_or_else(|| format!("`{text}` is not a time, such as 30m or 24h"))
}

/// A time in a format of strftime; the first of 1970 for a time that no calendar has.
pub fn utc(seconds: f64, format: &str) -> String {
    let time = Timestamp::from_second(seconds.floor() as i64).unwrap_or_default();
    strtime::format(format, Offset::UTC.to_datetime(time)).unwrap_or_default()
}

/// `06:32:46`
pub fn time_of_day(seconds: f64) -> String {
    utc(seconds, "%T")
}

const TIMESTAMP_LENGTH: usize = "2026-11-20 06:32:46".len();

/// The first time in the text of a log, such as `2026-11-20 06:32:46,123`. A log names no time zone, so times are compared only
/// within one log.
pub fn timestamp(text: &[u8]) -> Option<f64> {
    (0..text.len().saturating_sub(TIMESTAMP_LENGTH - 1))
        .find_map(|at| timestamp_at_start(&text[at..]))
}

/// The time at the start of the text.
fn timestamp_at_start(text: &[u8]) -> Option<f64> {
    if !(text[4] == b'-' && text[13] == b':' && matches!(text[10], b' ' | b'T')) {
        return None;
    }
    let digits = match &text[TIMESTAMP_LENGTH..] {
        [b',' | b'.', rest @ ..] => rest.iter().take_while(|c| c.is_ascii_digit()).count(),
        _ => 0,
    };
    let fraction = if digits > 0 { 1 + digits.min(9) } else { 0 };
    let time = str::from_utf8(&text[..TIMESTAMP_LENGTH + fraction]).ok()?;
    let time = Offset::UTC.to_timestamp(time.parse::<DateTime>().ok()?);
    Some(time.ok()?.as_microsecond() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_parsed_with_its_unit() {
        let valid = [
            ("90 s", 90.0),
            ("30min", 1800.0),
            ("1.5h", 5400.0),
            ("2 days", 172_800.0),
        ];
        for (text, seconds) in valid {
            assert_eq!(duration_argument(text), Ok(seconds), "{text}");
        }
        for wrong in ["", "24", "h", "-5h", "soon", "5 bananas", "1 month"] {
            assert!(duration_argument(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_parsed_with_and_without_a_unit() {
        assert_eq!(size_argument("5MB"), Ok(5.0 * MB));
        assert_eq!(size_argument("1.5 GiB"), Ok(1.5 * GB));
        assert_eq!(size_argument("4096"), Ok(4096.0));
        for wrong in ["", "MB", "-5MB", "5 bananas", "nan", "inf"] {
            assert!(size_argument(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_that_of_utc() {
        let start = 1_795_156_366.0;
        assert_eq!(utc(start, "%F %T"), "2026-11-20 06:32:46");
        assert_eq!(utc(start, "%b %-d"), "Nov 20");
        assert_eq!(utc(951_782_400.0, "%b %-d"), "Feb 29");
        assert_eq!(utc(f64::NAN, "%F"), "1970-01-01");
    }

    #[test]
    fn a_time_is_found_anywhere_in_a_line() {
        let line = b"x 2026-11-20 06:32:46,125 - mem_utils - INFO - ";
        assert_eq!(timestamp(line), Some(1_795_156_366.125));
        assert_eq!(timestamp(b"1970-01-01T00:00:00.5Z"), Some(0.5));
        assert_eq!(timestamp(b"2000-03-01 00:00:00"), Some(951_868_800.0));
    }

    #[test]
    fn a_line_without_a_valid_time_gives_none() {
        for line in [
            "",
            "12:00:00",
            "2026-13-01 00:00:00",
            "2026-02-30 00:00:00",
            "2026/11/20 06:32:46",
        ] {
            assert_eq!(timestamp(line.as_bytes()), None, "{line}");
        }
    }
}
