//! Reads the fields of a marker leniently: `null` and a value of another type leave the field unknown, so that they never
//! affect the other fields.

use super::{ShortHash, NAME_MAX_BYTES};

/// A bound of times and rounds. Larger ones are corrupt.
const MAX_NUMBER: f64 = 1e12;
/// No machine has an exabyte of memory, but without a limit some kernels report one of that size.
const MAX_BYTES: u64 = 1_000_000_000_000_000_000;

pub trait Field: Sized {
    fn read(name: &str, json: &str) -> Self;
}

/// A size or duration that is neither `null` nor a number from 0 on.
pub fn is_invalid(name: &str, json: &str) -> bool {
    is_quantity(name) && json != "null" && number(json).is_none()
}

fn is_quantity(name: &str) -> bool {
    name.ends_with("_bytes") || name.ends_with("_ms")
}

/// A finite number from 0 on.
fn number(json: &str) -> Option<f64> {
    let number = json.parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

impl Field for Option<f64> {
    fn read(_: &str, json: &str) -> Self {
        number(json).filter(|number| *number < MAX_NUMBER)
    }
}

impl Field for Option<i64> {
    fn read(name: &str, json: &str) -> Self {
        Option::<f64>::read(name, json).map(|number| number as i64)
    }
}

impl Field for Option<u64> {
    fn read(name: &str, json: &str) -> Self {
        let whole = json.parse().ok();
        let number = whole.or_else(|| number(json).map(|number| number as u64))?;
        Some(number).filter(|number| *number < MAX_BYTES || !is_quantity(name))
    }
}

impl Field for Option<u32> {
    fn read(name: &str, json: &str) -> Self {
        u32::try_from(Option::<u64>::read(name, json)?).ok()
    }
}

impl Field for u32 {
    fn read(name: &str, json: &str) -> Self {
        Option::<u32>::read(name, json).unwrap_or_default()
    }
}

impl Field for Option<String> {
    fn read(name: &str, json: &str) -> Self {
        let mut text = serde_json::from_str::<Option<String>>(json).ok()??;
        if name == "settings" {
            return Some(text);
        }
        text.truncate(text.floor_char_boundary(NAME_MAX_BYTES));
        Some(text).filter(|text| !text.is_empty() && text != "-")
    }
}

impl Field for String {
    fn read(name: &str, json: &str) -> Self {
        Option::<String>::read(name, json).unwrap_or_default()
    }
}

impl Field for Option<ShortHash> {
    fn read(name: &str, json: &str) -> Self {
        ShortHash::try_from(Option::<String>::read(name, json)?).ok()
    }
}
