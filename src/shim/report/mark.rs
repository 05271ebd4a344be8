//! Markers: one line on stderr in NVFlare's form, and one JSON line in `FLARENA_MARKER_FILE`.
//!
//! A marker comes from the program (`flarena_mark`) or from the library (`event`, `exit`). The
//! constructor decides whether markers are on.
//!
//! Invariant: the marker `exit` waits for no lock. A signal handler may call `exit`, and the code that it
//! interrupted may hold a lock of the backend, of the recycler or of this folder. So this marker
//! allocates from the reserve, and lacks the values that only a lock protects.

use flarena_sys::errno::{self, SavedErrno};
use std::ffi::{c_char, c_int, c_long, CStr};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use flarena_shared::defaults::MALLOC_CONF;
use flarena_shared::marker::{self, Marker, ShortHash};
use flarena_shared::role;
use flarena_shared::settings::{setting, Key};
use flarena_shared::stages::Stage;

use crate::backends::choose;
use crate::backends::jemalloc::ctl;
use crate::backends::reserve;
use crate::garbage;
use crate::launch::{self, StartTrigger};
use crate::report::memory::{self, Memory};
use crate::report::panic::contain_call;
use crate::report::{buffer, history, log, marker_file, sites};
use flarena_sites as allocation_sites;
use flarena_sys::env::Extra;
use flarena_sys::identity::{self, identity};
use flarena_sys::sync::lock::Lock;
use flarena_sys::thread::signal_stack_bytes;
use flarena_sys::{config, env, owner, proc::procfs, seccomp, time};
use rustix::time::ClockId;

static STATE: AtomicU8 = AtomicU8::new(OFF);
const OFF: u8 = 0;
const ON: u8 = 1;
/// Off because the setting is not set. The first marker logs how to turn markers on.
const NOT_SET: u8 = 2;

const NOT_MARKED: c_int = -1;

static SEQUENCE: AtomicU64 = AtomicU64::new(0);
/// A marker with the fields that only one marker of a process has is in the file, or on its way.
static IS_DESCRIBED: AtomicBool = AtomicBool::new(false);

/// The program's last marker.
static LAST: Lock<Option<LastMarker>> = Lock::new(None);

#[derive(Clone)]
pub struct LastMarker {
    pub stage: String,
    pub site: Option<String>,
    pub round: Option<i64>,
}

/// Called once by the constructor.
pub fn configure() {
    let is_set = config::environment()
        .setting(Key::Profile)
        .is_some_and(|value| !value.trim_ascii().is_empty());
    let state = match (config::settings().profile, is_set) {
        (true, _) => ON,
        (false, true) => OFF,
        (false, false) => NOT_SET,
    };
    STATE.store(state, Relaxed);
}

#[inline(always)]
pub fn is_on() -> bool {
    STATE.load(Relaxed) == ON
}

/// True if markers are on, and the process is not a small program of a script.
pub fn is_on_here() -> bool {
    is_on() && !identity().is_helper
}

/// The number of markers of this process so far.
pub fn written() -> u64 {
    SEQUENCE.load(Relaxed)
}

/// The body of `flarena_mark`. Returns 0, or -1 and errno if the marker was not written.
///
/// # Safety
/// Both are NULL or NUL-terminated.
#[inline]
pub unsafe fn mark(stage: *const c_char, site: *const c_char, round: c_long) -> c_int {
    // SAFETY: the caller passes NULL or NUL-terminated strings. Nothing is copied to NULL.
    unsafe { mark_and_copy(stage, site, round, ptr::null_mut(), 0) }
}

/// The body of `flarena_mark_and_copy`: marks, and copies the line of stderr without its newline. Copies
/// an empty line if markers are off.
///
/// # Safety
/// The names are NULL or NUL-terminated. `line` is NULL or has room for `len` bytes.
#[inline]
pub unsafe fn mark_and_copy(
    stage: *const c_char,
    site: *const c_char,
    round: c_long,
    line: *mut c_char,
    len: usize,
) -> c_int {
    // SAFETY: the caller passes NULL or a buffer of `len` bytes.
    let copy = |text: &str| unsafe { buffer::copy_text(line, len, text) };
    copy("");
    if round >= 0 && allocation_sites::is_on() {
        allocation_sites::set_round(round);
    }
    match STATE.load(Relaxed) {
        OFF => return 0,
        ON => {}
        _ => return contain_call(NOT_MARKED, log_how_to_enable),
    }
    contain_call(NOT_MARKED, || {
        // SAFETY: the caller passes NULL or NUL-terminated strings.
        let (stage, site) = unsafe { (name(stage), name(site)) };
        let marker = record_of_program(stage, site, (round >= 0).then_some(round));
        let text = marker.to_text_line();
        copy(text.trim_end());
        history::note(&marker);
        match write_lines(&marker, &text) {
            0 => 0,
            error => {
                errno::set(error);
                NOT_MARKED
            }
        }
    })
}

/// Writes a marker of the library, with the site and round of the program's last marker.
pub fn event(stage: Stage) {
    if !is_on() {
        return;
    }
    contain_call((), || {
        let marker = record_of_library(stage, last(), memory::now());
        history::note(&marker);
        write_lines(&marker, &marker.to_text_line());
    });
}

/// Writes the marker `at_limit`.
pub fn at_limit(asked_bytes: u64, left_bytes: u64, asked_at: Option<String>) {
    if !is_on() {
        return;
    }
    let marker = Marker {
        asked_bytes: Some(asked_bytes),
        left_bytes: Some(left_bytes),
        asked_at,
        ..record_of_library(Stage::AtLimit, last(), memory::now())
    };
    history::note(&marker);
    write_lines(&marker, &marker.to_text_line());
}

/// Writes the marker `exit`, unless a signal handler on a small alternate stack called `exit`.
pub fn exit() {
    /// A marker needs 12 KiB on x86-64, and the signal's frame up to 12.
    const LEAST_SIGNAL_STACK_BYTES: usize = 32 << 10;
    if !is_on() || signal_stack_bytes().is_some_and(|bytes| bytes < LEAST_SIGNAL_STACK_BYTES) {
        return;
    }
    let write = || {
        let last = LAST.try_lock().and_then(|last| last.clone());
        let marker = record_of_library(Stage::Exit, last, memory::without_locks());
        write_lines(&marker, &marker.to_text_line());
    };
    reserve::without_backend(|| contain_call((), write));
}

/// The child counts its own markers.
///
/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    SEQUENCE.store(0, Relaxed);
    IS_DESCRIBED.store(false, Relaxed);
    // SAFETY: as for this function.
    unsafe {
        history::after_fork_in_child();
        LAST.reset_after_fork();
    }
}

/// The body of `flarena_note_job`.
///
/// # Safety
/// The id is NULL or NUL-terminated.
pub unsafe fn note_job(id: *const c_char) {
    // SAFETY: as for this function.
    identity::note_job(unsafe { bytes(id) });
}

/// The last marker of the program.
pub fn last() -> Option<LastMarker> {
    LAST.lock().clone()
}

/// # Safety
/// NULL or NUL-terminated.
unsafe fn name(text: *const c_char) -> Option<String> {
    // SAFETY: as for this function.
    let bytes = unsafe { bytes(text) };
    (!bytes.is_empty()).then(|| marker::name_from_bytes(bytes))
}

/// # Safety
/// NULL or NUL-terminated.
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: not NULL, so the caller promises a NUL-terminated string.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

#[cold]
fn log_how_to_enable() -> c_int {
    if STATE.swap(OFF, Relaxed) == NOT_SET && user_sees_stderr() {
        // Two lines, so that each fits on a narrow terminal.
        log::warn(format_args!(
            "this program's markers are off: flarena run --profile shows them"
        ));
        log::warn(format_args!(
            "NVFLARE_CLIENT_MEMORY_PROFILE=0 silences these lines"
        ));
    }
    0
}

/// True if stderr is a terminal, or if `flarena run` became this process. All other processes, and
/// secure-execution programs, stay silent.
fn user_sees_stderr() -> bool {
    let _errno = SavedErrno::save();
    // SAFETY: isatty accepts any number.
    let at_terminal = unsafe { libc::isatty(libc::STDERR_FILENO) } == 1;
    (at_terminal || is_started_by_launcher()) && owner::owns_malloc() && !env::is_secure()
}

/// The launcher sets its pid and then becomes this process. A child has another pid.
fn is_started_by_launcher() -> bool {
    let launched = config::environment().extra(Extra::Launched);
    launched.is_some_and(|pid| pid == std::process::id().to_string().as_bytes())
}

fn record_of_program(stage: Option<String>, site: Option<String>, round: Option<i64>) -> Marker {
    #[cfg(feature = "defect")]
    crate::report::panic::provoke::at_stage(stage.as_deref());
    let stage = stage.unwrap_or_else(|| Stage::Mark.name().to_owned());
    let site = site.or_else(|| identity().site.clone());
    launch::start_if_due(StartTrigger::Request);
    *LAST.lock() = Some(LastMarker {
        stage: stage.clone(),
        site: site.clone(),
        round,
    });
    record(stage, site, round, memory::now())
}

fn record_of_library(stage: Stage, last: Option<LastMarker>, memory: Memory) -> Marker {
    let (site, round) = last.map_or((None, None), |last| (last.site, last.round));
    record(stage.name().to_owned(), site, round, memory)
}

fn record(stage: String, site: Option<String>, round: Option<i64>, memory: Memory) -> Marker {
    let identity = identity();
    let is_exit = is_exit(&stage);
    let collected = garbage::take_since_last_marker();
    let seq = SEQUENCE.fetch_add(1, Relaxed);
    let is_first = !IS_DESCRIBED.swap(true, Relaxed);
    let process = identity::process();
    let group = memory.cgroup;
    let peak_bytes = history::PEAK.take(memory.rss_bytes, memory.hwm_bytes);
    Marker {
        v: marker::FORMAT_VERSION,
        t: Some(seconds(time::now(ClockId::Realtime))),
        mono: Some(seconds(time::now(ClockId::Boottime))),
        pid: Some(process.pid),
        ppid: std::os::unix::process::parent_id(),
        start: Some(process.start),
        boot: process.boot,
        proc: identity.proc_name().to_owned(),
        program: identity::program().map(str::to_owned),
        name: identity.name(),
        role: identity.role().map(|role| role.name().to_owned()),
        site: site.or_else(|| identity.site.clone()),
        job: identity.job(),
        round,
        stage,
        alloc: choose::allocator_name().to_owned(),
        rss_bytes: memory.rss_bytes,
        anon_bytes: memory.anon_bytes,
        file_bytes: memory.file_bytes,
        shmem_bytes: memory.shmem_bytes,
        pss_bytes: memory.pss_bytes,
        swap_bytes: memory.swap_bytes,
        hwm_bytes: memory.hwm_bytes.max(peak_bytes),
        peak_bytes,
        live_bytes: memory.live_bytes,
        retained_bytes: memory.retained_bytes,
        recycled_bytes: memory.recycled_bytes,
        pymalloc_bytes: memory.pools.pymalloc_bytes,
        arrow_bytes: memory.pools.arrow_bytes,
        pinned_bytes: memory.pools.pinned_bytes,
        gpu_allocated_bytes: memory.pools.gpu_allocated_bytes,
        gpu_reserved_bytes: memory.pools.gpu_reserved_bytes,
        cgroup_bytes: group.memory.used_bytes,
        cgroup_reclaimable_bytes: group.memory.reclaimable_bytes,
        cgroup_limit_bytes: group.memory.limit_bytes,
        cgroup: group.hash.map(ShortHash),
        cgroup_oom_kills: group.oom_kills,
        memory_limit_bytes: config::settings().memory_limit_bytes,
        gc_released_bytes: collected.map(|since| since.released_bytes),
        gc_ms: collected.map(|since| since.ms),
        gc_live_after_bytes: collected.and_then(|since| since.live_after_bytes),
        cpu_ms: seccomp::allows_common_calls().then(time::process_cpu_ms),
        host: is_first.then(host),
        host_memory_bytes: is_first.then(procfs::host_memory_bytes).flatten(),
        version: is_first.then(|| flarena_shared::VERSION.to_owned()),
        settings: is_first.then(|| settings(is_exit)),
        asked_bytes: None,
        left_bytes: None,
        asked_at: None,
        seq: Some(seq),
    }
}

/// With the precision of a microsecond.
fn seconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}

fn is_exit(stage: &str) -> bool {
    stage == Stage::Exit.name()
}

/// The settings that differ from their defaults, and the number of arenas and jemalloc's decay if the
/// user chose them.
fn settings(is_exit: bool) -> String {
    let mut settings = vec![config::settings().changed()];
    if choose::is_jemalloc() {
        if is_exit {
            // jemalloc's controls have a lock.
            return settings.remove(0);
        }
        let [dirty, muzzy] = [ctl::DIRTY_DECAY_MS, ctl::MUZZY_DECAY_MS].map(|ms| ms.read());
        let conf = dirty.zip(muzzy);
        let conf =
            conf.map(|(dirty, muzzy)| format!("dirty_decay_ms:{dirty},muzzy_decay_ms:{muzzy}"));
        settings.extend(conf.filter(|conf| conf != MALLOC_CONF).map(|conf| {
            let name = setting(Key::MallocConf).name;
            format!("{name}={conf}")
        }));
    } else {
        let default = role::arenas(identity().role());
        let chosen = owner::arena_max().filter(|arenas| *arenas != default);
        settings.extend(chosen.map(|arenas| format!("{}={arenas}", setting(Key::ArenaMax).name)));
    }
    settings.retain(|setting| !setting.is_empty());
    settings.join(" ")
}

fn host() -> String {
    marker::name_from_bytes(rustix::system::uname().nodename().to_bytes())
}

/// Writes the line of stderr and that of the marker file. Returns 0 or the error: of the marker file if it is set, else of
/// stderr.
fn write_lines(marker: &Marker, text: &str) -> c_int {
    let result = log::write_stderr(text.as_bytes());
    let path = config::environment().setting(Key::MarkerFile);
    let Some(path) = path.filter(|path| !path.trim_ascii().is_empty()) else {
        return result.err().unwrap_or(0);
    };
    // At exit the program has freed its data already, so its sites would show a false last round.
    let sites = match is_exit(&marker.stage) {
        true => sites::MarkerLines::default(),
        false => sites::marker_lines(marker),
    };
    let lines = marker.to_json_line() + &sites.text;
    let error = marker_file::append(path, lines.as_bytes());
    if error != 0 {
        sites.note_failure();
        if marker.host.is_some() {
            IS_DESCRIBED.store(false, Relaxed);
        }
    }
    error
}
