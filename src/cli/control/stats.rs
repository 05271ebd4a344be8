//! The answer of a process: a JSON object. It is kept unchanged, because the library may be older
//! or newer than the command: unknown fields are printed, and missing fields are `None`.

use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    line: String,
    fields: Map<String, Value>,
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
        self.fields
            .get(name)?
            .as_str()
            .filter(|text| !text.is_empty() && *text != "-")
    }

    /// A size or a count.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.fields.get(name)?.as_u64()
    }

    pub fn signed(&self, name: &str) -> Option<i64> {
        self.fields.get(name)?.as_i64()
    }

    /// Sizes in a list.
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let list = self.fields.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect()
    }

    /// Objects in a list.
    pub fn objects(&self, name: &str) -> impl Iterator<Item = &Map<String, Value>> {
        let list = self.fields.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.fields.get(name)?.as_bool()
    }

    /// The fields of a nested object, in their order.
    pub fn group(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.fields
            .get(name)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// Resident shared memory.
    pub fn shmem_bytes(&self) -> Option<u64> {
        let private = self.number("anon_bytes")? + self.number("file_bytes")?;
        Some(self.number("rss_bytes")?.saturating_sub(private))
    }

    /// Anonymous memory outside malloc and the pools of Python and Arrow. Blocks that the program has not
    /// touched count as live, so it may be too small.
    pub fn other_bytes(&self) -> Option<u64> {
        let pools = ["pymalloc_bytes", "arrow_bytes"];
        let pools: u64 = pools.iter().filter_map(|name| self.number(name)).sum();
        let known = self.number("live_bytes")? + self.unused_bytes()? + pools;
        Some(self.number("anon_bytes")?.saturating_sub(known))
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
        assert_eq!(stats.flag("owner"), None);
        assert_eq!(stats.unused_bytes(), None);
    }

    #[test]
    fn unused_bytes_are_those_of_the_allocator_and_the_recycler() {
        let stats = Stats::parse(r#"{"retained_bytes":5,"recycled_bytes":7}"#).unwrap();
        assert_eq!(stats.unused_bytes(), Some(12));
    }
}
