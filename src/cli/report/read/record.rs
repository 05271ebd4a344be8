//! Reads a JSON object leniently: an unknown field is ignored, and a missing or invalid field never
//! affects other records.

use std::borrow::Cow;
use std::fmt;

use flarena_shared::marker::NAME_MAX_BYTES;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::timestamp::timestamp;
use crate::report::model::{Sample, Size, NO_NAME};

const MAX_COUNT: f64 = 1.8e19;
/// No machine has an exabyte of memory. Such a value is corrupt and would distort the charts.
const MAX_SIZE: f64 = 1e18;

pub enum Object {
    Marker(Box<Sample>),
    /// A marker with a missing or invalid field.
    Invalid(String),
    /// A log entry of another program, whose message may contain a marker.
    LogEntry {
        message: String,
        t: Option<f64>,
    },
    Other,
}

/// Reads the object at the start of the text. Returns it with its length in bytes.
pub fn read(text: &[u8]) -> serde_json::Result<(Object, usize)> {
    let mut stream = serde_json::Deserializer::from_slice(text).into_iter::<Fields>();
    match stream.next() {
        Some(fields) => fields.map(|fields| (fields.classify(), stream.byte_offset())),
        None => Ok((Object::Other, text.len())),
    }
}

/// The text of a JSON value of any type.
#[derive(Deserialize)]
#[serde(transparent)]
struct Value<'a>(#[serde(borrow)] &'a RawValue);

impl Value<'_> {
    fn number(&self) -> Option<f64> {
        let number = self.0.get().parse::<f64>();
        number.ok().filter(|number| number.is_finite())
    }

    /// A number from 0 to below `end`. Others are corrupt.
    fn below(&self, end: f64) -> Option<f64> {
        self.number().filter(|number| (0.0..end).contains(number))
    }

    fn text(&self) -> Option<String> {
        serde_json::from_str::<Option<String>>(self.0.get()).ok()?
    }

    fn name(&self) -> Option<String> {
        let mut text = self.text()?;
        text.truncate(text.floor_char_boundary(NAME_MAX_BYTES));
        Some(text).filter(|text| !text.is_empty() && text != NO_NAME)
    }

    /// The text of the field `message` of an object.
    fn inner_message(&self) -> Option<String> {
        let entry: serde_json::Value = serde_json::from_str(self.0.get()).ok()?;
        Some(entry["message"].as_str()?.to_owned())
    }
}

/// A key, borrowed from the line unless it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The fields of an object.
#[derive(Default)]
struct Fields {
    sample: Sample,
    /// The first field with an invalid value.
    invalid: Option<String>,
    message: Option<String>,
    message_t: Option<f64>,
}

impl Fields {
    fn classify(self) -> Object {
        let has_stage = !self.sample.stage.is_empty();
        let has_rss = !self.sample.sizes[Size::Rss].is_nan();
        let is_marker = has_stage && (has_rss || self.sample.seq.is_some());
        Object::Invalid(match (self.invalid, self.message) {
            (Some(field), _) if is_marker => format!("a record whose {field} is invalid"),
            _ if is_marker && !has_rss => "a record without rss_bytes".into(),
            _ if is_marker => return Object::Marker(Box::new(self.sample)),
            _ if has_rss => "a record without a stage".into(),
            (_, Some(message)) => {
                let t = self.message_t;
                return Object::LogEntry { message, t };
            }
            _ => return Object::Other,
        })
    }

    fn set(&mut self, key: &str, value: &Value) {
        let sample = &mut self.sample;
        match key {
            "v" => sample.format_version = value.number(),
            "t" => sample.t = value.below(1e12),
            "mono" => sample.mono = value.number(),
            "pid" => sample.pid = value.below(MAX_COUNT).map(|pid| pid as u32),
            "start" => sample.start = value.below(MAX_COUNT).map(|start| start as u64),
            "seq" => sample.seq = value.0.get().parse().ok(),
            "round" => sample.round = value.below(1e12).map(|round| round as i64),
            "boot" => sample.boot = value.name(),
            "job" => sample.job = value.name(),
            "proc" => sample.proc = value.name().unwrap_or_default(),
            "program" => sample.program = value.name(),
            "name" => sample.name = value.name(),
            "role" => sample.role = value.name(),
            "site" => sample.site = value.name(),
            "stage" => sample.stage = value.name().unwrap_or_default(),
            "alloc" => sample.alloc = value.name(),
            "host" => sample.host = value.name(),
            "version" => sample.library_version = value.name(),
            "settings" => sample.settings = value.text(),
            "cgroup_oom_kills" => sample.oom_kills = value.number(),
            "memory_limit_bytes" => sample.memory_limit = value.below(MAX_SIZE),
            "host_memory_bytes" => sample.host_memory = value.below(MAX_SIZE),
            "message" | "log" | "msg" | "MESSAGE" | "event" | "textPayload" | "short_message" => {
                self.message = value.text().or(self.message.take());
            }
            // Loguru's JSON.
            "record" => self.message = value.inner_message().or(self.message.take()),
            "asctime" | "time" | "timestamp" => {
                self.message_t = value
                    .text()
                    .map_or(self.message_t, |text| timestamp(text.as_bytes()));
            }
            // Microseconds, in journald's JSON.
            "__REALTIME_TIMESTAMP" => {
                let text = value.text();
                self.message_t = text.and_then(|text| Some(text.parse::<f64>().ok()? / 1e6));
            }
            _ => self.set_quantity(key, value),
        }
    }

    /// Sets a size or a time. An invalid one makes the record invalid; null counts as missing.
    fn set_quantity(&mut self, key: &str, value: &Value) {
        let sample = &mut self.sample;
        let number = value.below(MAX_SIZE);
        match key {
            "cgroup_limit_bytes" => sample.cgroup_limit = number,
            "hwm_bytes" => sample.peak_rss = number,
            "peak_bytes" => sample.recent_peak_rss = number,
            "gc_released_bytes" => sample.gc_released = number,
            "gc_live_after_bytes" => sample.gc_live_after = number,
            "gc_ms" => sample.gc_ms = number,
            "cpu_ms" => sample.cpu_ms = number,
            _ => match Size::FIELDS.iter().find(|(_, field)| *field == key) {
                Some((size, _)) => sample.sizes[*size] = number.unwrap_or(f64::NAN),
                None => return,
            },
        }
        // Without a limit some kernels report a huge one.
        let is_no_limit = key == "cgroup_limit_bytes" && value.number().is_some_and(|n| n > 0.0);
        if number.is_none() && value.0.get() != "null" && !is_no_limit {
            self.invalid.get_or_insert(key.to_owned());
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
        let mut fields = Fields::default();
        while let Some(Key(key)) = map.next_key()? {
            fields.set(&key, &map.next_value()?);
        }
        Ok(fields)
    }
}
