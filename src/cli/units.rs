//! Sizes as text: one rule for all commands. 1 MB is 1024 * 1024 bytes, as in NVFlare's markers.

pub use flarena_shared::marker::MB;

pub const KB: f64 = 1024.0;
pub const GB: f64 = 1024.0 * MB;
const TB: f64 = 1024.0 * GB;

/// `512.3 MB`, `12.40 GB`, `3.1 KB`; `-` for NaN, an unknown size.
pub fn size(bytes: f64) -> String {
    match bytes.abs() {
        b if b.is_nan() => "-".to_owned(),
        b if rounds_to_zero(b) => "0 KB".to_owned(),
        b if b < 9.95 * KB => format!("{:.1} KB", bytes / KB),
        b if b < 0.095 * MB => format!("{:.0} KB", bytes / KB),
        b if b < 9.95 * MB => format!("{:.2} MB", bytes / MB),
        b if b < 4.0 * GB => format!("{:.1} MB", bytes / MB),
        b if b < 4.0 * TB => format!("{:.2} GB", bytes / GB),
        _ => format!("{:.2} TB", bytes / TB),
    }
}

/// True if [`size`] prints 0 KB.
pub fn rounds_to_zero(bytes: f64) -> bool {
    bytes.abs() < 0.05 * KB
}

/// `+2.00 MB`, `-2.00 MB`; 0 KB has no sign.
pub fn signed_size(bytes: f64) -> String {
    let sign = match () {
        () if bytes.is_nan() || rounds_to_zero(bytes) => "",
        () if bytes < 0.0 => "-",
        () => "+",
    };
    format!("{sign}{}", size(bytes.abs()))
}

/// [`size`] of a count of bytes.
pub fn bytes(count: u64) -> String {
    size(count as f64)
}

/// [`bytes`], or `-` for an unknown size.
pub fn bytes_or_dash(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), bytes)
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
