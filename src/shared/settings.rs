//! The table of settings: one row per environment variable. To add a setting, add a row here and
//! the code that uses it.
//!
//! These are generated from the row: the field of [`Settings`], its default and parser, the texts
//! of `flarena run --help`, the manual page, the doctor, the statistics and `FLARENA_LOG=info`.
//! Tests compare README.md, flarena.h, sub_start.sh and Python's own parsers with the table, and
//! require a bad value in tests/settings.
//!
//! Bytes in, [`Settings`] out. Reading does not allocate, so the library can read the settings in
//! the first `malloc` of a process.

use std::convert::identity;
use std::fmt::{self, Display};

use crate::huge_pages::Choice;
use crate::role::Role;
pub use crate::values::{Allocator, AtLimit, LogLevel};
use crate::{defaults, parse, values};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub key: Key,
    /// The environment variable.
    pub name: &'static str,
    /// The default, as a value or a phrase; completes "using ...".
    pub default: &'static str,
    /// The accepted values; completes "is not ..." and "write ...".
    pub accepts: &'static str,
    /// Accepted values, the extremes included.
    pub good: &'static [&'static str],
    /// Refused values, those next to an extreme included.
    pub bad: &'static [&'static str],
    /// Values that only earlier versions accepted.
    pub removed: &'static [Removed],
    /// `flarena run --help` shows it. `--help-all` shows every row.
    pub is_usual: bool,
    /// One sentence.
    pub doc: &'static str,
}

/// A value that only earlier versions accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    pub value: &'static str,
    /// The value that is used instead.
    pub replacement: &'static str,
}

/// A variable that only earlier versions read, and the message for it.
pub const REMOVED_NAME: &str = "FLARENA_HIBERNATE";
pub const NAME_WAS_REMOVED: &str = "FLARENA_HIBERNATE was removed and has no effect; unset it";

/// Defines [`TABLE`], [`Key`] and [`Settings`] from the rows of the table. A row is
///
/// ```text
/// Key {
///     name: the environment variable,
///     value: field: type, read by parser [lowest, highest], shown by function,
///     default: the default as text,
///     accepts: the accepted values, as an error message shows them,
///     good: accepted values, bad: refused values,
///     removed: a value of an earlier version, and its replacement,
///     usual: true for the rows of `flarena run --help`,
///     doc: one sentence,
/// }
/// ```
///
/// `value` becomes a field of `Settings`, its default (`default`, parsed at compile time), its
/// parser (in [`parse`] or [`values`]; bounds are optional) and its text form. `optional` instead of `value` makes a field that is `None` without a
/// choice of the user; its default is then a phrase. A row with neither is plain text, such as a
/// path. `good` and `bad` feed the tests of every reader. `removed` and `usual` are optional.
macro_rules! settings {
    ($($key:ident {
        name: $name:literal,
        $(value: $field:ident: $type:ty, read by $parse:path $([$($bound:expr),*])?, shown by $show:path,)?
        $(optional: $choice:ident: $choice_type:ty, read by $parse_choice:path $([$($choice_bound:expr),*])?, shown by $show_choice:path,)?
        default: $default:expr,
        accepts: $accepts:literal,
        good: $good:expr, bad: $bad:expr,
        $(removed: $removed:expr,)?
        $(usual: $usual:literal,)?
        doc: $doc:literal,
    })*) => {
        /// Names a row of [`TABLE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Key { $($key),* }

        /// Every setting that flarena reads, in the order in which it is documented.
        pub const TABLE: &[Setting] = &[$(Setting {
            key: Key::$key, name: $name, default: $default, accepts: $accepts,
            good: &$good, bad: &$bad, removed: &[$($removed)?],
            is_usual: false $(|| $usual)?, doc: $doc,
        }),*];

        /// The settings of one process, with defaults filled in. `None`: the user chose nothing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Settings {
            $($(pub $field: $type,)? $(pub $choice: Option<$choice_type>,)?)*
        }

        impl Settings {
            /// The settings when no variable is set.
            pub const DEFAULT: Settings = Settings {
                $($($field: match $parse($($($bound,)*)? $default.as_bytes()) {
                    Some(value) => value,
                    None => panic!("a setting does not accept its own default"),
                },)? $($choice: None,)?)*
            };

            /// Sets one row from its text. False if the row does not accept the text.
            fn set(&mut self, key: Key, text: &[u8]) -> bool {
                match key {
                    $(Key::$key => {
                        $(let Some(value) = $parse($($($bound,)*)? text) else { return false };
                        self.$field = value;)?
                        $(self.$choice = $parse_choice($($($choice_bound,)*)? text);
                        return self.$choice.is_some();)?
                    })*
                }
                true
            }

            /// The value of a row as text, or `None` for a row without one.
            pub fn shown(&self, key: Key) -> Option<String> {
                match key {
                    $(Key::$key => {
                        $(return Some($show(self.$field).to_string());)?
                        $(return Some($show_choice(self.$choice?).to_string());)?
                    })*
                }
                None
            }
        }
    };
}

settings! {
    JemallocPreload {
        name: "NVFLARE_ENABLE_JEMALLOC_PRELOAD",
        value: jemalloc_preload: bool, read by parse::boolean, shown by identity,
        default: "false",
        accepts: "true or false",
        good: ["true", "0", "Yes"], bad: ["maybe", "2"],
        usual: true,
        doc: "true: jemalloc serves this process; false: glibc",
    }
    Allocator {
        name: "FLARENA_ALLOCATOR",
        optional: named_allocator: Allocator, read by Allocator::parse, shown by Allocator::name,
        default: "by NVFLARE_ENABLE_JEMALLOC_PRELOAD",
        accepts: "jemalloc or glibc",
        good: ["jemalloc", "GLIBC"], bad: ["tcmalloc"],
        usual: true,
        doc: "the allocator by name; overrides NVFLARE_ENABLE_JEMALLOC_PRELOAD",
    }
    Role {
        name: "FLARENA_ROLE",
        optional: role: Role, read by Role::parse, shown by Role::name,
        default: "the detected role",
        accepts: "client or server",
        good: ["client", "Server"], bad: ["boss"],
        doc: "selects the arena default; detected from NVFlare's command lines, else client",
    }
    ArenaMax {
        name: "MALLOC_ARENA_MAX",
        optional: arena_max: u32, read by values::number_between [1, 65_536], shown by identity,
        default: "2 for a client, 4 for a server",
        accepts: "a number of arenas, 1 or more",
        good: ["1", "65536"], bad: ["0", "-1", "two", "65537"],
        doc: "number of glibc arenas; flarena keeps a value that you set",
    }
    MallocConf {
        name: "MALLOC_CONF",
        default: defaults::MALLOC_CONF,
        accepts: "jemalloc options",
        good: ["dirty_decay_ms:1,narenas:2"], bad: ["nonsense:1", "narenas"],
        doc: "jemalloc options; each key that you set replaces its default",
    }
    Profile {
        name: "NVFLARE_CLIENT_MEMORY_PROFILE",
        value: profile: bool, read by parse::boolean, shown by values::on_off,
        default: "off",
        accepts: "true or false",
        good: ["1", "false"], bad: ["2"],
        usual: true,
        doc: "write an RSS marker at each stage",
    }
    MarkerFile {
        name: "FLARENA_MARKER_FILE",
        default: "none, markers go to stderr only",
        accepts: "a path, %p for the pid",
        good: ["/tmp/rss-%p.jsonl"], bad: [],
        usual: true,
        doc: "also append markers as JSON lines to this file",
    }
    Name {
        name: "FLARENA_NAME",
        default: "none",
        accepts: "a name",
        good: ["trainer-3"], bad: [],
        usual: true,
        doc: "the name of this process in markers and commands; a program that it starts is NAME/program, a fork NAME/worker",
    }
    Recycle {
        name: "FLARENA_RECYCLE",
        value: recycle: bool, read by parse::boolean, shown by values::on_off,
        default: "on",
        accepts: "on or off",
        good: ["on", "OFF", "1"], bad: ["sometimes"],
        doc: "reuse the pages of freed large blocks, with both allocators",
    }
    RecycleMin {
        name: "FLARENA_RECYCLE_MIN",
        // No tensor is larger than the highest value.
        value: recycle_min_bytes: u64, read by values::size_between [defaults::RECYCLE_MIN_BYTES_LOWEST, 1 << 40], shown by values::size,
        default: "512K", // docs/design/tuning.md has the curve
        accepts: "a size from 64K to 1T",
        good: ["64K", "65536", "1T", "2MiB"], bad: ["1", "65535", "1025G", "100T", "much"],
        doc: "the smallest block that the recycler serves",
    }
    DecayMs {
        name: "FLARENA_DECAY_MS",
        value: decay_ms: u32, read by values::number_between [0, 24 * 3600 * 1000], shown by identity,
        default: "300", // docs/design/tuning.md
        accepts: "a number of milliseconds up to 86400000",
        good: ["0", "86400000"], bad: ["-1", "soon", "86400001"],
        removed: Removed { value: "auto", replacement: "300" },
        doc: "how many milliseconds the recycler keeps an unused page",
    }
    MemoryLimit {
        name: "FLARENA_MEMORY_LIMIT",
        optional: memory_limit_bytes: u64, read by values::size_between [1, u64::MAX], shown by values::size,
        default: "the cgroup limit",
        accepts: "a size such as 8G",
        good: ["8G", "8 GB", "1"], bad: ["0", "lots", "-5G", "1X", "8 G B"],
        usual: true,
        doc: "soft limit: the process returns free memory when less than a tenth of it is left, and at the large allocation that would cross it",
    }
    AtLimit {
        name: "FLARENA_AT_LIMIT",
        value: at_limit: AtLimit, read by AtLimit::parse, shown by AtLimit::name,
        default: "warn",
        accepts: "warn, fail or off",
        good: ["warn", "Fail", "off"], bad: ["kill", "2"],
        usual: true,
        doc: "an allocation of 1 MB or more that cannot fit below the memory limit of the control group; warn: one line names it; fail: it also fails with ENOMEM (MemoryError in Python), and spares room for the rest of the group",
    }
    Pressure {
        name: "FLARENA_PRESSURE",
        value: pressure: bool, read by values::auto, shown by values::auto_off,
        default: "auto",
        accepts: "auto or off",
        good: ["auto", "off", "on"], bad: ["high"],
        doc: "return free memory when the kernel reports memory pressure (PSI, cgroup)",
    }
    Huge {
        name: "FLARENA_HUGE",
        value: huge: Choice, read by Choice::parse, shown by Choice::name,
        default: "auto",
        accepts: "auto, off or 2M",
        good: ["auto", "off", "2M", "2m"], bad: ["64K", "4M", "always"],
        doc: "huge pages for large blocks; auto: sizes below 2 MB that the system gives on request (see flarena doctor --all); 2M: also 2 MB",
    }
    Governor {
        name: "FLARENA_GOVERNOR",
        value: governor: bool, read by values::auto, shown by values::auto_off,
        default: "auto",
        accepts: "auto or off",
        good: ["auto", "off", "on"], bad: ["never"],
        doc: "background thread in processes that hold much memory; off: no thread and no control channel",
    }
    Sites {
        name: "FLARENA_SITES",
        value: sites: bool, read by parse::boolean, shown by values::on_off,
        default: "off",
        accepts: "on or off",
        good: ["on", "0"], bad: ["some"],
        usual: true,
        doc: "record which line of the program allocates each large block, and a sample of the small ones",
    }
    SitesSample {
        name: "FLARENA_SITES_SAMPLE",
        // Below, recording costs more than the program; above, hardly a block is recorded.
        value: sites_sample_bytes: u64, read by values::size_or_off_between [1 << 10, 1 << 30], shown by values::size_or_off,
        default: "512K",
        accepts: "a size from 1K to 1G, or off",
        good: ["1K", "512K", "1G", "off", "65536"], bad: ["1", "1023", "2G", "some"],
        doc: "with FLARENA_SITES: sample one small block per this many allocated bytes; off: large blocks only",
    }
    Gc {
        name: "FLARENA_GC",
        value: gc: bool, read by values::auto, shown by values::auto_off,
        default: "auto",
        accepts: "auto or off",
        good: ["auto", "off", "on"], bad: ["often"],
        doc: "run Python's garbage collector when large blocks have grown, not only by the number of objects",
    }
    GcRounds {
        name: "NVFLARE_CLIENT_MEMORY_GC_ROUNDS",
        value: gc_rounds: u32, read by values::number_between [0, u32::MAX], shown by identity,
        default: "0",
        accepts: "a number of rounds, 0 for never",
        good: ["0", "1", "5", "4294967295"], bad: ["-1", "often", "1.5", "4294967296"],
        usual: true,
        doc: "an NVFlare client collects garbage and returns free memory after every so many results; 0: never",
    }
    CudaEmptyCache {
        name: "NVFLARE_CUDA_EMPTY_CACHE",
        value: cuda_empty_cache: bool, read by parse::boolean, shown by identity,
        default: "false",
        accepts: "true or false",
        good: ["true", "0", "Yes"], bad: ["maybe", "2"],
        doc: "true: the cleanup of NVFLARE_CLIENT_MEMORY_GC_ROUNDS also empties PyTorch's CUDA cache",
    }
    Pools {
        name: "FLARENA_POOLS",
        value: pools: bool, read by values::auto, shown by values::auto_off,
        default: "auto",
        accepts: "auto or off",
        good: ["auto", "Off", "on", "0"], bad: ["some", "gpu"],
        removed: Removed { value: "all", replacement: "auto" },
        doc: "return the free memory of pools beside malloc (Arrow, PyTorch's pinned memory)",
    }
    Log {
        name: "FLARENA_LOG",
        value: log: LogLevel, read by LogLevel::parse, shown by LogLevel::name,
        default: "warn",
        accepts: "off, warn or info",
        good: ["off", "Warn", "info"], bad: ["debug"],
        usual: true,
        doc: "messages of the library on stderr; info also prints the effective settings once",
    }
}

/// The row of a key.
pub fn setting(key: Key) -> &'static Setting {
    &TABLE[key as usize]
}

impl Settings {
    /// `FLARENA_ALLOCATOR` if it is set, else NVFlare's switch.
    pub fn allocator(&self) -> Allocator {
        self.named_allocator.unwrap_or(if self.jemalloc_preload {
            Allocator::Jemalloc
        } else {
            Allocator::Glibc
        })
    }

    /// The values that differ from the defaults: `FLARENA_GC=off FLARENA_SITES=on`. Values that are
    /// free text are left out, and those that a marker contains in a field of its own.
    pub fn changed(&self) -> String {
        const ELSEWHERE: [Key; 5] = [
            Key::JemallocPreload,
            Key::Allocator,
            Key::Role,
            Key::ArenaMax, // flarena sets it for children
            Key::Profile,
        ];
        let rows = TABLE.iter().filter(|row| !ELSEWHERE.contains(&row.key));
        let changed = rows.filter_map(|row| {
            let value = self.shown(row.key)?;
            let is_default = Settings::DEFAULT.shown(row.key).as_ref() == Some(&value);
            (!is_default).then(|| format!("{}={value}", row.name))
        });
        changed.collect::<Vec<_>>().join(" ")
    }

    /// Whether a feature needs the Python hooks: markers, garbage collections, allocation sites,
    /// the cleanup after results, or NVFlare's own cleanup, which purges jemalloc.
    pub fn wants_hooks(&self) -> bool {
        let is_jemalloc = self.allocator() == Allocator::Jemalloc;
        self.profile || self.gc || self.sites || self.gc_rounds > 0 || is_jemalloc
    }

    /// A sentence for each value that has no effect without another setting.
    pub fn without_effect(
        &self,
        is_set: impl Fn(Key) -> bool,
    ) -> impl Iterator<Item = &'static str> {
        let is_unmarked = is_set(Key::MarkerFile) && !is_set(Key::Profile);
        let is_kept = self.cuda_empty_cache && self.gc_rounds == 0;
        [
            (is_unmarked, "FLARENA_MARKER_FILE has no effect: markers are off without NVFLARE_CLIENT_MEMORY_PROFILE=1"),
            (is_kept, "NVFLARE_CUDA_EMPTY_CACHE=true: flarena empties no CUDA cache, because NVFLARE_CLIENT_MEMORY_GC_ROUNDS is 0"),
        ]
        .into_iter()
        .filter_map(|(holds, sentence)| holds.then_some(sentence))
    }

    /// Why `FLARENA_GC=auto` has no effect. Collections depend on the recycler's byte count.
    pub fn why_gc_is_inactive(&self) -> Option<&'static str> {
        let reason = "FLARENA_RECYCLE=off: the bytes of large blocks are not counted, so FLARENA_GC=auto runs no collections";
        (self.gc && !self.recycle).then_some(reason)
    }
}

/// A value that is not used as it stands. Report it in one line and continue with `used`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem<'a> {
    pub key: Key,
    pub value: &'a [u8],
    pub fault: Fault,
    pub used: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    NotAccepted,
    /// Only earlier versions accepted the value.
    Removed,
}

impl Problem<'_> {
    /// The problem as one sentence. `shown` is the value, made safe for the reader's terminal. Formatting does not allocate.
    pub fn sentence(&self, shown: impl Display) -> impl Display {
        let (Setting { name, accepts, .. }, used) = (setting(self.key), self.used);
        fmt::from_fn(move |f| match self.fault {
            Fault::NotAccepted => write!(f, "{name}={shown} is not {accepts}; using {used}"),
            Fault::Removed => write!(f, "{name}={shown} was removed; {used} is used"),
        })
    }
}

/// Reads every setting. `get` returns the raw value of a variable. `report` receives each value
/// that is not used as it stands. An empty value counts as unset. `MALLOC_CONF` is checked in
/// [`crate::malloc_conf`]; the marker file accepts any path.
pub fn read<'a>(
    mut get: impl FnMut(Key) -> Option<&'a [u8]>,
    mut report: impl FnMut(Problem<'a>),
) -> Settings {
    let mut settings = Settings::DEFAULT;
    for row in TABLE {
        let Some(value) = get(row.key).filter(|value| !value.trim_ascii().is_empty()) else {
            continue;
        };
        let (key, text) = (row.key, value.trim_ascii());
        if settings.set(key, text) {
            continue;
        }
        let is_removed = |removed: &&Removed| parse::is_one_of(text, &[removed.value]);
        let (fault, used) = match row.removed.iter().find(is_removed) {
            Some(removed) => {
                settings.set(key, removed.replacement.as_bytes());
                (Fault::Removed, removed.replacement)
            }
            None => (Fault::NotAccepted, fallback(row, &settings)),
        };
        report(Problem {
            key,
            value,
            fault,
            used,
        });
    }
    settings
}

/// The value used instead of a bad one: the default, and for the allocator the one it selects.
fn fallback(row: &Setting, settings: &Settings) -> &'static str {
    match (row.key, settings.jemalloc_preload) {
        (Key::Allocator, true) => "jemalloc, selected by NVFLARE_ENABLE_JEMALLOC_PRELOAD",
        (Key::Allocator, false) => "glibc",
        _ => row.default,
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod python_tests;
