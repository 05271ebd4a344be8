//! Reads a JSON object leniently: an unknown field is ignored, and a missing or invalid field never
//! affects other records.

use std::borrow::Cow;
use std::fmt;

use flarena_shared::marker::{is_invalid, Marker};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::line::{self, Part};
use crate::report::units::timestamp;

/// The fields of an object: a marker, or the log entry of another program, whose message may contain one.
#[derive(Default)]
pub struct Object {
    marker: Marker,
    /// The first field with an invalid value.
    invalid: Option<String>,
    message: Option<String>,
    message_t: Option<f64>,
}

/// Reads the object at the start of the text. Returns it with its length in bytes.
pub fn read(text: &[u8]) -> serde_json::Result<(Object, usize)> {
    let mut stream = serde_json::Deserializer::from_slice(text).into_iter();
    let object = stream.next().unwrap_or_else(|| Ok(Object::default()))?;
    Ok((object, stream.byte_offset()))
}

fn text(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// A key, borrowed from the line unless it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl Object {
    /// The marker, or the field that is missing or invalid, or the parts of the message of a log entry. Its time counts for
    /// markers without one; an entry without a time has that of the text before it.
    pub fn parts(self, before: &[u8]) -> Vec<Part> {
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
                let mut parts = line::parts(message.as_bytes());
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
                self.message = text(json).or(self.message.take());
            }
            // Loguru's JSON.
            "record" => {
                let entry: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
                let message = entry["message"].as_str().map(str::to_owned);
                self.message = message.or(self.message.take());
            }
            "asctime" | "time" | "timestamp" => {
                let t = text(json).and_then(|text| timestamp(text.as_bytes()));
                self.message_t = t.or(self.message_t);
            }
            // Microseconds, in journald's JSON.
            "__REALTIME_TIMESTAMP" => {
                let t = text(json).and_then(|text| text.parse::<f64>().ok());
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
