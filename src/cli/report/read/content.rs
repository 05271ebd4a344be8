//! What was found in a line.

use flarena_shared::sites::Record;

use crate::report::model::Sample;

#[derive(Debug, Default)]
pub struct Read<'a> {
    pub samples: Vec<Sample<'a>>,
    /// Of allocation sites.
    pub record: Option<Box<Record>>,
    /// What of the line could not be read, and why.
    pub broken: Option<String>,
}

impl<'a> Read<'a> {
    pub fn one(sample: Sample<'a>) -> Self {
        Read {
            samples: vec![sample],
            ..Read::default()
        }
    }

    pub fn broken(why: impl Into<String>) -> Self {
        Read {
            broken: Some(why.into()),
            ..Read::default()
        }
    }

    pub fn is_foreign(&self) -> bool {
        self.samples.is_empty() && self.record.is_none() && self.broken.is_none()
    }
}
