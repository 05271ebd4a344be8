//! Formats and parses durations, and parses sizes. Bytes are `f64`.

use flarena_shared::parse;
use jiff::{Span, SpanRelativeTo, Unit};

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
}
