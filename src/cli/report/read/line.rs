//! What one line holds: markers, a part of one, or something else.

use memchr::memmem::find;

use super::content::Read;
use super::{record, rss_line};
use crate::report::model::Sample;

/// Where a record of allocation sites starts.
const SITES_HEAD: &[u8] = b"{\"kind\":\"s";

/// Where a record starts that flarena wrote.
const HEAD: &[u8] = b"{\"v\":";

/// `whole`: the line ended with a newline and was not cut for its length.
pub fn read(line: &[u8], whole: bool) -> Read<'_> {
    let line = line.trim_ascii();
    let found = if line.starts_with(SITES_HEAD) {
        sites(line)
    } else if line.starts_with(b"{") {
        object(line)
    } else if let Some(at) = find(line, HEAD) {
        torn(line, at)
    } else if find(line, b"_bytes\":").is_some() {
        Read::broken("the rest of a record whose start is missing")
    } else {
        rss_line::read(line)
    };
    let growing = |why| match whole {
        true => why,
        false => format!("{why}; the file may still be growing"),
    };
    Read {
        broken: found.broken.map(growing),
        ..found
    }
}

fn sites(line: &[u8]) -> Read<'_> {
    match serde_json::from_slice(line) {
        Ok(record) => Read {
            record: Some(record),
            ..Read::default()
        },
        Err(_) => Read::broken("a record of allocation sites that cannot be read"),
    }
}

fn object(line: &[u8]) -> Read<'_> {
    match record::read(line) {
        Ok(record::Object::Marker(sample)) => Read::one(*sample),
        Ok(record::Object::Faulty(why)) => Read::broken(why),
        // A log in JSON (NVFlare's, Docker's): the line that was logged stands inside.
        Ok(record::Object::Envelope { message, t }) => own(read(message.as_bytes(), true), t),
        Ok(record::Object::Foreign) => Read::default(),
        Err(_) => find(line, HEAD).map_or_else(|| rss_line::read(line), |at| torn(line, at)),
    }
}

/// Records that run into each other, or stand behind a log's own prefix.
fn torn(line: &[u8], first: usize) -> Read<'_> {
    let mut found = Read::default();
    let mut lost = find(&line[..first], b"_bytes\":").is_some();
    let mut at = first;
    loop {
        let next = find(&line[at + HEAD.len()..], HEAD).map(|more| at + HEAD.len() + more);
        let end = next.unwrap_or(line.len());
        match record::read_prefix(&line[at..end]) {
            Ok((record::Object::Marker(sample), read)) => {
                found.samples.push(*sample);
                lost |= find(&line[at + read..end], b"_bytes\":").is_some();
            }
            Ok((record::Object::Faulty(why), _)) => found.broken = Some(why),
            Ok(_) => {}
            Err(_) => lost = true,
        }
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    if lost && found.broken.is_none() {
        found.broken = Some(match found.samples.len() {
            0 => "a record that is cut off or not JSON".to_owned(),
            n => format!("records that run into each other: {n} read, the rest lost"),
        });
    }
    found
}

/// The samples of a line that was unwrapped, kept beyond the buffer it was unwrapped into.
fn own<'a>(inner: Read<'_>, t: Option<f64>) -> Read<'a> {
    let own = |mut sample: Sample<'_>| {
        sample.t = sample.t.or(t);
        sample.into_owned()
    };
    Read {
        samples: inner.samples.into_iter().map(own).collect(),
        record: inner.record,
        broken: inner.broken,
    }
}
