//! Extracts the markers from one line: JSON records, NVFlare's `[RSS]` lines, and records of
//! allocation sites, each alone or inside a line of a log.

use std::borrow::Cow;

use flarena_shared::marker::{parse_text, MemoryLine};
use flarena_shared::sites::Record;
use memchr::{memchr, memmem::find};

use super::record;
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
pub struct LineContent<'a> {
    pub samples: Vec<Sample<'a>>,
    pub sites: Option<Box<Record>>,
    pub memory: Option<MemoryLine>,
    /// Why a part of the line could not be read.
    pub error: Option<String>,
}

impl<'a> LineContent<'a> {
    fn of_sample(sample: Sample<'a>) -> Self {
        LineContent {
            samples: vec![sample],
            ..LineContent::default()
        }
    }

    fn of_error(error: impl Into<String>) -> Self {
        LineContent {
            error: Some(error.into()),
            ..LineContent::default()
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

pub fn read(line: &[u8], end: LineEnd) -> LineContent<'_> {
    match memchr(ESCAPE, line) {
        None => read_plain(line, end),
        Some(_) => into_owned(read_plain(&without_control_sequences(line), end), None),
    }
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

fn read_plain(line: &[u8], end: LineEnd) -> LineContent<'_> {
    let line = line.trim_ascii();
    let content = if line.starts_with(SITES_START) {
        sites(line)
    } else if line.starts_with(b"{") {
        object(line)
    } else if let Some(at) = find(line, MARKER_START) {
        joined_records(line, at)
    } else if find(line, MARKER_FIELD).is_some() {
        LineContent::of_error("the end of a record whose start is missing")
    } else {
        text_line(line)
    };
    let with_hint = |error| match end {
        LineEnd::Newline => error,
        LineEnd::Cut => format!("{error}; the file may still be growing"),
    };
    LineContent {
        error: content.error.map(with_hint),
        ..content
    }
}

fn sites(line: &[u8]) -> LineContent<'_> {
    match serde_json::from_slice(line) {
        Ok(record) => LineContent {
            sites: Some(record),
            ..LineContent::default()
        },
        Err(_) => LineContent::of_error("an invalid record of allocation sites"),
    }
}

fn object(line: &[u8]) -> LineContent<'_> {
    match record::read(line) {
        Ok(record::Object::Marker(sample)) => LineContent::of_sample(*sample),
        Ok(record::Object::Invalid(error)) => LineContent::of_error(error),
        // A log in JSON, such as NVFlare's or Docker's: the logged line is inside.
        Ok(record::Object::LogEntry { message, t }) => {
            into_owned(read(message.as_bytes(), LineEnd::Newline), t)
        }
        Ok(record::Object::Other) => LineContent::default(),
        Err(_) => match find(line, MARKER_START) {
            Some(at) => joined_records(line, at),
            None => text_line(line),
        },
    }
}

/// Several records on one line, or records after the prefix of a log.
fn joined_records(line: &[u8], first: usize) -> LineContent<'_> {
    let mut content = LineContent::default();
    let mut is_incomplete = find(&line[..first], MARKER_FIELD).is_some();
    let mut at = first;
    loop {
        let after_start = at + MARKER_START.len();
        let next = find(&line[after_start..], MARKER_START).map(|more| after_start + more);
        let end = next.unwrap_or(line.len());
        match record::read_prefix(&line[at..end]) {
            Ok((record::Object::Marker(sample), length)) => {
                content.samples.push(*sample);
                is_incomplete |= find(&line[at + length..end], MARKER_FIELD).is_some();
            }
            Ok((record::Object::Invalid(error), _)) => content.error = Some(error),
            Ok(_) => {}
            Err(_) => is_incomplete = true,
        }
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    if is_incomplete && content.error.is_none() {
        content.error = Some(match content.samples.len() {
            0 => "a record that is truncated or not JSON".to_owned(),
            n => format!("several records on one line: {n} read, the others are lost"),
        });
    }
    content
}

/// A copy that does not borrow from the buffer that held the inner line.
fn into_owned<'a>(inner: LineContent<'_>, t: Option<f64>) -> LineContent<'a> {
    let owned = |mut sample: Sample<'_>| {
        sample.t = sample.t.or(t);
        sample.into_owned()
    };
    LineContent {
        samples: inner.samples.into_iter().map(owned).collect(),
        sites: inner.sites,
        memory: inner.memory,
        error: inner.error,
    }
}

/// The part of a line that the container runtime (CRI) has divided, and whether more follows:
/// `2026-03-01T09:00:00.1Z stderr P ...`. The first part keeps its time.
pub fn divided(line: &[u8]) -> Option<(usize, bool)> {
    const STREAMS: [&[u8]; 2] = [b" stdout ", b" stderr "];
    let after_time = memchr(b' ', line)?;
    let tag = after_time + STREAMS[0].len();
    let is_stream = STREAMS
        .iter()
        .any(|stream| line[after_time..].starts_with(stream));
    let content = line.get(tag..)?;
    let more_follows = match content {
        [b'P', b' ', ..] => true,
        [b'F', b' ', ..] => false,
        _ => return None,
    };
    is_stream.then_some((tag + 2, more_follows))
}

/// An `[RSS]` line: NVFlare's own, anywhere in its logs, or flarena's text form; or a `[MEM]` line.
fn text_line(line: &[u8]) -> LineContent<'_> {
    let Some(at) = find(line, b"[RSS] ").or_else(|| find(line, b"[MEM] ")) else {
        return LineContent::default();
    };
    // A JSON log behind the prefix of another log, such as that of kubectl, CRI or journald.
    if let Some(begin) = memchr(b'{', &line[..at])
        && let Ok((record::Object::LogEntry { message, t }, _)) =
            record::read_prefix(&line[begin..])
    {
        let t = t.or_else(|| timestamp(&line[..begin]));
        return into_owned(read(message.as_bytes(), LineEnd::Newline), t);
    }
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
    LineContent::of_sample(Sample {
        proc: Cow::Borrowed(marker.proc),
        site: marker.site.map(Cow::Borrowed),
        round: marker.round,
        stage: Cow::Borrowed(marker.stage),
        t: timestamp(&line[..at]),
        sizes,
        ..Sample::default()
    })
}
