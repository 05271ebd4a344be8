//! Parses the time of a log line, such as `2026-11-20 06:32:46,123`, into seconds since 1970.
//! A log names no time zone, so times are compared only within one log.

use jiff::civil::Date;
use jiff::tz::Offset;

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
    let [date, time] = [&text[..10], &text[11..]].map(str::from_utf8);
    let civil = date
        .ok()?
        .parse::<Date>()
        .ok()?
        .to_datetime(time.ok()?.parse().ok()?);
    Some(Offset::UTC.to_timestamp(civil).ok()?.as_second() as f64)
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
