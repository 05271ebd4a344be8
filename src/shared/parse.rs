//! Parsers for the values that users write: booleans, numbers, sizes with a suffix. No allocation.
//!
//! They are `const`, so that the settings table can parse its defaults with them at compile time.

/// `1/true/yes/on` and `0/false/no/off` in any case.
pub const fn boolean(text: &[u8]) -> Option<bool> {
    if is_one_of(text, &["1", "true", "yes", "on"]) {
        Some(true)
    } else if is_one_of(text, &["0", "false", "no", "off"]) {
        Some(false)
    } else {
        None
    }
}

/// A whole decimal number without any other character.
pub const fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let (mut value, mut at) = (0u64, 0);
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            return None;
        }
        let Some(tens) = value.checked_mul(10) else {
            return None;
        };
        let Some(sum) = tens.checked_add((text[at] - b'0') as u64) else {
            return None;
        };
        value = sum;
        at += 1;
    }
    Some(value)
}

/// A size in bytes with an optional binary suffix: `4096`, `8K`, `512M`, `8G`, `1T`, also `8GB`, `8GiB` and `8 GB`.
pub const fn size_bytes(text: &[u8]) -> Option<u64> {
    let mut digits = 0;
    while digits < text.len() && text[digits].is_ascii_digit() {
        digits += 1;
    }
    let (count, suffix) = text.split_at(digits);
    match (number(count), unit_bytes(suffix.trim_ascii_start())) {
        (Some(count), Some(unit)) => count.checked_mul(unit),
        _ => None,
    }
}

const fn unit_bytes(suffix: &[u8]) -> Option<u64> {
    let Some((&letter, rest)) = suffix.split_first() else {
        return Some(1);
    };
    if !is_one_of(rest, &["", "b", "ib"]) {
        return None;
    }
    match letter.to_ascii_uppercase() {
        b'B' if rest.is_empty() => Some(1),
        b'K' => Some(1 << 10),
        b'M' => Some(1 << 20),
        b'G' => Some(1 << 30),
        b'T' => Some(1 << 40),
        _ => None,
    }
}

/// Whether `text` is one of `words`, in any case.
pub const fn is_one_of(text: &[u8], words: &[&str]) -> bool {
    let mut at = 0;
    while at < words.len() {
        if text.eq_ignore_ascii_case(words[at].as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

/// Defines an enum whose values are words: the text form of each, further accepted words, and a parser for any case.
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $value:ident $word:literal $(| $accepted:literal)*)*
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $value),* }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$value),*];

            pub const fn name(self) -> &'static str {
                match self { $($name::$value => $word),* }
            }

            pub const fn parse(text: &[u8]) -> Option<$name> {
                $(if $crate::parse::is_one_of(text, &[$word $(, $accepted)*]) {
                    return Some($name::$value);
                })*
                None
            }
        }
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_a_boolean_parse_and_in_any_case() {
        for yes in ["1", "true", "TRUE", "Yes", "on"] {
            assert_eq!(boolean(yes.as_bytes()), Some(true), "{yes}");
        }
        for no in ["0", "False", "no", "OFF"] {
            assert_eq!(boolean(no.as_bytes()), Some(false), "{no}");
        }
        for junk in ["", "2", "ja", "true ", "enabled"] {
            assert_eq!(boolean(junk.as_bytes()), None, "{junk}");
        }
    }

    #[test]
    fn sizes_accept_binary_suffixes_and_refuse_overflow_and_junk() {
        assert_eq!(size_bytes(b"4096"), Some(4096));
        assert_eq!(size_bytes(b"8k"), Some(8 << 10));
        assert_eq!(size_bytes(b"512MiB"), Some(512 << 20));
        assert_eq!(size_bytes(b"2GB"), Some(2 << 30));
        assert_eq!(size_bytes(b"3T"), Some(3 << 40));
        assert_eq!(size_bytes(b"2 GB"), Some(2 << 30));
        assert_eq!(size_bytes(b"7B"), Some(7));
        for junk in [
            "",
            "K",
            "-1",
            "1.5G",
            "8X",
            "8KK",
            "8BB",
            "99999999T",
            "18446744073709551616",
        ] {
            assert_eq!(size_bytes(junk.as_bytes()), None, "{junk}");
        }
    }
}
