//! The marker: one record of a process's memory at one stage. The library writes it, the command
//! reads it.
//!
//! A marker has two forms: NVFlare's text line, so that existing greps keep working, and a JSON
//! line with all fields. CONTRIBUTING.md lists the places that know a field.

use serde::{Deserialize, Serialize};

use crate::role::Proc;
pub use lenient::is_invalid;
use lenient::Field;

mod lenient;

/// Version of the JSON form. A reader also accepts later versions and ignores unknown fields.
pub const FORMAT_VERSION: u32 = 1;

/// Longest name of a stage or site, in bytes. Longer names are cut.
pub const NAME_MAX_BYTES: usize = 128;

/// One megabyte in the text form, as in NVFlare.
pub const MB: f64 = 1024.0 * 1024.0;

/// Generates the record and [`FIELDS`] from one row per field: its type, its default, its meaning.
macro_rules! record {
    ($(#[$attribute:meta])* pub struct $record:ident {$(
        $(#[serde($($serde:tt)*)])?
        pub $field:ident: $type:ty = $doc:literal,
    )*}) => {
        $(#[$attribute])*
        pub struct $record {$(
            #[doc = $doc]
            $(#[serde($($serde)*)])?
            pub $field: $type,
        )*}

        /// The fields of the JSON form in order, with their meanings; docs/markers.md has the same
        /// table.
        pub const FIELDS: &[(&str, &str)] = &[$((stringify!($field), $doc)),*];

        impl $record {
            /// Sets one field from its JSON value, read leniently. False if there is no field of this name.
            pub fn set(&mut self, name: &str, json: &str) -> bool {
                match name {
                    $(stringify!($field) => self.$field = Field::read(name, json),)*
                    _ => return false,
                }
                true
            }
        }
    };
}

record! {
    /// One record. Sizes are bytes; `None` means that the value is unknown. The library knows `t`, `pid`, `start` and `seq`.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct Marker {
        pub v: u32 = "version of the format: 1",
        pub t: Option<f64> = "wall clock, seconds since 1970",
        pub mono: Option<f64> = "seconds since the start of the machine, also those in which it slept (`CLOCK_BOOTTIME`): a clock that does not jump",
        pub pid: Option<u32> = "process id",
        #[serde(default)]
        pub ppid: u32 = "process id of the parent",
        pub start: Option<u64> = "start of the process in clock ticks since boot; `boot`, `pid` and `start` identify one process, except on machines restored from one snapshot",
        pub boot: Option<ShortHash> = "hash of the boot id of the machine and of the pid and cgroup namespaces; null if one of them cannot be read",
        #[serde(default = "unknown")]
        pub proc: String = "the NVFlare process (table above), or `-`",
        pub program: Option<String> = "file name of the program; for Python the script or the module after `-m`, such as `train.py`; or null; never arguments",
        pub name: Option<String> = "name of the process (`FLARENA_NAME`), or null",
        pub role: Option<String> = "`client`, `server` or null",
        pub site: Option<String> = "name of the site, or null",
        pub round: Option<i64> = "number of the round, from 0, or null",
        pub stage: String = "name of the stage: one of those below, or the program's own",
        pub job: Option<String> = "first 8 characters of NVFlare's job id, or null",
        #[serde(default = "unknown")]
        pub alloc: String = "the allocator that serves malloc: `glibc` or `jemalloc`",
        pub rss_bytes: Option<u64> = "resident memory: `anon_bytes` + `file_bytes` + `shmem_bytes`",
        pub anon_bytes: Option<u64> = "resident anonymous memory: heap, large blocks, stacks",
        pub file_bytes: Option<u64> = "resident pages of mapped files",
        pub shmem_bytes: Option<u64> = "resident shared memory",
        pub pss_bytes: Option<u64> = "resident memory, in which a page that n processes share counts 1/n; null before the first fork, and for a short time after each reading",
        pub swap_bytes: Option<u64> = "memory in swap",
        pub hwm_bytes: Option<u64> = "highest `rss_bytes` so far, counted by the kernel; at least `rss_bytes`",
        pub peak_bytes: Option<u64> = "highest resident memory since the previous marker, as far as known: `hwm_bytes` if that rose, else the highest of `rss_bytes` and of what the governor has measured",
        pub live_bytes: Option<u64> = "allocated by the program and not freed; null at `exit`",
        pub retained_bytes: Option<u64> = "free memory in the backend that may be resident; null at `exit`",
        pub recycled_bytes: Option<u64> = "pages that the recycler keeps for the next large block",
        pub pymalloc_bytes: Option<u64> = "arenas of Python's allocator for small objects; null without Python",
        pub arrow_bytes: Option<u64> = "in use in Arrow's own pool at the program's last marker or `stats()`; null if Arrow uses malloc",
        pub pinned_bytes: Option<u64> = "pinned for a GPU by PyTorch at the program's last marker or `stats()`, used or cached; null if unknown, or without a GPU",
        pub gpu_allocated_bytes: Option<u64> = "in PyTorch's tensors on all GPUs at the program's last marker or `stats()`; null unless PyTorch has started CUDA",
        pub gpu_reserved_bytes: Option<u64> = "held by PyTorch's caching allocator on all GPUs: `gpu_allocated_bytes` and its free memory",
        pub cgroup_bytes: Option<u64> = "memory of one control group: of the process's own and its parents the one with the least memory left below its limit, and the own one without any limit; or null",
        pub cgroup_reclaimable_bytes: Option<u64> = "the part of `cgroup_bytes` in file pages, which the kernel drops before it kills; null without a limit",
        pub cgroup_limit_bytes: Option<u64> = "memory limit of that group (in cgroup v2 `memory.high` counts, too), or null",
        pub cgroup: Option<ShortHash> = "hash of the path of that group, which tells groups with the same limit apart; null if unknown",
        pub cgroup_oom_kills: Option<u64> = "processes of that group and the groups below it that the kernel has killed for lack of memory; null if unknown, as in cgroup v1 if a parent has the limit",
        pub memory_limit_bytes: Option<u64> = "`FLARENA_MEMORY_LIMIT`, or null",
        pub gc_released_bytes: Option<u64> = "released after the previous marker by full garbage collections, and by those of young objects that flarena runs; null before the first",
        pub gc_ms: Option<u64> = "duration of these collections in milliseconds",
        pub gc_live_after_bytes: Option<u64> = "least bytes in live large blocks right after a full garbage collection since the previous marker; null without one",
        pub cpu_ms: Option<u64> = "CPU time of the process so far, user and system, in milliseconds",
        pub host: Option<String> = "name of the machine; null after the process's first written marker",
        pub host_memory_bytes: Option<u64> = "memory of the machine; null after the process's first written marker",
        pub version: Option<String> = "version of flarena; null after the process's first written marker",
        pub settings: Option<String> = "settings that differ from their defaults, such as `FLARENA_GC=off FLARENA_SITES=on`; no paths or other text; null after the process's first written marker",
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub asked_bytes: Option<u64> = "size of the allocation that does not fit; only at `at_limit`",
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub left_bytes: Option<u64> = "bytes that the control group may still use then, file pages that the kernel can drop included; only at `at_limit`",
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub asked_at: Option<String> = "line of the program that asks, such as `train.py:12 in step`; only at `at_limit`, with `FLARENA_SITES=on`",
        pub seq: Option<u64> = "number of the marker in its process, from 0",
    }
}

/// Eight hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ShortHash(pub u32);

impl From<ShortHash> for String {
    fn from(ShortHash(hash): ShortHash) -> String {
        format!("{hash:08x}")
    }
}

impl TryFrom<String> for ShortHash {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<ShortHash, Self::Error> {
        u32::from_str_radix(&text, 16).map(ShortHash)
    }
}

fn unknown() -> String {
    "-".to_owned()
}

impl Marker {
    /// The JSON form, with its newline.
    pub fn to_json_line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    /// NVFlare's form, with its newline: `[RSS] TR s=site-1 r=3 send: 512.3 MB`.
    pub fn to_text_line(&self) -> String {
        let round = self.round.map_or("-".to_owned(), |round| round.to_string());
        let site = self.site.as_deref().unwrap_or("-");
        let size = self
            .rss_bytes
            .map_or("?".to_owned(), |b| format!("{:.1}", b as f64 / MB));
        let name = self.name.as_ref().filter(|_| self.proc == unknown());
        let proc = one_word(name.unwrap_or(&self.proc));
        let stage = one_line(&self.stage);
        format!(
            "[RSS] {proc} s={} r={round} {stage}: {size} MB\n",
            one_word(site)
        )
    }
}

/// Replaces control characters, which would break the text line.
fn one_line(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Also replaces spaces, because a space ends the site in the text line.
fn one_word(name: &str) -> String {
    one_line(name).replace(char::is_whitespace, "_")
}

/// The name of an NVFlare process before [`one_word`] changed it.
fn with_spaces(proc: &str) -> &str {
    let worker = Proc::TrainerWorker.name();
    match proc == one_word(worker) {
        true => worker,
        false => proc,
    }
}

/// A name from bytes of a C program: cut at [`NAME_MAX_BYTES`] between characters, invalid UTF-8
/// replaced.
pub fn name_from_bytes(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(NAME_MAX_BYTES)];
    let mut end = cut.len();
    if end < bytes.len() {
        // Leave out the character that the cut would split.
        while cut.len() - end < 4 && std::str::from_utf8(&cut[..end]).is_err() {
            end -= 1;
        }
        if std::str::from_utf8(&cut[..end]).is_err() {
            end = cut.len();
        }
    }
    String::from_utf8_lossy(&cut[..end]).into_owned()
}

/// Parses `[RSS] <proc> s=<site> r=<round> <stage>: <MB> MB` anywhere in a log line.
pub fn parse_text(line: &str) -> Option<Marker> {
    let (marker, rest) = parse_place(line, "[RSS] ")?;
    let (stage, megabytes) = stage_and_size(rest)?;
    let marker = Marker {
        stage: stage.to_owned(),
        rss_bytes: Some(bytes(megabytes)?),
        ..marker
    };
    (!stage.is_empty()).then_some(marker)
}

fn bytes(megabytes: f64) -> Option<u64> {
    let is_valid = (0.0..1e12).contains(&megabytes);
    is_valid.then_some((megabytes * MB) as u64)
}

/// Parses `<proc> s=<site> r=<round>` behind the tag, and returns the rest of the line, too.
fn parse_place<'a>(line: &'a str, tag: &str) -> Option<(Marker, &'a str)> {
    let (_, rest) = line.split_once(tag)?;
    let (proc, rest) = rest.split_once(" s=")?;
    let (site, rest) = rest.split_once(" r=")?;
    // NVFlare 2.7 and 2.8 write the task behind the site: `s=site-1 t=train r=0`.
    let site = site.split_once(" t=").map_or(site, |(site, _)| site);
    let (round, rest) = rest.split_once(' ')?;
    let marker = Marker {
        proc: with_spaces(proc).to_owned(),
        site: (site != "-" && !site.is_empty()).then(|| site.to_owned()),
        round: round.parse().ok(),
        ..Marker::default()
    };
    (!proc.is_empty()).then_some((marker, rest))
}

impl Marker {
    /// Parses `[MEM] <proc> s=<site> r=<round> peak=<MB> live=<MB> MB` anywhere in a log line. NVFlare's processes write it
    /// after the `[RSS]` line of the same stage, which it completes.
    pub fn from_memory_line(line: &str) -> Option<Marker> {
        let (mut marker, rest) = parse_place(line, "[MEM] ")?;
        let (sizes, _) = rest.split_once("MB")?;
        let (mut left_bytes, mut ignored) = (None, None);
        for text in sizes.split_whitespace() {
            let (name, megabytes) = text.split_once('=')?;
            let field = match name {
                "peak" => &mut marker.peak_bytes,
                "live" => &mut marker.live_bytes,
                "free" => &mut marker.retained_bytes,
                "cached" => &mut marker.recycled_bytes,
                "file" => &mut marker.file_bytes,
                "gpu" => &mut marker.gpu_reserved_bytes,
                "limit" => &mut marker.cgroup_limit_bytes,
                "left" => &mut left_bytes,
                // A later version may write more.
                _ => &mut ignored,
            };
            *field = Some(bytes(megabytes.parse().ok()?)?);
        }
        let limit = marker.cgroup_limit_bytes.zip(left_bytes);
        marker.cgroup_bytes = limit.map(|(limit, left)| limit.saturating_sub(left));
        Some(marker)
    }

    /// Takes the sizes of a `[MEM]` line, if this is an `[RSS]` line of the same process and round.
    pub fn complete(&mut self, memory: Marker) {
        let place = |marker: &Marker| (marker.pid, marker.round);
        if place(self) == place(&memory) && self.proc == memory.proc && self.site == memory.site {
            let files = self.rss_bytes.zip(memory.file_bytes);
            *self = Marker {
                t: self.t,
                stage: std::mem::take(&mut self.stage),
                rss_bytes: self.rss_bytes,
                anon_bytes: files.map(|(rss, file)| rss.saturating_sub(file)),
                ..memory
            };
        }
    }
}

/// The stage and the megabytes of `send: 87.8 MB`. A logger may append fields: `send: 87.8 MB [mem_utils] job=a1`. A stage
/// may contain a size itself, so a size at the end comes first.
fn stage_and_size(text: &str) -> Option<(&str, f64)> {
    const UNIT: &str = " MB";
    let before = |end: usize| {
        let (stage, size) = text[..end].rsplit_once(": ")?;
        let is_unit = !text[end + UNIT.len()..].starts_with(|c: char| c.is_alphanumeric());
        let megabytes = size.trim().parse().ok().filter(|_| is_unit)?;
        Some((stage, megabytes))
    };
    let at_end = text
        .trim_end()
        .strip_suffix(UNIT)
        .and_then(|rest| before(rest.len()));
    at_end.or_else(|| text.match_indices(UNIT).find_map(|(end, _)| before(end)))
}

#[cfg(test)]
mod tests;
