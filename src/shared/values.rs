//! The types of the settings' values, with their parsers and their text forms. Numbers, sizes and
//! booleans are in [`crate::parse`].

use crate::{defaults, parse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    Glibc,
    Jemalloc,
}

impl Allocator {
    pub fn name(self) -> &'static str {
        match self {
            Allocator::Glibc => "glibc",
            Allocator::Jemalloc => "jemalloc",
        }
    }

    pub fn parse(text: &[u8]) -> Option<Allocator> {
        [Allocator::Glibc, Allocator::Jemalloc]
            .into_iter()
            .find(|allocator| text.eq_ignore_ascii_case(allocator.name().as_bytes()))
    }
}

/// The answer to a large allocation that cannot fit below the memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLimit {
    Off,
    Warn,
    Fail,
}

impl AtLimit {
    pub fn name(self) -> &'static str {
        match self {
            AtLimit::Off => "off",
            AtLimit::Warn => "warn",
            AtLimit::Fail => "fail",
        }
    }

    pub const fn parse(text: &[u8]) -> Option<AtLimit> {
        if parse::is_one_of(text, &["warn"]) {
            Some(AtLimit::Warn)
        } else if parse::is_one_of(text, &["fail"]) {
            Some(AtLimit::Fail)
        } else if parse::is_one_of(text, &["off"]) {
            Some(AtLimit::Off)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Off,
    Warn,
    Info,
}

impl LogLevel {
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Off => "off",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
        }
    }

    pub const fn parse(text: &[u8]) -> Option<LogLevel> {
        if parse::is_one_of(text, &["off"]) {
            Some(LogLevel::Off)
        } else if parse::is_one_of(text, &["warn"]) {
            Some(LogLevel::Warn)
        } else if parse::is_one_of(text, &["info"]) {
            Some(LogLevel::Info)
        } else {
            None
        }
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

pub fn arena_count(text: &[u8]) -> Option<u32> {
    parse::number(text)
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| (1..=65_536).contains(n))
}

const fn number_up_to(highest: u32, text: &[u8]) -> Option<u32> {
    match parse::number(text) {
        Some(n) if n <= highest as u64 => Some(n as u32),
        _ => None,
    }
}

const fn size_between(lowest: u64, highest: u64, text: &[u8]) -> Option<u64> {
    match parse::size_bytes(text) {
        Some(n) if lowest <= n && n <= highest => Some(n),
        _ => None,
    }
}

pub const fn rounds(text: &[u8]) -> Option<u32> {
    number_up_to(u32::MAX, text)
}

pub const fn decay_ms(text: &[u8]) -> Option<u32> {
    number_up_to(defaults::DECAY_MS_HIGHEST, text)
}

pub const fn recycle_min_bytes(text: &[u8]) -> Option<u64> {
    size_between(
        defaults::RECYCLE_MIN_BYTES_LOWEST,
        defaults::RECYCLE_MIN_BYTES_HIGHEST,
        text,
    )
}

/// `off` is 0.
pub const fn sites_sample_bytes(text: &[u8]) -> Option<u64> {
    if let Some(false) = parse::boolean(text) {
        return Some(0);
    }
    size_between(
        defaults::SITES_SAMPLE_BYTES_LOWEST,
        defaults::SITES_SAMPLE_BYTES_HIGHEST,
        text,
    )
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

pub fn limit_bytes(text: &[u8]) -> Option<u64> {
    parse::size_bytes(text).filter(|&n| n > 0)
}
