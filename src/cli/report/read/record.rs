//! Reads a JSON object leniently: an unknown field is ignored, and a missing or invalid field never
//! affects other records.

use std::borrow::Cow;
use std::fmt;

use flarena_shared::marker::NAME_MAX_BYTES;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;

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

/// A JSON value of any type.
enum Value<'a> {
    Null,
    Number(f64),
    Integer(u64),
    Text(Cow<'a, str>),
    /// An object, with the text of its field `message`.
    Object(Option<Cow<'a, str>>),
    Other,
}

impl<'a> Value<'a> {
    fn number(&self) -> Option<f64> {
        match *self {
            Value::Number(number) => Some(number),
            Value::Integer(number) => Some(number as f64),
            Value::Null | Value::Text(_) | Value::Object(_) | Value::Other => None,
        }
    }

    fn integer(&self) -> Option<u64> {
        match *self {
            Value::Integer(number) => Some(number),
            Value::Null | Value::Number(_) | Value::Text(_) | Value::Object(_) | Value::Other => {
                None
            }
        }
    }

    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Value::Text(text) => Some(text),
            Value::Null
            | Value::Number(_)
            | Value::Integer(_)
            | Value::Object(_)
            | Value::Other => None,
        }
    }

    fn inner_message(self) -> Option<Cow<'a, str>> {
        match self {
            Value::Object(message) => message,
            Value::Null | Value::Number(_) | Value::Integer(_) | Value::Text(_) | Value::Other => {
                None
            }
        }
    }

    fn name(self) -> Option<Cow<'a, str>> {
        let mut text = self.text()?;
        if text.len() > NAME_MAX_BYTES {
            text = Cow::Owned(text[..text.floor_char_boundary(NAME_MAX_BYTES)].to_owned());
        }
        Some(text).filter(|text| !text.is_empty() && text != NO_NAME)
    }
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

    fn set(&mut self, key: &str, value: Value<'a>) {
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
            "seq" => sample.seq = value.integer(),
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
                if let Value::Text(text) = value {
                    self.message_t = timestamp(text.as_bytes());
                }
            }
            // Microseconds, in journald's JSON.
            "__REALTIME_TIMESTAMP" => {
                let text = value.text();
                self.message_t = text.and_then(|text| Some(text.parse::<f64>().ok()? / 1e6));
            }
            _ => self.set_quantity(key, &value),
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
            None if matches!(value, Value::Null) => {}
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
        while let Some(Key(key)) = map.next_key()? {
            fields.set(&key, map.next_value()?);
        }
        Ok(fields)
    }
}

/// The name of a field, borrowed from the line unless it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value<'de>, E> {
        Ok(Value::Other)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Integer(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Value<'de>, S::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Value<'de>, M::Error> {
        let mut message = None;
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                "message" => message = map.next_value::<Value>()?.text(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(message))
    }
}
