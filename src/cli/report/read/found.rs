//! What was found in a line, and how it is searched.

use crate::report::model::Sample;

#[derive(Debug, Default)]
pub struct Read<'a> {
    pub samples: Vec<Sample<'a>>,
    /// What of the line could not be read, and why.
    pub broken: Option<String>,
}

impl<'a> Read<'a> {
    pub fn one(sample: Sample<'a>) -> Self {
        Read {
            samples: vec![sample],
            broken: None,
        }
    }

    pub fn broken(why: impl Into<String>) -> Self {
        Read {
            samples: Vec::new(),
            broken: Some(why.into()),
        }
    }

    pub fn is_foreign(&self) -> bool {
        self.samples.is_empty() && self.broken.is_none()
    }
}

pub fn find(line: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(line, what)
}
