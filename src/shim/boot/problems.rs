//! Messages about settings: one line per bad value, and with `FLARENA_LOG=info` the values in force.

use flarena_shared::settings::{self, setting, Fault, Key, LogLevel, Problem};
use flarena_shared::{fnv, VERSION};

use crate::backends::{choose, jemalloc};
use crate::report::{log, stats};
use flarena_sys::config;
use flarena_sys::env::{Extra, Snapshot};
use flarena_sys::identity::{identity, FIRST, NEAREST};

/// Writes one line per variable that could not be used, once for a process and its descendants.
/// Returns the fingerprint of the lines.
pub fn report_problems(environment: &Snapshot) -> Option<String> {
    let mut seen = fnv::EMPTY;
    let mut any = false;
    each_problem(environment, |problem| {
        any = true;
        // Children get a corrected arena count, so they do not see this problem.
        if problem.key != Key::ArenaMax {
            seen = fnv::append(seen, setting(problem.key).name.as_bytes());
            seen = fnv::append(seen, problem.value);
        }
    });
    let removed = environment.extra(Extra::Removed);
    let has_removed = removed.is_some_and(|value| !value.is_empty());
    if has_removed {
        any = true;
        seen = fnv::append(seen, settings::REMOVED_NAME.as_bytes());
    }
    let seen = format!("{seen:016x}");
    if !any || environment.inherited("warned") == Some(seen.as_bytes()) {
        return None;
    }
    each_problem(environment, |problem| say_problem(&problem));
    report_malloc_conf(environment);
    if has_removed {
        log::warn(format_args!("{}", settings::NAME_WAS_REMOVED));
    }
    Some(seen)
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

/// Visits the problems of the settings table; `MALLOC_CONF` is one problem, with its whole value.
fn each_problem<'a>(environment: &'a Snapshot, mut report: impl FnMut(Problem<'a>)) {
    settings::read(|key| environment.setting(key), &mut report);
    let mut faulty = false;
    jemalloc::faults(environment, |_, _| faulty = true);
    if faulty && choose::is_jemalloc() {
        let value = environment.setting(Key::MallocConf).unwrap_or_default();
        report(Problem {
            key: Key::MallocConf,
            value,
            fault: Fault::NotAccepted,
            used: "",
        });
    }
}

fn say_problem(problem: &Problem<'_>) {
    if problem.key != Key::MallocConf {
        let value = log::Quoted(problem.value);
        log::warn(format_args!("{}", problem.sentence(value)));
    }
}

/// One line that names the first bad pair and counts the others.
fn report_malloc_conf(environment: &Snapshot) {
    if !choose::is_jemalloc() {
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
    log::warn(format_args!(
        "MALLOC_CONF: {} {fault}{more}; ignored, using {}",
        log::Quoted(text),
        log::Quoted(jemalloc::effective().as_bytes()),
    ));
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
