//! The governor, the one thread of the library: it returns idle memory to the system, watches for
//! memory pressure and limits, and serves the control channel.
//!
//! `launch` starts it. All signals are blocked in it (see `libpsx`). It shares neither the program's descriptors
//! (`descriptors`) nor the scheduling class and CPUs of the thread that started it (`scheduling`).
//! Each piece of its work runs in `helper::run_work`, so that a fork can wait for the end of it. The
//! state is `Governor`; only this thread has it.

mod control;
mod descriptors;
mod idle;
mod libpsx;
mod periodic;
mod pressure;
mod python;
mod scheduling;
mod sites;

use std::ffi::c_void;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::backends::choose::{self, dispatch};
use crate::backends::jemalloc;
use crate::garbage::{self, Depth, Reason};
use crate::report::panic::{self, Entry};
use crate::report::trim;
use crate::{launch, memory_limit};
use flarena_recycler as recycler;
use flarena_sys::{config, thread::helper};

#[cfg(test)]
pub use control::tests::any_request;

/// A release of Python's pools is useful for so long after the request: an idle program that takes
/// longer is at work again.
const POOLS_USEFUL_NEAR_LIMIT: Duration = Duration::from_secs(60);
const POOLS_USEFUL_WHEN_IDLE: Duration = Duration::from_secs(1);

/// The thread's main function. If it panics, the process continues without a governor. The unwinding
/// has closed its descriptors.
pub extern "C" fn run(_: *mut c_void) -> *mut c_void {
    if panic::contain(Entry::Governor, run_until_stopped).is_none() {
        launch::give_up();
        helper::exit_if_alone();
    }
    std::ptr::null_mut()
}

/// The child of a fork has neither its parent's pending calls nor a governor.
pub fn after_fork_in_child() {
    use python::{COLLECTION, POOLS, YOUNG_COLLECTION};
    for request in [&COLLECTION, &YOUNG_COLLECTION, &POOLS, &sites::CHECK] {
        request.finish();
    }
}

fn run_until_stopped() {
    helper::register();
    helper::run_work(|| {
        descriptors::unshare();
        scheduling::leave_the_starters();
        if choose::is_jemalloc() && jemalloc::wants_background_threads(config::environment()) {
            jemalloc::ctl::BACKGROUND_THREAD.write(true);
        }
        launch::tell_recycler(recycler::Governor::Running);
        Governor {
            idle: idle::Idle::new(),
            pressure: pressure::Pressure::open(),
            control: control::Listener::open(),
            signal: libpsx::Signal::watch(),
            periodic: periodic::Periodic::new(Instant::now()),
            collections: 0,
        }
    })
    .watch();
}

struct Governor {
    idle: idle::Idle,
    pressure: pressure::Pressure,
    control: control::Listener,
    signal: libpsx::Signal,
    periodic: periodic::Periodic,
    /// Full collections until the last tick.
    collections: u64,
}

impl Governor {
    fn watch(mut self) {
        let mut next_tick = Instant::now();
        let mut decay_in = None;
        loop {
            let now = Instant::now();
            let pause = next_tick.saturating_duration_since(now);
            let earlier = [decay_in, self.control.accepts_in(now)]
                .into_iter()
                .flatten();
            let woken = self.wait(earlier.fold(pause, Duration::min));
            if woken.by_signal || Instant::now() >= next_tick {
                self.signal.handle();
            }
            if !launch::is_running() {
                return helper::run_work(|| self.leave());
            }
            helper::run_work(|| {
                descriptors::follow_stderr();
                decay_in = recycler::decay();
                if woken.by_client {
                    self.control.serve();
                }
                if woken.by_stall || Instant::now() >= next_tick {
                    launch::TICKS.fetch_add(1, Relaxed);
                    next_tick = Instant::now() + self.tick(woken);
                }
            });
        }
    }

    /// Checks everything that is not checked at each wake-up. Returns the time until the next tick.
    fn tick(&mut self, woken: Woken) -> Duration {
        #[cfg(feature = "defect")]
        panic::provoke::in_governor();
        helper::exit_if_alone();
        // Another process may have set a limit.
        choose::follow_limits();
        let now = Instant::now();
        let level = self.pressure.check(now, woken.by_stall);
        launch::NEAR_LIMIT.store(level.near_limit, Relaxed);
        recycler::set_pressure(level.near_limit);
        if level.reclaim {
            python::ask_for_pools(POOLS_USEFUL_NEAR_LIMIT);
            let (_, released) = memory_limit::counted(|| trim::release(0));
            self.pressure.reclaimed(now, released);
        }
        let collections = garbage::total().collections;
        if std::mem::replace(&mut self.collections, collections) != collections {
            self.idle.note_collection();
        }
        let advice = self.idle.check(now, idle::program_cpu_time());
        // By itself jemalloc does so only while the program calls it.
        if advice.decay_backend && choose::is_jemalloc() {
            jemalloc::ctl::DECAY_ALL.run();
        }
        if advice.trim_backend {
            python::ask_for_pools(POOLS_USEFUL_WHEN_IDLE);
            self.idle.trimmed(now, trim_heap());
        }
        self.periodic.mark_if_due(now, level.near_limit);
        self.request_collection(level.near_limit, &advice);
        // A program at rest was trimmed and takes no memory, however near the limit is.
        let watch_in = if advice.is_quiet {
            level.pause.max(pressure::QUIET_INTERVAL)
        } else {
            level.pause
        };
        advice.pause.min(watch_in)
    }

    /// Requests a full garbage collection from Python if one is due.
    fn request_collection(&self, near_limit: bool, advice: &idle::Advice) {
        if !config::settings().gc {
            return;
        }
        let idle_us = advice.idle_for.as_micros() as u64;
        let reasons: &[Reason] = match advice {
            _ if near_limit => &[Reason::NearLimit],
            advice if advice.is_quiet => &[Reason::Idle, Reason::Resting { idle_us }],
            advice if advice.idle_for.is_zero() => {
                &[Reason::Working(Depth::Young), Reason::Working(Depth::Full)]
            }
            _ => return,
        };
        let Some(granted) = reasons.iter().find(|&&one| garbage::request(one)) else {
            return;
        };
        if !python::collection(granted.depth()).ask() {
            garbage::withdraw(granted.requester());
        }
    }

    fn wait(&mut self, pause: Duration) -> Woken {
        let poll = |fd: Option<i32>, events| libc::pollfd {
            fd: fd.unwrap_or(-1),
            events,
            revents: 0,
        };
        let raw = |fd: &Option<OwnedFd>| fd.as_ref().map(AsRawFd::as_raw_fd);
        let mut fds = [
            poll(self.control.descriptor(Instant::now()), libc::POLLIN),
            poll(raw(&self.pressure.trigger), libc::POLLPRI),
            poll(raw(&self.signal.arrival), libc::POLLIN),
        ];
        // Rounded up: with 0 for less than a millisecond the thread would spin.
        let timeout = i32::try_from(pause.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: the pointer and the length are those of a live array.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        if ready <= 0 {
            return Woken::default();
        }
        let [client, stall, signal] = fds.map(|fd| fd.revents);
        // With a descriptor that reports errors only, the thread would spin. The trigger does if its control group was
        // removed.
        if client & !libc::POLLIN != 0 {
            self.control.socket = None;
        }
        if stall & !libc::POLLPRI & !libc::POLLERR != 0 || stall == libc::POLLERR {
            self.pressure.trigger = None;
        }
        Woken {
            by_client: client == libc::POLLIN,
            by_stall: stall & libc::POLLPRI != 0,
            by_signal: signal != 0,
        }
    }

    /// Leaves a process without a governor. If there will be none, the recycler caches little from now on.
    fn leave(mut self) {
        self.control.socket = None;
        self.pressure.trigger = None;
        recycler::trim();
        recycler::set_governor(if launch::will_restart() {
            recycler::Governor::NotStarted
        } else {
            recycler::Governor::Unavailable
        });
    }
}

/// Releases the free memory of the backend in an idle program. Returns the bytes. If the user chose how long jemalloc
/// keeps pages, only its own decay releases them.
fn trim_heap() -> u64 {
    if choose::is_jemalloc() && jemalloc::has_users_decay(config::environment()) {
        return 0;
    }
    memory_limit::counted(|| dispatch!(trim(0))).1
}

/// The reasons to wake up before the timeout.
#[derive(Clone, Copy, Default)]
struct Woken {
    by_client: bool,
    by_stall: bool,
    by_signal: bool,
}
