//! The answer of a process: a JSON object. It is kept unchanged, because the library may be older
//! or newer than the command: unknown fields are printed, and missing fields are `None`.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    line: String,
    fields: Map<String, Value>,
}

/// The parts of a process's anonymous memory.
pub struct Anonymous {
    /// In use by the program through malloc.
    pub live: u64,
    /// Free in the allocator and the recycler.
    pub free: u64,
    /// Thread stacks, pools, direct mmap.
    pub outside: u64,
}

impl Stats {
    pub fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Self {
                line: text.trim_end().to_owned(),
                fields,
            }),
            Ok(_) => Err("it is not a JSON object".to_owned()),
            Err(error) => Err(format!("it is not JSON: {error}")),
        }
    }

    /// The JSON line, unchanged.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// A text field; `None` if it is empty or `-`.
    pub fn text(&self, name: &str) -> Option<&str> {
        let text = self.value(name)?;
        (!matches!(text, "" | "-")).then_some(text)
    }

    /// A size or a count.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name)
    }

    /// Objects in a list.
    pub fn objects(&self, name: &str) -> impl Iterator<Item = &Map<String, Value>> + use<'_> {
        let list = self.fields.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object)
    }

    /// A field of this type.
    pub fn value<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Option<T> {
        T::deserialize(self.fields.get(name)?).ok()
    }

    /// The fields of a nested object, in their order.
    pub fn group(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> + use<'_> {
        let fields = self.fields.get(name).and_then(Value::as_object);
        fields.into_iter().flatten()
    }

    /// Resident shared memory.
    pub fn shmem_bytes(&self) -> Option<u64> {
        let private = self.number("anon_bytes")? + self.number("file_bytes")?;
        Some(self.number("rss_bytes")?.saturating_sub(private))
    }

    /// Divides resident anonymous memory. Blocks that the program has not touched count as live, so `outside` may be
    /// too small.
    pub fn divide(&self, anon_bytes: u64) -> Option<Anonymous> {
        let live = self.number("live_bytes")?.min(anon_bytes);
        let free = self.unused_bytes()?.min(anon_bytes - live);
        let outside = anon_bytes - live - free;
        Some(Anonymous {
            live,
            free,
            outside,
        })
    }

    /// The sizes of the pools in anonymous memory outside malloc, by field; only those that hold memory.
    pub fn pools(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let fields = ["pymalloc_bytes", "arrow_bytes"].into_iter();
        let sized = fields.filter_map(|field| Some((field, self.number(field)?)));
        sized.filter(|(_, size)| *size > 0)
    }

    /// The part of the shared memory that PyTorch has pinned for a GPU, in use or cached: NVIDIA's driver serves it
    /// from shared memory. With `pinned_use_cuda_host_register` PyTorch pins blocks of malloc instead.
    pub fn pinned_shared_bytes(&self) -> Option<u64> {
        let pinned = self.number("pinned_bytes")?;
        (pinned > 0 && pinned <= self.shmem_bytes()?).then_some(pinned)
    }

    /// Free memory in the allocator and the recycler.
    pub fn unused_bytes(&self) -> Option<u64> {
        let retained = self.number("retained_bytes");
        match (retained, self.number("recycled_bytes")) {
            (None, None) => None,
            (retained, recycled) => Some(retained.unwrap_or(0) + recycled.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_type_counts_as_absent() {
        let stats = Stats::parse(r#"{"rss_bytes":"many","site":7,"owner":"yes"}"#).unwrap();
        assert_eq!(stats.number("rss_bytes"), None);
        assert_eq!(stats.text("site"), None);
        assert_eq!(stats.value::<bool>("owner"), None);
        assert_eq!(stats.unused_bytes(), None);
    }

    #[test]
    fn unused_bytes_are_those_of_the_allocator_and_the_recycler() {
        let stats = Stats::parse(r#"{"retained_bytes":5,"recycled_bytes":7}"#).unwrap();
        assert_eq!(stats.unused_bytes(), Some(12));
    }
}
