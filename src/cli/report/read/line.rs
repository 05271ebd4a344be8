//! Extracts the markers from one line: JSON records, NVFlare's `[RSS]` lines, and records of
//! allocation sites, each alone or inside a line of a log.

use std::borrow::Cow;
use std::fmt;

use console::strip_ansi_codes;
use flarena_shared::marker::{is_invalid, parse_text, Marker};
use flarena_shared::sites::Record;
use memchr::{memchr, memmem::find};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;

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
        rest = match object(text) {
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

/// The fields of an object: a marker, or the log entry of another program, whose message may contain one.
#[derive(Default)]
struct Object {
    marker: Marker,
    /// The first field with an invalid value.
    invalid: Option<String>,
    message: Option<String>,
    message_t: Option<f64>,
}

/// Reads the object at the start of the text leniently: an unknown field is ignored, and a missing or invalid field never affects
/// other records. Returns it with its length in bytes.
fn object(text: &[u8]) -> serde_json::Result<(Object, usize)> {
    let mut stream = serde_json::Deserializer::from_slice(text).into_iter();
    let object = stream.next().unwrap_or_else(|| Ok(Object::default()))?;
    Ok((object, stream.byte_offset()))
}

fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// A key, borrowed from the line unless it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl Object {
    /// The marker, or the field that is missing or invalid, or the parts of the message of a log entry. Its time counts for
    /// markers without one; an entry without a time has that of the text before it.
    fn parts(self, before: &[u8]) -> Vec<Part> {
        let has_rss = self.marker.rss_bytes.is_some();
        let has_stage = !self.marker.stage.is_empty();
        let is_marker = has_stage && (has_rss || self.marker.seq.is_some());
        let error = match self.invalid {
            Some(field) if is_marker => format!("a record whose {field} is invalid"),
            _ if is_marker && has_rss => return vec![Part::Marker(Box::new(self.marker))],
            _ if is_marker => "a record without rss_bytes".to_owned(),
            _ if has_rss => "a record without a stage".to_owned(),
            _ => {
                let message = self.message.unwrap_or_default();
                let mut parts = parts(message.as_bytes());
                for part in &mut parts {
                    if let Part::Marker(marker) = part {
                        let t = marker.t.or(self.message_t);
                        marker.t = t.or_else(|| timestamp(before));
                    }
                }
                return parts;
            }
        };
        vec![Part::Error(error)]
    }

    fn set(&mut self, key: &str, value: &RawValue) {
        let json = value.get();
        if self.marker.set(key, json) {
            if is_invalid(key, json) {
                self.invalid.get_or_insert(key.to_owned());
            }
            return;
        }
        // Of the log entry of another program.
        match key {
            "message" | "log" | "msg" | "MESSAGE" | "event" | "textPayload" | "short_message" => {
                self.message = string(json).or(self.message.take());
            }
            // Loguru's JSON.
            "record" => {
                let entry: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
                let message = entry["message"].as_str().map(str::to_owned);
                self.message = message.or(self.message.take());
            }
            "asctime" | "time" | "timestamp" => {
                let t = string(json).and_then(|text| timestamp(text.as_bytes()));
                self.message_t = t.or(self.message_t);
            }
            // Microseconds, in journald's JSON.
            "__REALTIME_TIMESTAMP" => {
                let t = string(json).and_then(|text| text.parse::<f64>().ok());
                self.message_t = t.map(|t| t / 1e6).or(self.message_t);
            }
            _ => {}
        }
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object::default())
    }
}

impl<'de> Visitor<'de> for Object {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<Object, M::Error> {
        while let Some(Key(key)) = map.next_key()? {
            self.set(&key, map.next_value()?);
        }
        Ok(self)
    }
}
