//! The constructor: what must be done once, at load, before the program runs.

use std::ffi::{c_int, CString};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use flarena_shared::malloc_conf::Fault;
use flarena_shared::role;
use flarena_shared::settings::{self, setting, Key, LogLevel, Problem};
use flarena_shared::VERSION;

use crate::env::{self, Extra, Snapshot};
use crate::{
    backend, callers, foreign, fork, identity, jemalloc, mark, procfs, say, stats, symbols,
};

static OWNS_MALLOC: AtomicBool = AtomicBool::new(false);
/// The arena count in force; 0 when it was left to glibc.
static ARENA_MAX: AtomicU32 = AtomicU32::new(0);

const M_ARENA_MAX: c_int = -8;

/// Runs before jemalloc's constructor and keeps errno.
pub fn load() {
    let errno = procfs::errno();
    let owner = symbols::owns_malloc();
    OWNS_MALLOC.store(owner, Relaxed);
    if owner {
        backend::choose();
    } else {
        foreign::configure();
        backend::stand_down();
    }
    // Looked up now: later the loader's lock may be held by a thread that waits for us.
    symbols::glibc();
    say::configure(backend::settings().log);
    let environment = backend::environment();
    answer_probe(environment);
    let hidden = owner && backend::is_jemalloc() || symbols::hide_jemalloc_interface();
    callers::configure(symbols::inside_us());
    mark::configure();
    Legacy {
        arena_max: apply_arena_default(environment, owner),
        warned: report_problems(environment),
        told: report_start(environment, owner, hidden),
    }
    .export(environment);
    fork::register();
    if mark::is_on() && !identity::identity().is_helper {
        mark::event("load");
    }
    procfs::set_errno(errno);
}

/// False when another allocator stands before us: then we keep out of its way.
pub fn owns_malloc() -> bool {
    OWNS_MALLOC.load(Relaxed)
}

/// The number of glibc arenas that was chosen; `None` when it is glibc's business.
pub fn arena_max() -> Option<u32> {
    Some(ARENA_MAX.load(Relaxed)).filter(|&n| n > 0)
}

/// A launcher asks, in a child made for it, whether the library loads here.
fn answer_probe(environment: &Snapshot) {
    if environment.extra(Extra::Probe) != Some(b"1") {
        return;
    }
    let line = format!("flarena {VERSION}\n");
    // SAFETY: the pointer and the length are those of a live string; _exit ends the process.
    unsafe {
        let written = libc::write(libc::STDOUT_FILENO, line.as_ptr().cast(), line.len());
        libc::_exit(c_int::from(written != line.len() as isize));
    }
}

/// The user's own arena count wins; else the default of the role holds, for this process by
/// mallopt (glibc has read its environment by now) and for children by the environment. Answers
/// with the default, so that children can tell it from a choice of the user's.
fn apply_arena_default(environment: &Snapshot, owner: bool) -> Option<String> {
    let tunables = environment.extra(Extra::GlibcTunables).unwrap_or_default();
    if contains(tunables, b"glibc.malloc.arena_max") {
        return None;
    }
    let given = backend::settings().arena_max;
    if given.is_some() && given != inherited_arena_max(environment) {
        ARENA_MAX.store(given.unwrap_or(0), Relaxed);
        return None;
    }
    let arenas = role::arenas(identity::identity().role);
    ARENA_MAX.store(arenas, Relaxed);
    if owner && !backend::is_jemalloc() {
        // SAFETY: it takes any numbers.
        unsafe { stats::mallopt(M_ARENA_MAX, arenas as c_int) };
    }
    export(setting(Key::ArenaMax).name, &arenas.to_string());
    Some(arenas.to_string())
}

/// The arena count that a shimmed parent exported as its default, not as the user's choice.
fn inherited_arena_max(environment: &Snapshot) -> Option<u32> {
    let value = inherited(environment, "arena_max")?;
    u32::try_from(flarena_shared::parse::number(value)?).ok()
}

/// One field of `FLARENA_INHERITED`, which reads `name=value;name=value`.
fn inherited<'a>(environment: &'a Snapshot, name: &str) -> Option<&'a [u8]> {
    let fields = environment.extra(Extra::Inherited)?.split(|&b| b == b';');
    fields
        .filter_map(|field| field.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .next()
}

/// What this process tells its children in `FLARENA_INHERITED`, beside what its parent told it.
#[derive(Default)]
struct Legacy {
    arena_max: Option<String>,
    warned: Option<String>,
    told: Option<String>,
}

impl Legacy {
    fn export(self, environment: &Snapshot) {
        let mut text = String::new();
        let fields = [
            ("arena_max", self.arena_max),
            ("warned", self.warned),
            ("told", self.told),
        ];
        for (name, value) in fields {
            let parents = || Some(String::from_utf8_lossy(inherited(environment, name)?).into());
            if let Some(value) = value.or_else(parents) {
                let separator = if text.is_empty() { "" } else { ";" };
                text.push_str(&format!("{separator}{name}={value}"));
            }
        }
        if !text.is_empty() {
            export(env::INHERITED, &text);
        }
    }
}

fn export(name: &str, value: &str) {
    if env::is_secure() {
        return;
    }
    if let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) {
        // SAFETY: both are NUL-terminated and copied; no other thread runs yet.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// One line for each variable that could not be used, once for a process and its descendants:
/// answers with the fingerprint of what was said.
fn report_problems(environment: &Snapshot) -> Option<String> {
    let mut seen = Fingerprint::default();
    let mut any = false;
    each_problem(environment, |problem| {
        any = true;
        // A bad arena count is mended in what the children get, so they will not see it.
        if problem.key != Key::ArenaMax {
            seen.add(setting(problem.key).name.as_bytes());
            seen.add(problem.value);
        }
    });
    if !any || inherited(environment, "warned") == Some(seen.text().as_bytes()) {
        return None;
    }
    each_problem(environment, |problem| say_problem(&problem));
    report_malloc_conf(environment);
    Some(seen.text())
}

/// The problems of the table; `MALLOC_CONF` counts with its whole value.
fn each_problem<'a>(environment: &'a Snapshot, mut report: impl FnMut(Problem<'a>)) {
    settings::read(|key| environment.setting(key), &mut report);
    let mut faulty = false;
    jemalloc::faults(environment, |_, _| faulty = true);
    if faulty && backend::is_jemalloc() {
        let value = environment.setting(Key::MallocConf).unwrap_or_default();
        report(Problem {
            key: Key::MallocConf,
            value,
            used: "",
        });
    }
}

fn say_problem(problem: &Problem<'_>) {
    if problem.key == Key::MallocConf {
        return;
    }
    let row = setting(problem.key);
    say::warn(format_args!(
        "{}={} is not {}; using {}",
        row.name,
        say::Quoted(problem.value),
        row.accepts,
        problem.used,
    ));
}

/// Names the first bad pair and counts the others: one line.
fn report_malloc_conf(environment: &Snapshot) {
    if !backend::is_jemalloc() {
        return;
    }
    let (mut first, mut count) = (None, 0u32);
    jemalloc::faults(environment, |text, fault| {
        first.get_or_insert((text, fault));
        count += 1;
    });
    let Some((text, fault)) = first else { return };
    let more = if count > 1 {
        format!(" (and {} more)", count - 1)
    } else {
        String::new()
    };
    say::warn(format_args!(
        "MALLOC_CONF: {} {}{more}; ignored, using {}",
        say::Quoted(text),
        describe(fault),
        say::Quoted(jemalloc::options()),
    ));
}

fn describe(fault: Fault) -> String {
    match fault {
        Fault::UnknownKey(Some(near)) => {
            format!("is no option of jemalloc 5.3 (did you mean {near}?)")
        }
        Fault::UnknownKey(None) => "is no option of jemalloc 5.3".to_owned(),
        Fault::BadValue => "has a value that this option does not take".to_owned(),
        Fault::Malformed => "is not of the form key:value".to_owned(),
        Fault::NeedsProfiling => {
            "needs a jemalloc built with profiling, which this one is not".to_owned()
        }
        Fault::TooLong => "is beyond what fits".to_owned(),
    }
}

/// `FLARENA_LOG=info`: the effective settings in one line, once for a process and those of its
/// descendants that have the same.
fn report_start(environment: &Snapshot, owner: bool, hidden: bool) -> Option<String> {
    if backend::settings().log < LogLevel::Info {
        return None;
    }
    if !owner {
        say::info(format_args!(
            "standing down: another allocator in this process comes first; remove it from \
             LD_PRELOAD, or link the program without it, to use flarena"
        ));
        return None;
    }
    if !hidden {
        say::info(format_args!(
            "mallctl stays visible: the symbol table could not be written"
        ));
    }
    let settings: Vec<String> = stats::effective_settings()
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    let mut told = Fingerprint::default();
    told.add(settings.join(" ").as_bytes());
    if inherited(environment, "told") == Some(told.text().as_bytes()) {
        return None;
    }
    say::info(format_args!("{VERSION} {}", settings.join(" ")));
    Some(told.text())
}

/// FNV-1a: tells whether an ancestor has said the same.
struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}
