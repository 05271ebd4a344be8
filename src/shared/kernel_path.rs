//! Paths as the kernel writes them in `/proc/PID/exe` and `maps`. The kernel appends
//! ` (deleted)` to the path of a file that was removed or replaced.

const DELETED: &str = " (deleted)";

/// The path without the suffix.
pub fn path(text: &str) -> &str {
    text.strip_suffix(DELETED).unwrap_or(text)
}

pub fn is_deleted(text: &str) -> bool {
    text.ends_with(DELETED)
}

/// The last component of the path.
pub fn file_name(text: &str) -> &str {
    path(text).rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_file_keeps_its_path_and_name() {
        let text = "/usr/bin/python3.11 (deleted)";
        assert!(is_deleted(text) && !is_deleted(path(text)));
        assert_eq!(path(text), "/usr/bin/python3.11");
        assert_eq!(file_name(text), "python3.11");
        assert_eq!(file_name("/a b/c (x)"), "c (x)");
    }
}
