//! Parses the time of a log line, such as `2026-11-20 06:32:46,123`, into seconds since 1970.
//! A log names no time zone, so times are compared only within one log.

use crate::report::calendar::days_since_1970;

/// The first time in the text.
pub fn timestamp(text: &[u8]) -> Option<f64> {
    const LENGTH: usize = "2026-11-20 06:32:46".len();
    text.windows(LENGTH).enumerate().find_map(|(at, window)| {
        let seconds = whole_seconds(window)?;
        Some(seconds + fraction(&text[at + LENGTH..]))
    })
}

fn whole_seconds(text: &[u8]) -> Option<f64> {
    let pattern = b"0000-00-00?00:00:00";
    let matches = |(c, p): (&u8, &u8)| match p {
        b'0' => c.is_ascii_digit(),
        b'?' => matches!(c, b' ' | b'T' | b'_'),
        _ => c == p,
    };
    if !text.iter().zip(pattern).all(matches) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to]
            .iter()
            .fold(0i64, |sum, digit| 10 * sum + i64::from(digit - b'0'))
    };
    let (month, day) = (number(5, 7), number(8, 10));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_since_1970(number(0, 4), month, day);
    Some((days * 86400 + number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19)) as f64)
}

fn fraction(text: &[u8]) -> f64 {
    if !matches!(text.first(), Some(b',' | b'.')) {
        return 0.0;
    }
    let digits = text[1..].iter().take_while(|c| c.is_ascii_digit()).take(9);
    digits
        .fold((0.0, 0.1), |(sum, unit), c| {
            (sum + unit * f64::from(c - b'0'), unit / 10.0)
        })
        .0
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
        for line in ["", "12:00:00", "2026-13-01 00:00:00", "2026/11/20 06:32:46"] {
            assert_eq!(timestamp(line.as_bytes()), None, "{line}");
        }
    }
}
