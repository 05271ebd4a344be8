//! Sizes as text. 1 MB is 1024 * 1024 bytes, as in NVFlare's markers.

const STEPS: [(&str, u64); 4] = [
    ("TB", 1 << 40),
    ("GB", 1 << 30),
    ("MB", 1 << 20),
    ("KB", 1 << 10),
];

/// `512.3 MB`
pub fn bytes(count: u64) -> String {
    match STEPS.iter().find(|(_, step)| count >= *step) {
        Some((name, step)) => format!("{:.1} {name}", count as f64 / *step as f64),
        None => format!("{count} B"),
    }
}

/// `512.3 MB`, or `-` for an unknown size.
pub fn bytes_or_dash(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_uses_the_largest_unit_that_is_not_larger() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KB");
        assert_eq!(bytes(537_185_485), "512.3 MB");
        assert_eq!(bytes(8 << 30), "8.0 GB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TB");
    }
}
