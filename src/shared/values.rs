//! The types of the settings' values, with their parsers and their text forms. Numbers, sizes and
//! booleans are in [`crate::parse`].

use crate::parse;
use crate::parse::words;

words! {
    pub enum Allocator {
        Glibc "glibc"
        Jemalloc "jemalloc"
    }
}

words! {
    /// The answer to a large allocation that cannot fit below the memory limit.
    pub enum AtLimit {
        Off "off"
        Warn "warn"
        Fail "fail"
    }
}

words! {
    #[derive(PartialOrd, Ord)]
    pub enum LogLevel {
        Off "off"
        Warn "warn"
        Info "info"
    }
}

/// The text form of a switch, whichever word the user wrote.
pub fn on_off(value: bool) -> &'static str {
    if value {
        "on"
    } else {
        "off"
    }
}

/// `auto` or `off`; also the words of a boolean, because users try them.
pub const fn auto(text: &[u8]) -> Option<bool> {
    if parse::is_one_of(text, &["auto"]) {
        return Some(true);
    }
    parse::boolean(text)
}

pub fn auto_off(value: bool) -> &'static str {
    if value {
        "auto"
    } else {
        "off"
    }
}

pub const fn number_between(lowest: u32, highest: u32, text: &[u8]) -> Option<u32> {
    match parse::number(text) {
        Some(n) if lowest as u64 <= n && n <= highest as u64 => Some(n as u32),
        _ => None,
    }
}

pub const fn size_between(lowest: u64, highest: u64, text: &[u8]) -> Option<u64> {
    match parse::size_bytes(text) {
        Some(n) if lowest <= n && n <= highest => Some(n),
        _ => None,
    }
}

/// `off` is 0.
pub const fn size_or_off_between(lowest: u64, highest: u64, text: &[u8]) -> Option<u64> {
    match parse::boolean(text) {
        Some(false) => Some(0),
        _ => size_between(lowest, highest, text),
    }
}

pub fn size_or_off(bytes: u64) -> String {
    match bytes {
        0 => "off".to_owned(),
        bytes => size(bytes),
    }
}

/// `512K`: as a user would write it, and exact.
pub fn size(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let whole = |(shift, _): &(u32, &str)| bytes >= 1 << shift && bytes.trailing_zeros() >= *shift;
    match units.into_iter().find(whole) {
        Some((shift, letter)) => format!("{}{letter}", bytes >> shift),
        None => bytes.to_string(),
    }
}
