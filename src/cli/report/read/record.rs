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

pub enum Object<'a> {
    Marker(Box<Sample<'a>>),
    /// A marker with a missing or invalid field.
    Invalid(String),
    /// A log entry of another program, whose message may contain a marker.
    LogEntry {
        message: Cow<'a, str>,
        t: Option<f64>,
    },
    Other,
}

pub fn read(line: &[u8]) -> serde_json::Result<Object<'_>> {
    serde_json::from_slice::<Fields>(line).map(Fields::classify)
}

/// Reads the object at the start of the line. Returns it with its length in bytes.
pub fn read_prefix(line: &[u8]) -> serde_json::Result<(Object<'_>, usize)> {
    let mut stream = serde_json::Deserializer::from_slice(line).into_iter::<Fields>();
    match stream.next() {
        Some(fields) => fields.map(|fields| (fields.classify(), stream.byte_offset())),
        None => Ok((Object::Other, line.len())),
    }
}

/// The text of a JSON value of any type.
#[derive(Deserialize)]
#[serde(transparent)]
struct Value<'a>(#[serde(borrow)] &'a RawValue);

impl<'a> Value<'a> {
    fn number(&self) -> Option<f64> {
        let number = self.0.get().parse::<f64>();
        number.ok().filter(|number| number.is_finite())
    }

    fn text(&self) -> Option<Cow<'a, str>> {
        serde_json::from_str::<Text>(self.0.get())
            .ok()
            .map(|text| text.0)
    }

    fn name(&self) -> Option<Cow<'a, str>> {
        let mut text = self.text()?;
        if text.len() > NAME_MAX_BYTES {
            text = Cow::Owned(text[..text.floor_char_boundary(NAME_MAX_BYTES)].to_owned());
        }
        Some(text).filter(|text| !text.is_empty() && text != NO_NAME)
    }

    /// The text of the field `message` of an object.
    fn inner_message(&self) -> Option<Cow<'a, str>> {
        let entry = serde_json::from_str::<Entry>(self.0.get()).ok()?;
        entry.message.text()
    }
}

/// A text, borrowed from the line unless it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    message: Value<'a>,
}

/// The fields of an object.
#[derive(Default)]
struct Fields<'a> {
    sample: Sample<'a>,
    /// The first field with an invalid value.
    invalid: Option<&'static str>,
    message: Option<Cow<'a, str>>,
    message_t: Option<f64>,
}

impl<'a> Fields<'a> {
    fn classify(self) -> Object<'a> {
        let has_stage = self.sample.stage != NO_NAME;
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

    fn set(&mut self, key: &str, value: &Value<'a>) {
        let sample = &mut self.sample;
        match key {
            "v" => sample.format_version = value.number().unwrap_or(1.0),
            "mono" => sample.mono = value.number(),
            "boot" => sample.boot = value.name(),
            "job" => sample.job = value.name(),
            "memory_limit_bytes" => sample.memory_limit = value.number().filter(is_size),
            "host_memory_bytes" => sample.host_memory = value.number().filter(is_size),
            "t" => sample.t = value.number().filter(|t| (0.0..1e12).contains(t)),
            "pid" => sample.pid = value.number().filter(is_count).map(|pid| pid as u32),
            "cgroup_oom_kills" => sample.oom_kills = value.number().unwrap_or(f64::NAN),
            "start" => sample.start = value.number().filter(is_count).map(|start| start as u64),
            "seq" => sample.seq = value.0.get().parse().ok(),
            "round" => sample.round = value.number().filter(is_round).map(|round| round as i64),
            "proc" => sample.proc = value.name().unwrap_or(NO_NAME.into()),
            "program" => sample.program = value.name(),
            "name" => sample.name = value.name(),
            "role" => sample.role = value.name(),
            "site" => sample.site = value.name(),
            "alloc" => sample.alloc = value.name(),
            "host" => sample.host = value.name(),
            "version" => sample.library_version = value.name(),
            "settings" => sample.settings = value.text(),
            "stage" => sample.stage = value.name().unwrap_or(sample.stage.clone()),
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

    /// Sets a size or a time. An invalid one makes the record invalid; null and a missing one stay NaN.
    fn set_quantity(&mut self, key: &str, value: &Value) {
        let sample = &mut self.sample;
        let size = Size::FIELDS.into_iter().find(|(_, field)| *field == key);
        let (slot, field) = match (key, size) {
            (_, Some((size, field))) => (&mut sample.sizes[size], field),
            ("cgroup_limit_bytes", _) => (&mut sample.cgroup_limit, "cgroup_limit_bytes"),
            ("hwm_bytes", _) => (&mut sample.peak_rss, "hwm_bytes"),
            ("gc_released_bytes", _) => (&mut sample.gc_released, "gc_released_bytes"),
            ("peak_bytes", _) => (&mut sample.recent_peak_rss, "peak_bytes"),
            ("gc_live_after_bytes", _) => (&mut sample.gc_live_after, "gc_live_after_bytes"),
            ("gc_ms", _) => (&mut sample.gc_ms, "gc_ms"),
            ("cpu_ms", _) => (&mut sample.cpu_ms, "cpu_ms"),
            _ => return,
        };
        match value.number() {
            Some(bytes) if is_size(&bytes) => *slot = bytes,
            None if value.0.get() == "null" => {}
            // Without a limit some kernels report a huge one.
            Some(bytes) if bytes > 0.0 && key == "cgroup_limit_bytes" => {}
            _ => self.invalid = self.invalid.or(Some(field)),
        }
    }
}

fn is_count(number: &f64) -> bool {
    (0.0..1.8e19).contains(number)
}

/// No machine has an exabyte of memory. Such a value is corrupt and would distort the charts.
fn is_size(number: &f64) -> bool {
    (0.0..1e18).contains(number)
}

fn is_round(number: &f64) -> bool {
    (0.0..1e12).contains(number)
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
        let mut fields = Fields::default();
        while let Some(Text(key)) = map.next_key()? {
            fields.set(&key, &map.next_value()?);
        }
        Ok(fields)
    }
}
