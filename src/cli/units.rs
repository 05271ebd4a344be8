//! Sizes as text: one rule for all commands. 1 MB is 1024 * 1024 bytes, as in NVFlare's markers.

pub use flarena_shared::marker::MB;

pub const KB: f64 = 1024.0;
pub const GB: f64 = 1024.0 * MB;
const TB: f64 = 1024.0 * GB;

/// The form of a number of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Size,
    /// It has a sign, unless it rounds to zero.
    Change,
}

/// The length of a unit in bytes, and its name.
type Unit = (f64, &'static str);

/// The unit in which a reader compares numbers of this size.
fn unit(bytes: f64) -> Unit {
    match bytes.abs() {
        b if b < 0.095 * MB => (KB, "KB"),
        b if b < 4.0 * GB => (MB, "MB"),
        b if b < 4.0 * TB => (GB, "GB"),
        _ => (TB, "TB"),
    }
}

fn number(bytes: f64, (length, name): Unit, amount: Amount) -> String {
    if rounds_to_zero(bytes) {
        return "0".to_owned();
    }
    let number = bytes / length;
    let decimals = match (name, number.abs() < 9.95) {
        ("KB", false) => 0,
        ("KB", true) | ("MB", false) => 1,
        _ => 2,
    };
    match amount {
        Amount::Change => format!("{number:+.decimals$}"),
        Amount::Size => format!("{number:.decimals$}"),
    }
}

fn text(bytes: f64, amount: Amount) -> String {
    match unit(bytes) {
        _ if bytes.is_nan() => "-".to_owned(),
        unit => format!("{} {}", number(bytes, unit, amount), unit.1),
    }
}

/// `512.3 MB`, `12.40 GB`, `3.1 KB`; `-` for NaN, an unknown size.
pub fn size(bytes: f64) -> String {
    text(bytes, Amount::Size)
}

/// `+2.00 MB`, `-2.00 MB`; 0 KB has no sign.
pub fn signed_size(bytes: f64) -> String {
    text(bytes, Amount::Change)
}

/// True if [`size`] prints 0 KB.
pub fn rounds_to_zero(bytes: f64) -> bool {
    bytes.abs() < 0.05 * KB
}

/// Numbers in the unit of the largest, and that unit behind a space. If a number is unknown, or if one that is not zero
/// would be printed as 0.00, each number has its own unit.
pub fn in_one_unit<const N: usize>(bytes: [f64; N], amount: Amount) -> ([String; N], String) {
    let largest = bytes.iter().fold(0.0, |a, b| f64::max(a, b.abs()));
    let unit = unit(largest);
    let is_visible = |b: &f64| rounds_to_zero(*b) || b.abs() >= 0.005 * unit.0;
    match bytes.iter().all(is_visible) {
        true => (
            bytes.map(|b| number(b, unit, amount)),
            format!(" {}", unit.1),
        ),
        false => (bytes.map(|b| text(b, amount)), String::new()),
    }
}

/// `3.71 to 4.31 GB`, with `to` as the word between the ends.
pub fn range(low: f64, word: &str, high: f64, amount: Amount) -> String {
    let ([low, high], unit) = in_one_unit([low, high], amount);
    format!("{low} {word} {high}{unit}")
}

/// `1 round`, `3 rounds`, `2 processes`
pub fn plural(n: impl Into<i128>, noun: &str) -> String {
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    match n.into() {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}{ending}"),
    }
}

/// [`size`] of a count of bytes.
pub fn bytes(count: u64) -> String {
    size(count as f64)
}

/// [`bytes`], or `-` for an unknown size.
pub fn bytes_or_dash(count: Option<u64>) -> String {
    or_dash(count.map(bytes))
}

/// The value, or `-` without one.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_the_unit_in_which_a_reader_compares_it() {
        assert_eq!(bytes(0), "0 KB");
        assert_eq!(bytes(1024), "1.0 KB");
        assert_eq!(size(3.2 * KB), "3.2 KB");
        assert_eq!(size(52.0 * KB), "52 KB");
        assert_eq!(size(0.1 * MB), "0.10 MB");
        assert_eq!(size(5.0 * MB), "5.00 MB");
        assert_eq!(bytes(537_185_485), "512.3 MB");
        assert_eq!(bytes(3 << 30), "3072.0 MB");
        assert_eq!(size(12.4 * GB), "12.40 GB");
        assert_eq!(bytes(5 << 40), "5.00 TB");
    }

    #[test]
    fn both_ends_of_a_range_have_the_unit_of_the_larger_one() {
        let sizes = |low, high| range(low, "to", high, Amount::Size);
        assert_eq!(sizes(3796.5 * MB, 4.31 * GB), "3.71 to 4.31 GB");
        assert_eq!(sizes(48.0 * KB, 12.34 * MB), "0.05 to 12.3 MB");
        assert_eq!(sizes(0.0, 3.0 * MB), "0 to 3.00 MB");
        assert_eq!(sizes(2.0 * KB, 3.0 * MB), "2.0 KB to 3.00 MB");
        assert_eq!(sizes(f64::NAN, 3.0 * MB), "- to 3.00 MB");
        let changes = range(-96.0 * KB, "to", 0.31 * MB, Amount::Change);
        assert_eq!(changes, "-0.09 to +0.31 MB");
        let (numbers, unit) = in_one_unit([0.1 * KB, -80.0 * KB, 1.0 * KB], Amount::Change);
        assert_eq!(
            (numbers.join(" "), &*unit),
            ("+0.1 -80 +1.0".to_owned(), " KB")
        );
    }

    #[test]
    fn one_of_a_kind_is_singular() {
        let processes = |n: i32| plural(n, "process");
        assert_eq!(
            [0, 1, 2].map(processes),
            ["0 processes", "1 process", "2 processes"]
        );
    }

    #[test]
    fn an_unknown_size_is_a_dash() {
        assert_eq!(size(f64::NAN), "-");
        assert_eq!(signed_size(f64::NAN), "-");
        assert_eq!(bytes_or_dash(None), "-");
    }

    #[test]
    fn a_change_has_a_sign_unless_it_rounds_to_zero() {
        assert_eq!(signed_size(2.0 * MB), "+2.00 MB");
        assert_eq!(signed_size(-2.0 * MB), "-2.00 MB");
        assert_eq!(signed_size(-0.06 * KB), "-0.1 KB");
        for bytes in [0.0, -0.0, 0.04 * KB, -0.04 * KB] {
            assert_eq!([signed_size(bytes), size(bytes)], ["0 KB"; 2]);
        }
    }
}
