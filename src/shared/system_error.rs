//! What the system says of an error.

use std::io;

/// Without Rust's `(os error 2)`. Allocates.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_number() {
        assert_eq!(
            reason(&io::Error::from_raw_os_error(2)),
            "No such file or directory"
        );
    }
}
