//! Formats and parses durations, and parses sizes. Bytes are `f64`, and NaN means that a size is unknown.

use flarena_shared::parse;

pub use crate::output::plain as printable;
pub use crate::units::{
    in_one_unit, plural, range, rounds_to_zero, signed_size, size, Amount, GB, MB,
};

/// The formatted value, or `-` for `None`.
pub fn or_dash<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or("-".to_owned(), format)
}

/// `42 s`, `18 min`, `7.5 h`, `3.1 d`; `-` for an unknown duration.
pub fn duration(seconds: f64) -> String {
    if seconds.is_nan() {
        return "-".to_owned();
    }
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
    let size = number_and_unit(text).and_then(|(number, unit)| {
        let unit = parse::size_bytes(format!("1{unit}").as_bytes())?;
        Some(number * unit as f64)
    });
    size.ok_or_else(|| format!("`{text}` is not a size, such as 64M or 8G"))
}

/// A number of at least zero and the unit after it.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let letter = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(letter.unwrap_or(text.len()));
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, unit))
}

/// Seconds from `90 s`, `30min`, `24h`, `2 days`.
pub fn parse_duration(text: &str) -> Option<f64> {
    let (number, unit) = number_and_unit(text)?;
    let seconds = match unit {
        "s" | "sec" | "seconds" => 1.0,
        "m" | "min" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return None,
    };
    Some(number * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

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
