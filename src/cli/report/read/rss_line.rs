//! `[RSS]` lines: NVFlare's own, anywhere in its logs, and flarena's text form.

use std::borrow::Cow;

use flarena_shared::marker::parse_text;
use memchr::memmem::find;

use super::content::Read;
use super::timestamp::timestamp;
use crate::report::model::{Sample, Size, Sizes};

pub fn read(line: &[u8]) -> Read<'_> {
    let Some(at) = find(line, b"[RSS] ") else {
        return Read::default();
    };
    let Ok(marker) = std::str::from_utf8(&line[at..]) else {
        return Read::broken("an [RSS] line that is not UTF-8");
    };
    let Some(found) = parse_text(marker) else {
        // Another `[RSS] `, say a news feed's, is ignored.
        let ours = marker.contains(" s=") && marker.contains(" r=");
        return if ours {
            Read::broken("an [RSS] line that is cut off or garbled")
        } else {
            Read::default()
        };
    };
    let mut sizes = Sizes::UNKNOWN;
    sizes[Size::Rss] = found.rss_bytes as f64;
    Read::one(Sample {
        proc: Cow::Borrowed(found.proc),
        site: found.site.map(Cow::Borrowed),
        round: found.round,
        stage: Cow::Borrowed(found.stage),
        t: timestamp(&line[..at]),
        sizes,
        ..Sample::default()
    })
}
