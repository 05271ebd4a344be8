//! THE table of settings: one row each. A new setting is a row here and the place that uses it.
//! Its field, default, reading, `flarena run --help` and `--set`, the manual page, the doctor, the
//! statistics and `FLARENA_LOG=info` are made from the row; README.md and flarena.h are tested
//! against it, and so is that the suite `settings` tries a bad value.
//!
//! Bytes in, [`Settings`] out. Reading does not allocate, so the shim may do it in the first
//! `malloc` of a process.

use std::convert::identity;

use crate::huge_pages::Choice;
use crate::role::Role;
use crate::row::settings;
pub use crate::values::{Allocator, Decay, Hibernate, LogLevel, Pools};
use crate::{defaults, parse, values};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub key: Key,
    /// The environment variable.
    pub name: &'static str,
    /// What holds when it is not set; completes "using ...".
    pub default: &'static str,
    /// The values it takes; completes "is not ..." and "write ...".
    pub accepts: &'static str,
    /// Values that it takes, the extremes among them.
    pub good: &'static [&'static str],
    /// Values that it does not take, the nearest among them.
    pub bad: &'static [&'static str],
    /// One sentence.
    pub doc: &'static str,
}

settings! {
    JemallocPreload {
        name: "NVFLARE_ENABLE_JEMALLOC_PRELOAD",
        value: jemalloc_preload: bool, read by parse::boolean, shown by identity,
        default: "false",
        accepts: "true or false",
        good: ["true", "0", "Yes"], bad: ["maybe", "2"],
        doc: "true: jemalloc serves this process, else glibc",
    }
    Allocator {
        name: "FLARENA_ALLOCATOR",
        optional: named_allocator: Allocator, read by Allocator::parse, shown by Allocator::name,
        default: "as NVFLARE_ENABLE_JEMALLOC_PRELOAD says",
        accepts: "jemalloc or glibc",
        good: ["jemalloc", "GLIBC"], bad: ["tcmalloc"],
        doc: "the allocator by name; wins over NVFLARE_ENABLE_JEMALLOC_PRELOAD",
    }
    Role {
        name: "FLARENA_ROLE",
        optional: role: Role, read by Role::parse, shown by Role::name,
        default: "the detected role",
        accepts: "client or server",
        good: ["client", "Server"], bad: ["boss"],
        doc: "sets the arena default; detected from NVFlare's command lines, else client",
    }
    ArenaMax {
        name: "MALLOC_ARENA_MAX",
        optional: arena_max: u32, read by values::arena_count, shown by identity,
        default: "2 for a client, 4 for a server",
        accepts: "a number of arenas, 1 or more",
        good: ["1", "65536"], bad: ["0", "-1", "two", "65537"],
        doc: "glibc arenas; your own value wins",
    }
    MallocConf {
        name: "MALLOC_CONF",
        default: defaults::MALLOC_CONF,
        accepts: "jemalloc options",
        good: ["dirty_decay_ms:1,narenas:2"], bad: ["nonsense:1", "narenas"],
        doc: "jemalloc options; your keys win over the defaults, key by key",
    }
    Profile {
        name: "NVFLARE_CLIENT_MEMORY_PROFILE",
        value: profile: bool, read by parse::boolean, shown by values::on_off,
        default: "off",
        accepts: "true or false",
        good: ["1", "false"], bad: ["2"],
        doc: "emit an RSS marker at each stage",
    }
    MarkerFile {
        name: "FLARENA_MARKER_FILE",
        default: "none, markers go to stderr only",
        accepts: "a path, %p for the pid",
        good: ["/tmp/rss-%p.jsonl"], bad: [],
        doc: "also append markers as JSON lines to this file",
    }
    Recycle {
        name: "FLARENA_RECYCLE",
        value: recycle: bool, read by parse::boolean, shown by values::on_off,
        default: "on",
        accepts: "on or off",
        good: ["on", "OFF", "1"], bad: ["sometimes"],
        doc: "recycle the pages of large blocks, under both allocators",
    }
    RecycleMin {
        name: "FLARENA_RECYCLE_MIN",
        value: recycle_min_bytes: u64, read by values::recycle_min_bytes, shown by identity,
        default: "512K", // docs/design/tuning.md has the curve
        accepts: "a size from 64K to 1T",
        good: ["64K", "65536", "1T", "2MiB"], bad: ["1", "65535", "1025G", "100T", "much"],
        doc: "the smallest block that the recycler serves",
    }
    DecayMs {
        name: "FLARENA_DECAY_MS",
        value: decay: Decay, read by Decay::parse, shown by Decay::shown,
        default: "300", // docs/design/tuning.md
        accepts: "auto, or a number of milliseconds up to 86400000",
        good: ["0", "86400000", "auto", "Auto"], bad: ["-1", "soon", "86400001"],
        doc: "how many milliseconds an unused recycled page is kept; auto: 300, and up to 5000 where pauses turn out that short",
    }
    MemoryLimit {
        name: "FLARENA_MEMORY_LIMIT",
        optional: memory_limit_bytes: u64, read by values::limit_bytes, shown by identity,
        default: "the cgroup limit",
        accepts: "a size such as 8G",
        good: ["8G", "1"], bad: ["0", "lots", "-5G", "1X"],
        doc: "soft limit of the process: free memory is returned when less than a tenth of it is left (looked at every 2 s)",
    }
    Pressure {
        name: "FLARENA_PRESSURE",
        value: pressure: bool, read by values::auto, shown by values::auto_off,
        default: "auto",
        accepts: "auto or off",
        good: ["auto", "off", "on"], bad: ["high"],
        doc: "return memory when the kernel reports pressure (PSI, cgroup)",
    }
    Huge {
        name: "FLARENA_HUGE",
        value: huge: Choice, read by Choice::parse, shown by Choice::name,
        default: "auto",
        accepts: "auto, off or 2M",
        good: ["auto", "off", "2M", "2m"], bad: ["64K", "4M", "always"],
        doc: "huge pages for large blocks; auto: those below 2 MB that the system gives on request (flarena doctor); 2M: of 2 MB, too",
    }
    Hibernate {
        name: "FLARENA_HIBERNATE",
        value: hibernate: Hibernate, read by Hibernate::parse, shown by Hibernate::shown,
        default: "off",
        accepts: "off, or a number of seconds from 1 to 86400",
        good: ["off", "1", "600", "86400", "Off", "0"], bad: ["on", "-1", "86401", "10s"],
        doc: "after so many idle seconds page the program's large blocks out to swap, after as many more all else, and back when it works",
    }
    Governor {
        name: "FLARENA_GOVERNOR",
        value: governor: bool, read by values::auto, shown by values::auto_off,
        default: "auto",
        accepts: "auto or off",
        good: ["auto", "off", "on"], bad: ["never"],
        doc: "the library's thread, in processes that hold much; off: no thread, no control channel",
    }
    Sites {
        name: "FLARENA_SITES",
        value: sites: bool, read by parse::boolean, shown by values::on_off,
        default: "off",
        accepts: "on or off",
        good: ["on", "0"], bad: ["some"],
        doc: "note which line of the program allocates each large block",
    }
    Gc {
        name: "FLARENA_GC",
        value: gc: bool, read by values::auto, shown by values::auto_off,
        default: "auto",
        accepts: "auto or off",
        good: ["auto", "off", "on"], bad: ["often"],
        doc: "collect Python's cyclic garbage by the bytes that it may hold, not by counting objects",
    }
    Pools {
        name: "FLARENA_POOLS",
        value: pools: Pools, read by Pools::parse, shown by Pools::name,
        default: "auto",
        accepts: "auto, off or all",
        good: ["auto", "Off", "all", "on", "0"], bad: ["some", "gpu"],
        doc: "keep small what is allocated beside malloc (Arrow, mimalloc, pinned memory); all: empty a GPU's cache, too",
    }
    Log {
        name: "FLARENA_LOG",
        value: log: LogLevel, read by LogLevel::parse, shown by LogLevel::name,
        default: "warn",
        accepts: "off, warn or info",
        good: ["off", "Warn", "info"], bad: ["debug"],
        doc: "what the library says on stderr; info prints the effective settings once",
    }
}

/// The row of a key.
pub fn setting(key: Key) -> &'static Setting {
    &TABLE[key as usize]
}

impl Settings {
    /// The allocator by name, else as NVFlare's switch says.
    pub fn allocator(&self) -> Allocator {
        self.named_allocator.unwrap_or(if self.jemalloc_preload {
            Allocator::Jemalloc
        } else {
            Allocator::Glibc
        })
    }

    /// Python's hooks mark stages, collect garbage there, check how frames are read, and make
    /// NVFlare's cleanup purge jemalloc.
    pub fn wants_hooks(&self) -> bool {
        self.profile || self.gc || self.sites || self.allocator() == Allocator::Jemalloc
    }

    /// Collections by bytes that were not turned off and never come: the recycler is what counts.
    pub fn uncounted_garbage(&self) -> Option<&'static str> {
        let told = "FLARENA_RECYCLE=off: nobody counts the bytes of large blocks, so FLARENA_GC=auto collects no garbage";
        (self.gc && !self.recycle).then_some(told)
    }
}

/// A value that could not be used. Say it in one line; go on with `used`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem<'a> {
    pub key: Key,
    pub value: &'a [u8],
    pub used: &'static str,
}

/// Reads every setting. `get` answers with the raw value of a variable, `report` takes what could
/// not be used; an empty value counts as not set. `MALLOC_CONF` has a module of its own
/// ([`crate::malloc_conf`]); the marker file is a path, and every path is one.
pub fn read<'a>(
    mut get: impl FnMut(Key) -> Option<&'a [u8]>,
    mut report: impl FnMut(Problem<'a>),
) -> Settings {
    let mut settings = Settings::DEFAULT;
    for row in TABLE {
        let Some(value) = get(row.key).filter(|value| !parse::trimmed(value).is_empty()) else {
            continue;
        };
        if !settings.take(row.key, parse::trimmed(value)) {
            report(Problem {
                key: row.key,
                value,
                used: instead(row, &settings),
            });
        }
    }
    settings
}

/// What is used instead of a bad value: the default, and for the allocator what that comes to.
fn instead(row: &Setting, settings: &Settings) -> &'static str {
    match (row.key, settings.jemalloc_preload) {
        (Key::Allocator, true) => "jemalloc, as NVFLARE_ENABLE_JEMALLOC_PRELOAD asks",
        (Key::Allocator, false) => "glibc",
        _ => row.default,
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "settings_python_tests.rs"]
mod python_tests;
