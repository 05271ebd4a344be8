//! Messages about settings: one line per bad value, and with `FLARENA_LOG=info` the values in force.

use flarena_shared::settings::{self, setting, Key, LogLevel};
use flarena_shared::{fnv, VERSION};

use crate::backends::{choose, jemalloc};
use crate::report::{log, stats};
use flarena_sys::config;
use flarena_sys::env::{Extra, Snapshot};
use flarena_sys::identity::{identity, FIRST, NEAREST};

/// Writes one line per variable that could not be used, once for a process and its descendants.
/// Returns the fingerprint of the lines.
pub fn report_problems(environment: &Snapshot) -> Option<String> {
    let mut lines = Vec::new();
    let mut seen = fnv::EMPTY;
    let mut add = |name: &str, value: &[u8], line: String| {
        seen = fnv::append(fnv::append(seen, name.as_bytes()), value);
        lines.push(line);
    };
    settings::read(
        |key| environment.setting(key),
        |problem| {
            let line = problem.sentence(log::Quoted(problem.value)).to_string();
            match problem.key {
                // Children get a corrected arena count, so they do not see this problem.
                Key::ArenaMax => add("", b"", line),
                key => add(setting(key).name, problem.value, line),
            }
        },
    );
    if let Some(line) = problem_of_malloc_conf(environment) {
        let value = environment.setting(Key::MallocConf).unwrap_or_default();
        add(setting(Key::MallocConf).name, value, line);
    }
    let removed = environment.extra(Extra::Removed).unwrap_or_default();
    if !removed.is_empty() {
        let line = settings::NAME_WAS_REMOVED.to_owned();
        add(settings::REMOVED_NAME, b"", line);
    }
    let seen = format!("{seen:016x}");
    if lines.is_empty() || environment.inherited("warned") == Some(seen.as_bytes()) {
        return None;
    }
    for line in lines {
        log::warn(format_args!("{line}"));
    }
    Some(seen)
}

/// One line that names the first bad pair and counts the others.
fn problem_of_malloc_conf(environment: &Snapshot) -> Option<String> {
    let mut faults = Vec::new();
    if choose::is_jemalloc() {
        jemalloc::faults(environment, |text, fault| faults.push((text, fault)));
    }
    let ((text, fault), others) = faults.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    Some(format!(
        "MALLOC_CONF: {} {fault}{more}; ignored, using {}",
        log::Quoted(text),
        log::Quoted(jemalloc::effective().as_bytes()),
    ))
}

/// Names settings that have no effect without another one. In silence in most processes: the first NVFlare process says it,
/// or with `FLARENA_LOG=info` the first process. A launcher has said it itself.
pub fn report_without_effect(environment: &Snapshot) {
    let is_first = |field| environment.inherited(field).is_none();
    let is_asked = match config::settings().log {
        LogLevel::Info => is_first(FIRST),
        LogLevel::Off | LogLevel::Warn => is_first(NEAREST) && identity().proc.is_some(),
    };
    if !is_asked || environment.extra(Extra::Launched).is_some() {
        return;
    }
    let is_set = |key| {
        environment
            .setting(key)
            .is_some_and(|value| !value.is_empty())
    };
    for sentence in config::settings().without_effect(is_set) {
        log::warn(format_args!("{sentence}"));
    }
}

/// `FLARENA_LOG=info`: writes the settings in force in one line, once for a process and its
/// descendants with the same settings. Returns the fingerprint of the line.
pub fn report_start(environment: &Snapshot, owner: bool, hidden: bool) -> Option<String> {
    if config::settings().log < LogLevel::Info {
        return None;
    }
    if !owner {
        log::info(format_args!(
            "inactive: another allocator serves malloc in this process; to use flarena, remove that \
             one from LD_PRELOAD, or link the program without it"
        ));
        return None;
    }
    if !hidden {
        log::info(format_args!(
            "mallctl stays visible, because the program uses it, or the symbol table cannot be written: \
             NVFlare takes this process for one with jemalloc"
        ));
    }
    let settings: Vec<String> = stats::effective_settings()
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    let settings = settings.join(" ");
    let fingerprint = format!("{:016x}", fnv::append(fnv::EMPTY, settings.as_bytes()));
    if environment.inherited("told") == Some(fingerprint.as_bytes()) {
        return None;
    }
    log::info(format_args!("{VERSION} {settings}"));
    if let Some(reason) = config::settings().why_gc_is_inactive() {
        log::info(format_args!("{reason}"));
    }
    Some(fingerprint)
}
