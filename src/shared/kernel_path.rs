//! Paths as the kernel tells them, in `/proc/PID/exe` and `maps`.

const DELETED: &str = " (deleted)";

/// The path of a file that was there: of one that an upgrade replaced or removed the kernel says so behind it.
pub fn path(told: &str) -> &str {
    told.strip_suffix(DELETED).unwrap_or(told)
}

pub fn is_deleted(told: &str) -> bool {
    told.ends_with(DELETED)
}

/// The last part of the path.
pub fn file_name(told: &str) -> &str {
    path(told).rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_name() {
        let told = "/usr/bin/python3.11 (deleted)";
        assert!(is_deleted(told) && !is_deleted(path(told)));
        assert_eq!(path(told), "/usr/bin/python3.11");
        assert_eq!(file_name(told), "python3.11");
        assert_eq!(file_name("/a b/c (x)"), "c (x)");
    }
}
