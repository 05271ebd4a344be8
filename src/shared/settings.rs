//! THE table of settings, and the reading of it. Bytes in, [`Settings`] out; nothing here
//! allocates, so the shim may call it from the first `malloc` of a process.

use crate::{defaults, parse};

/// One row of the table. README, `flarena run --help` and the doctor are tested against it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub key: Key,
    /// The environment variable.
    pub name: &'static str,
    /// What holds when it is not set.
    pub default: &'static str,
    /// The values it takes, as a reader of an error message wants to see them.
    pub accepts: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

macro_rules! settings {
    ($($key:ident $name:literal $default:literal $accepts:literal $doc:literal)*) => {
        /// Names a row of [`TABLE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Key { $($key),* }

        /// Every setting that flarena reads, in the order in which it is documented.
        pub const TABLE: &[Setting] = &[$(Setting {
            key: Key::$key, name: $name, default: $default, accepts: $accepts, doc: $doc,
        }),*];
    };
}

settings! {
    JemallocPreload "NVFLARE_ENABLE_JEMALLOC_PRELOAD" "false" "true or false"
        "true: jemalloc serves this process, else glibc"
    Allocator "FLARENA_ALLOCATOR" "(from NVFLARE_ENABLE_JEMALLOC_PRELOAD)" "jemalloc or glibc"
        "the allocator by name; wins over NVFLARE_ENABLE_JEMALLOC_PRELOAD"
    Role "FLARENA_ROLE" "(detected)" "client or server"
        "sets the arena default; detected from NVFlare's command lines, else client"
    ArenaMax "MALLOC_ARENA_MAX" "2 client, 4 server" "a number of arenas, 1 or more"
        "glibc arenas; your own value wins"
    MallocConf "MALLOC_CONF" "dirty_decay_ms:5000,muzzy_decay_ms:5000" "jemalloc options"
        "jemalloc options; your keys win over the defaults, key by key"
    Profile "NVFLARE_CLIENT_MEMORY_PROFILE" "off" "true or false"
        "emit an RSS marker at each stage"
    MarkerFile "FLARENA_MARKER_FILE" "(stderr only)" "a path, %p for the pid"
        "also append markers as JSON lines to this file"
    Recycle "FLARENA_RECYCLE" "on" "on or off"
        "recycle the pages of large blocks, under both allocators"
    RecycleMin "FLARENA_RECYCLE_MIN" "1M" "a size from 64K to 1T"
        "the smallest block that the recycler serves"
    DecayMs "FLARENA_DECAY_MS" "300" "a number of milliseconds up to 86400000"
        "how long an unused recycled page is kept"
    MemoryLimit "FLARENA_MEMORY_LIMIT" "(cgroup limit)" "a size such as 8G"
        "soft limit: memory is returned before it is reached"
    Pressure "FLARENA_PRESSURE" "auto" "auto or off"
        "return memory when the kernel reports pressure (PSI, cgroup)"
    Log "FLARENA_LOG" "warn" "off, warn or info"
        "what the library says on stderr; info prints the effective settings once"
}

/// The row of a key.
pub fn setting(key: Key) -> &'static Setting {
    &TABLE[key as usize]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    Glibc,
    Jemalloc,
}

impl Allocator {
    pub fn name(self) -> &'static str {
        match self {
            Allocator::Glibc => "glibc",
            Allocator::Jemalloc => "jemalloc",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Off,
    Warn,
    Info,
}

impl LogLevel {
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Off => "off",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
        }
    }
}

/// What the user asked for, defaults filled in. `None` means: not the user's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub allocator: Allocator,
    pub role: Option<Role>,
    pub arena_max: Option<u32>,
    pub profile: bool,
    pub recycle: bool,
    pub recycle_min_bytes: u64,
    pub decay_ms: u64,
    pub memory_limit_bytes: Option<u64>,
    pub pressure: bool,
    pub log: LogLevel,
}

impl Settings {
    /// What holds when nothing is set.
    pub const DEFAULT: Settings = Settings {
        allocator: Allocator::Glibc,
        role: None,
        arena_max: None,
        profile: false,
        recycle: true,
        recycle_min_bytes: defaults::RECYCLE_MIN_BYTES,
        decay_ms: defaults::DECAY_MS,
        memory_limit_bytes: None,
        pressure: true,
        log: LogLevel::Warn,
    };
}

/// A value that could not be used. Say it in one line; go on with `used`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem<'a> {
    pub key: Key,
    pub value: &'a [u8],
    pub used: &'static str,
}

/// Reads every setting. `get` answers with the raw value of a variable, `report` takes what could
/// not be used. `MALLOC_CONF` has a module of its own ([`crate::malloc_conf`]); the marker file is
/// a path, and every path is one.
pub fn read<'a>(
    get: impl FnMut(Key) -> Option<&'a [u8]>,
    report: impl FnMut(Problem<'a>),
) -> Settings {
    let mut reader = Reader { get, report };
    let mut s = Settings::DEFAULT;
    let preload = reader.value(Key::JemallocPreload, parse::boolean, "false");
    if preload == Some(true) {
        s.allocator = Allocator::Jemalloc;
    }
    let from_preload = match s.allocator {
        Allocator::Glibc => "glibc",
        Allocator::Jemalloc => "jemalloc, as NVFLARE_ENABLE_JEMALLOC_PRELOAD asks",
    };
    s.allocator = reader
        .value(Key::Allocator, allocator, from_preload)
        .unwrap_or(s.allocator);
    s.role = reader.value(Key::Role, role, "the detected role");
    s.arena_max = reader.value(Key::ArenaMax, arena_max, "2 for a client, 4 for a server");
    s.profile = reader
        .value(Key::Profile, parse::boolean, "off")
        .unwrap_or(s.profile);
    s.recycle = reader
        .value(Key::Recycle, parse::boolean, "on")
        .unwrap_or(s.recycle);
    s.recycle_min_bytes = reader
        .value(Key::RecycleMin, recycle_min, "1M")
        .unwrap_or(s.recycle_min_bytes);
    s.decay_ms = reader
        .value(Key::DecayMs, decay_ms, "300")
        .unwrap_or(s.decay_ms);
    s.memory_limit_bytes = reader.value(Key::MemoryLimit, limit, "the cgroup limit");
    s.pressure = reader
        .value(Key::Pressure, pressure, "auto")
        .unwrap_or(s.pressure);
    s.log = reader.value(Key::Log, log, "warn").unwrap_or(s.log);
    s
}

struct Reader<G, R> {
    get: G,
    report: R,
}

impl<'a, G, R> Reader<G, R>
where
    G: FnMut(Key) -> Option<&'a [u8]>,
    R: FnMut(Problem<'a>),
{
    /// The parsed value; an empty one counts as not set, a bad one is reported.
    fn value<T>(
        &mut self,
        key: Key,
        parse: impl Fn(&[u8]) -> Option<T>,
        used: &'static str,
    ) -> Option<T> {
        let value = (self.get)(key).filter(|v| !parse::trimmed(v).is_empty())?;
        let parsed = parse(parse::trimmed(value));
        if parsed.is_none() {
            (self.report)(Problem { key, value, used });
        }
        parsed
    }
}

fn allocator(text: &[u8]) -> Option<Allocator> {
    if text.eq_ignore_ascii_case(b"glibc") {
        Some(Allocator::Glibc)
    } else if text.eq_ignore_ascii_case(b"jemalloc") {
        Some(Allocator::Jemalloc)
    } else {
        None
    }
}

fn role(text: &[u8]) -> Option<Role> {
    if text.eq_ignore_ascii_case(b"client") {
        Some(Role::Client)
    } else if text.eq_ignore_ascii_case(b"server") {
        Some(Role::Server)
    } else {
        None
    }
}

fn arena_max(text: &[u8]) -> Option<u32> {
    parse::number(text)
        .and_then(|n| u32::try_from(n).ok())
        .filter(|&n| (1..=65_536).contains(&n))
}

fn recycle_min(text: &[u8]) -> Option<u64> {
    let range = defaults::RECYCLE_MIN_BYTES_LOWEST..=defaults::RECYCLE_MIN_BYTES_HIGHEST;
    parse::size_bytes(text).filter(|n| range.contains(n))
}

fn decay_ms(text: &[u8]) -> Option<u64> {
    parse::number(text).filter(|&n| n <= defaults::DECAY_MS_HIGHEST)
}

fn limit(text: &[u8]) -> Option<u64> {
    parse::size_bytes(text).filter(|&n| n > 0)
}

/// `auto` and `off`; also the words of a boolean, because people try them.
fn pressure(text: &[u8]) -> Option<bool> {
    if text.eq_ignore_ascii_case(b"auto") {
        return Some(true);
    }
    parse::boolean(text)
}

fn log(text: &[u8]) -> Option<LogLevel> {
    [LogLevel::Off, LogLevel::Warn, LogLevel::Info]
        .into_iter()
        .find(|level| text.eq_ignore_ascii_case(level.name().as_bytes()))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
