//! Parses the time of a log line, such as `2026-11-20 06:32:46,123`, into seconds since 1970.
//! A log names no time zone, so times are compared only within one log.

use jiff::civil::DateTime;
use jiff::tz::Offset;

const LENGTH: usize = "2026-11-20 06:32:46".len();

/// The first time in the text.
pub fn timestamp(text: &[u8]) -> Option<f64> {
    (0..text.len().saturating_sub(LENGTH - 1)).find_map(|at| seconds(&text[at..]))
}

/// The time at the start of the text.
fn seconds(text: &[u8]) -> Option<f64> {
    if !(text[4] == b'-' && text[13] == b':' && matches!(text[10], b' ' | b'T')) {
        return None;
    }
    let digits = match &text[LENGTH..] {
        [b',' | b'.', rest @ ..] => rest.iter().take_while(|c| c.is_ascii_digit()).count(),
        _ => 0,
    };
    let fraction = if digits > 0 { 1 + digits.min(9) } else { 0 };
    let time = str::from_utf8(&text[..LENGTH + fraction]).ok()?;
    let time = Offset::UTC.to_timestamp(time.parse::<DateTime>().ok()?);
    Some(time.ok()?.as_microsecond() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

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
