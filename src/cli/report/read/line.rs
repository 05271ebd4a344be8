//! Extracts the markers from one line: JSON records, NVFlare's `[RSS]` lines, and records of
//! allocation sites, each alone or inside a line of a log.

use std::borrow::Cow;

use flarena_shared::marker::{parse_text, MemoryLine};
use flarena_shared::sites::Record;
use memchr::{memchr, memmem::find};

use super::record::{self, Object};
use super::source::LineEnd;
use super::timestamp::timestamp;
use crate::report::model::{Sample, Size, Sizes};

/// The start of a record of allocation sites.
const SITES_START: &[u8] = b"{\"kind\":\"s";
/// The start of a marker that flarena wrote.
const MARKER_START: &[u8] = b"{\"v\":";
/// Occurs in every marker after its start.
const MARKER_FIELD: &[u8] = b"_bytes\":";
const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// The data found in a line.
#[derive(Debug, Default)]
pub struct LineContent {
    pub samples: Vec<Sample>,
    pub sites: Option<Box<Record>>,
    pub memory: Option<MemoryLine>,
    /// Why a part of the line could not be read.
    pub error: Option<String>,
}

impl LineContent {
    fn of_error(error: impl Into<String>) -> Self {
        LineContent {
            error: Some(error.into()),
            ..LineContent::default()
        }
    }

    /// Adds an object. `t` is the time before it in the line.
    fn add(&mut self, object: Object, t: impl FnOnce() -> Option<f64>) {
        match object {
            Object::Marker(sample) => self.samples.push(*sample),
            Object::Invalid(error) => self.error = Some(error),
            Object::LogEntry { message, t: own } => {
                let inner = read(message.as_bytes(), LineEnd::Newline);
                let t = own.or_else(t);
                let with_time = |sample: Sample| Sample {
                    t: sample.t.or(t),
                    ..sample
                };
                self.samples
                    .extend(inner.samples.into_iter().map(with_time));
                self.sites = inner.sites.or(self.sites.take());
                self.memory = inner.memory.or(self.memory.take());
                self.error = inner.error.or(self.error.take());
            }
            Object::Other => {}
        }
    }

    /// True for most lines of a log.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
            && self.sites.is_none()
            && self.memory.is_none()
            && self.error.is_none()
    }
}

pub fn read(line: &[u8], end: LineEnd) -> LineContent {
    let plain = match memchr(ESCAPE, line) {
        None => Cow::Borrowed(line),
        Some(_) => Cow::Owned(without_control_sequences(line)),
    };
    let line = plain.trim_ascii();
    let mut content = match line.starts_with(SITES_START) {
        true => sites(line),
        false => records(line),
    };
    if content.is_empty() {
        content = text_line(line);
    }
    if let (Some(error), LineEnd::Cut) = (&mut content.error, end) {
        error.push_str("; the file may still be growing");
    }
    content
}

/// The line without the colours that loggers write to a terminal: `ESC [ 3 7 m` and its like.
fn without_control_sequences(line: &[u8]) -> Vec<u8> {
    let mut parts = line.split(|byte| *byte == ESCAPE);
    let mut plain = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let length = match part {
            // The bytes from `@` to `~` end a sequence.
            [b'[', rest @ ..] => rest.iter().position(|byte| (b'@'..=b'~').contains(byte)),
            // The title of a window, up to the bell. Without a bell, `ESC \\` ends it.
            [b']', rest @ ..] => memchr(BELL, rest).or(Some(rest.len())),
            _ => None,
        };
        let after = length.map_or(1, |length| length + 2);
        plain.extend_from_slice(part.get(after..).unwrap_or_default());
    }
    plain
}

fn sites(line: &[u8]) -> LineContent {
    match serde_json::from_slice(line) {
        Ok(record) => LineContent {
            sites: Some(record),
            ..LineContent::default()
        },
        Err(_) => LineContent::of_error("an invalid record of allocation sites"),
    }
}

/// The JSON objects of a line: one or several records, or the log entry of another program, such as NVFlare's or Docker's,
/// each also after the prefix of a log.
fn records(line: &[u8]) -> LineContent {
    let mut content = LineContent::default();
    let is_part = |text| find(text, MARKER_FIELD).is_some();
    let (mut rest, mut is_incomplete) = (line, false);
    while let Some(begin) = memchr(b'{', rest) {
        let (before, text) = rest.split_at(begin);
        is_incomplete |= is_part(before);
        rest = match record::read(text) {
            Ok((object, length)) => {
                let t = || timestamp(&line[..line.len() - text.len()]);
                content.add(object, t);
                &text[length..]
            }
            Err(_) => {
                let next = find(&text[1..], MARKER_START).map_or(text.len(), |next| 1 + next);
                let (unread, rest) = text.split_at(next);
                is_incomplete |= unread.starts_with(MARKER_START) || is_part(unread);
                rest
            }
        };
    }
    if (is_incomplete || is_part(rest)) && content.error.is_none() {
        content.error = Some(match content.samples.len() {
            0 if find(line, MARKER_START).is_none() => {
                "the end of a record whose start is missing".to_owned()
            }
            0 => "a record that is truncated or not JSON".to_owned(),
            n => format!("several records on one line: {n} read, the others are lost"),
        });
    }
    content
}

/// An `[RSS]` line: NVFlare's own, anywhere in its logs, or flarena's text form; or a `[MEM]` line.
fn text_line(line: &[u8]) -> LineContent {
    let Some(at) = find(line, b"[RSS] ").or_else(|| find(line, b"[MEM] ")) else {
        return LineContent::default();
    };
    let Ok(text) = std::str::from_utf8(&line[at..]) else {
        return LineContent::of_error("an [RSS] line that is not UTF-8");
    };
    if text.starts_with("[MEM] ") {
        return LineContent {
            memory: MemoryLine::parse(text),
            ..LineContent::default()
        };
    }
    let Some(marker) = parse_text(text) else {
        // Another program's `[RSS] `, such as that of a news feed, is ignored.
        let is_marker = text.contains(" s=") && text.contains(" r=");
        return match is_marker {
            true => LineContent::of_error("an [RSS] line that is truncated or garbled"),
            false => LineContent::default(),
        };
    };
    let mut sizes = Sizes::UNKNOWN;
    sizes[Size::Rss] = marker.rss_bytes as f64;
    let sample = Sample {
        t: timestamp(&line[..at]),
        proc: marker.proc.to_owned(),
        site: marker.site.map(str::to_owned),
        round: marker.round,
        stage: marker.stage.to_owned(),
        sizes,
        ..Sample::default()
    };
    LineContent {
        samples: vec![sample],
        ..LineContent::default()
    }
}
