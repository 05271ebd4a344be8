//! The governor: the one thread of the library. It gives idle memory back, watches for pressure
//! and limits, and answers the control channel.
//!
//! It starts lazily, when a process first holds 64 MiB, or 32 MiB of large blocks, or 16 MiB of
//! freed ones, because a second thread breaks `unshare` and `setns` and costs start-up time: a shell
//! never has one. It is started from calls of the program only (the `consider` functions), never
//! from inside libc, where a lock that `pthread_create` needs may be held. All signals are blocked in it, and it never holds a lock of
//! the application's beyond a hand-over.

mod control;
mod descriptor;
mod idle;
mod pressure;
mod reclaim;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

use flarena_shared::defaults::{GOVERNOR_START_BYTES, GOVERNOR_START_CACHED_BYTES};
use serde_json::{json, Value};

use crate::{backend, callers, cgroup, jemalloc, procfs, recycler, start};

const ABSENT: u8 = 0;
const STARTED: u8 = 1;
/// The system refused a thread; asking again at every opportunity would not help.
const REFUSED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ABSENT);
static TICKS: AtomicU64 = AtomicU64::new(0);
static NEAR_LIMIT: AtomicBool = AtomicBool::new(false);
/// Calls of [`consider_large`] without a governor.
static LARGE_CALLS: AtomicU32 = AtomicU32::new(0);

/// JSON needs some stack, and glibc takes the thread's static TLS out of it; pages that are never
/// touched cost nothing.
const STACK_BYTES: usize = 512 << 10;

/// Starts the thread if the process holds enough. For calls that the program makes itself: a trim,
/// a marker, a sampled free.
pub fn consider() {
    start_from(GOVERNOR_START_BYTES);
}

/// For the allocation and the free of a large block, in a process with enough of them: what is freed is
/// cached, and somebody must age it. Blocks that nobody touches come often and never suffice, hence the pauses.
pub fn consider_large() {
    /// Reading the resident set costs some microseconds.
    const LONGEST_PAUSE: u32 = 1024;
    if STATE.load(Relaxed) != ABSENT {
        return;
    }
    let count = LARGE_CALLS.fetch_add(1, Relaxed).wrapping_add(1);
    if count.is_power_of_two() || count.is_multiple_of(LONGEST_PAUSE) {
        start_from(GOVERNOR_START_CACHED_BYTES);
    }
}

/// What was never touched is not resident, and needs nobody.
#[cold]
fn start_from(bytes: u64) {
    if STATE.load(Relaxed) != ABSENT || !start::owns_malloc() {
        return;
    }
    let page = procfs::page_bytes() as u64;
    if procfs::resident_pages().is_none_or(|pages| pages * page >= bytes) {
        start_thread();
    }
}

/// One free in some thousands, whatever its size: lets a heap of small blocks alone have its
/// governor too.
pub fn sample(return_address: usize) {
    /// Reading the resident set costs some microseconds.
    const EVERY: u32 = 8;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if STATE.load(Relaxed) == ABSENT
        && COUNT.fetch_add(1, Relaxed) % EVERY == EVERY - 1
        && callers::is_program(return_address)
    {
        consider();
    }
}

/// A forked child has no governor; it starts its own when it holds enough.
pub fn after_fork_in_child() {
    STATE.store(ABSENT, Relaxed);
    LARGE_CALLS.store(0, Relaxed);
    control::forget();
    pressure::forget();
}

fn start_thread() {
    if STATE
        .compare_exchange(ABSENT, STARTED, Relaxed, Relaxed)
        .is_err()
    {
        return;
    }
    let errno = procfs::errno();
    if !has_room() {
        STATE.store(ABSENT, Relaxed);
        recycler::set_ungovernable();
    } else if !create_thread() {
        STATE.store(REFUSED, Relaxed);
        recycler::set_ungovernable();
    }
    procfs::set_errno(errno);
}

/// Where memory has run out a new thread of jemalloc's crashes: then a later opportunity is better.
fn has_room() -> bool {
    !backend::is_jemalloc() || jemalloc::make_spare_arena()
}

fn create_thread() -> bool {
    // SAFETY: the attribute object and the masks live on this stack and are initialised by the
    // calls that take them; the thread's function needs no argument.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_attr_init(&mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&mut attributes, STACK_BYTES);
        // The thread inherits the mask of its creator: no signal of the program's lands in it.
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let mut thread = 0;
        let error = libc::pthread_create(&mut thread, &attributes, run, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut());
        libc::pthread_attr_destroy(&mut attributes);
        error == 0
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    // SAFETY: the name is NUL-terminated and shorter than 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"flarena".as_ptr()) };
    if backend::is_jemalloc() && jemalloc::wants_background_threads(backend::environment()) {
        jemalloc::start_background_threads();
    }
    recycler::set_governed(true);
    // Asked only now: a process that never holds much need not read its control group.
    if backend::settings().memory_limit_bytes.is_none() {
        recycler::set_memory_limit(cgroup::memory().limit_bytes);
    }
    Governor::new().watch()
}

/// What the thread knows from one tick to the next.
struct Governor {
    idle: idle::Idle,
    pressure: pressure::Watch,
    control: control::Listener,
}

impl Governor {
    fn new() -> Governor {
        Governor {
            idle: idle::Idle::new(),
            pressure: pressure::Watch::new(backend::settings()),
            control: control::Listener::open(),
        }
    }

    fn watch(mut self) -> *mut c_void {
        let mut next = Instant::now();
        let mut aging = None;
        loop {
            let pause = next.saturating_duration_since(Instant::now());
            let woken = self.wait(aging.map_or(pause, |aging| pause.min(aging)));
            aging = recycler::decay();
            // Between two looks only the recycler's pages age.
            if woken.any() || Instant::now() >= next {
                TICKS.fetch_add(1, Relaxed);
                next = Instant::now() + self.tick(woken);
            }
        }
    }

    /// One look at everything; answers how long the next may wait.
    fn tick(&mut self, woken: Woken) -> Duration {
        if woken.control {
            self.control.serve();
        }
        let now = Instant::now();
        let level = self.pressure.look(now, woken.pressure);
        NEAR_LIMIT.store(level.near_limit, Relaxed);
        recycler::set_pressure(level.near_limit);
        if level.reclaim {
            let released = reclaim::everything();
            self.pressure.reclaimed(now, released);
        }
        let advice = self.idle.look(now, process_cpu_time());
        if advice.age_backend {
            reclaim::aged();
        }
        if advice.trim_backend {
            let released = reclaim::idle_heap();
            self.idle.trimmed(now, released);
        }
        advice.pause.min(level.pause)
    }

    fn wait(&self, pause: Duration) -> Woken {
        let poll = |fd: Option<i32>, events| libc::pollfd {
            fd: fd.unwrap_or(-1),
            events,
            revents: 0,
        };
        let mut fds = [
            poll(self.control.descriptor(), libc::POLLIN),
            poll(self.pressure.descriptor(), libc::POLLPRI),
        ];
        let timeout = i32::try_from(pause.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the array has as many entries as is said.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        if ready <= 0 {
            return Woken::default();
        }
        // A descriptor that only fails would wake us for ever.
        if fds[0].revents & !libc::POLLIN != 0 {
            control::forget();
        }
        if fds[1].revents & !libc::POLLPRI & !libc::POLLERR != 0 || fds[1].revents == libc::POLLERR
        {
            pressure::forget();
        }
        Woken {
            control: fds[0].revents == libc::POLLIN,
            pressure: fds[1].revents & libc::POLLPRI != 0,
        }
    }
}

#[derive(Default)]
struct Woken {
    control: bool,
    pressure: bool,
}

impl Woken {
    fn any(&self) -> bool {
        self.control || self.pressure
    }
}

/// CPU time of all threads of the process.
fn process_cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every kernel that we run on, and the result is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The governor's part of the statistics.
pub fn statistics() -> Value {
    json!({
        "running": STATE.load(Relaxed) == STARTED,
        "ticks": TICKS.load(Relaxed),
        "near_limit": NEAR_LIMIT.load(Relaxed),
        "pressure_events": pressure::events(),
        "reclaims": reclaim::count(),
        "reclaimed_bytes_total": reclaim::released_bytes_total(),
    })
}
