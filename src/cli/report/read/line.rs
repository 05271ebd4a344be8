//! Extracts the markers from one line: JSON records, NVFlare's `[RSS]` lines, and records of
//! allocation sites, each alone or inside a line of a log.

use console::strip_ansi_codes;
use flarena_shared::marker::{parse_text, Marker};
use flarena_shared::sites::Record;
use memchr::{memchr, memmem::find};

use super::record;
use crate::report::units::timestamp;

/// The start of a record of allocation sites.
const SITES_START: &[u8] = b"{\"kind\":\"s";
/// The start of a marker that flarena wrote.
const MARKER_START: &[u8] = b"{\"v\":";
/// Occurs in every marker after its start.
const MARKER_FIELD: &[u8] = b"_bytes\":";
const ESCAPE: u8 = 0x1b;

/// A part of a line. Most lines of a log have none.
#[derive(Debug)]
pub enum Part {
    Marker(Box<Marker>),
    /// A `[MEM]` line, which completes the marker before it.
    Memory(Box<Marker>),
    Sites(Box<Record>),
    /// Why a part of the line could not be read.
    Error(String),
}

/// The parts of a line or of the message of a log entry.
pub fn parts(line: &[u8]) -> Vec<Part> {
    // Loggers write colours for a terminal.
    let plain = memchr(ESCAPE, line).map(|_| {
        let text = String::from_utf8_lossy(line);
        strip_ansi_codes(&text).into_owned()
    });
    let line = plain.as_ref().map_or(line, String::as_bytes).trim_ascii();
    if line.starts_with(SITES_START) {
        return vec![match serde_json::from_slice(line) {
            Ok(record) => Part::Sites(record),
            Err(_) => Part::Error("an invalid record of allocation sites".to_owned()),
        }];
    }
    let mut parts = records(line);
    if parts.is_empty() {
        parts.extend(text_line(line));
    }
    parts
}

/// The JSON objects of a line: one or several records, or the log entry of another program, such as NVFlare's or Docker's,
/// each also after the prefix of a log.
fn records(line: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    let is_lost =
        |text: &[u8]| text.starts_with(MARKER_START) || find(text, MARKER_FIELD).is_some();
    let (mut rest, mut is_incomplete) = (line, false);
    while let Some(begin) = memchr(b'{', rest) {
        let (before, text) = rest.split_at(begin);
        is_incomplete |= is_lost(before);
        rest = match record::read(text) {
            Ok((object, length)) => {
                parts.extend(object.parts(&line[..line.len() - text.len()]));
                &text[length..]
            }
            Err(_) => {
                let next = find(&text[1..], MARKER_START).map_or(text.len(), |next| 1 + next);
                is_incomplete |= is_lost(&text[..next]);
                &text[next..]
            }
        };
    }
    let has_error = parts.iter().any(|part| matches!(part, Part::Error(_)));
    if (is_incomplete || is_lost(rest)) && !has_error {
        let markers = parts.iter().filter(|part| matches!(part, Part::Marker(_)));
        parts.push(Part::Error(match markers.count() {
            0 => "a record that is truncated or not JSON".to_owned(),
            n => format!("several records on one line: {n} read, the others are lost"),
        }));
    }
    parts
}

/// An `[RSS]` line: NVFlare's own, anywhere in its logs, or flarena's text form; or a `[MEM]` line.
fn text_line(line: &[u8]) -> Option<Part> {
    let at = find(line, b"[RSS] ").or_else(|| find(line, b"[MEM] "))?;
    let Ok(text) = std::str::from_utf8(&line[at..]) else {
        return Some(Part::Error("an [RSS] line that is not UTF-8".to_owned()));
    };
    if text.starts_with("[MEM]") {
        return Some(Part::Memory(Box::new(Marker::from_memory_line(text)?)));
    }
    // Another program's `[RSS] `, such as that of a news feed, is ignored.
    let is_marker = text.contains(" s=") && text.contains(" r=");
    let marker = parse_text(text).map(|marker| {
        let t = timestamp(&line[..at]);
        Part::Marker(Box::new(Marker { t, ..marker }))
    });
    let error = "an [RSS] line that is truncated or garbled";
    marker.or_else(|| is_marker.then(|| Part::Error(error.to_owned())))
}
