//! The governor: the one thread of the library. It gives idle memory back, watches for pressure
//! and limits, and answers the control channel.
//!
//! `launch` starts it when the process holds enough. All signals are blocked in it, and it never
//! holds a lock of the application's beyond a hand-over. It shares neither the program's descriptors (`table`)
//! nor the class and CPU of the thread that started it (`scheduling`).

mod control;
pub mod defect;
mod descriptor;
mod door;
#[cfg(test)]
pub mod fuzz;
mod hibernate;
mod idle;
mod peer;
mod periodic;
mod pressure;
mod python;
mod reclaim;
mod request;
mod scheduling;
mod table;

use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::choice::{choose, jemalloc};
use crate::garbage::{self, Occasion};
use crate::launch::{self, COUNTERS};
use flarena_recycler as recycler;
use flarena_sys::{config, proc::cgroup, proc::procfs, thread};

/// For how long it is worth doing what was asked of Python's main thread. One that rests goes by at its own time:
/// then it is at work again.
const WORTH_NEAR_LIMIT: Duration = Duration::from_secs(60);
const WORTH_WHEN_IDLE: Duration = Duration::from_secs(1);

/// A forked child has no governor, and must not keep its parent's descriptors.
pub fn after_fork_in_child() {
    control::after_fork_in_child();
    pressure::after_fork_in_child();
    python::after_fork_in_child();
    table::after_fork_in_child();
}

/// Ends the thread, for good, and waits until it is gone. The main thread calls this when it ends alone
/// (`pthread_exit`): the process then ends with its last thread, which must be one of the program's, as that
/// one runs the exit handlers and writes what stdio holds.
pub fn end() {
    const LOOKS: u32 = 2_000;
    if !launch::stop() {
        return;
    }
    // While it still runs: a fork may take it for a thread of the program's, but never the reverse.
    thread::set_ours(0);
    control::wake();
    for _ in 0..LOOKS {
        if thread::has_ended() {
            return;
        }
        thread::sleep_a_moment();
    }
}

/// The thread's main function, which `launch` starts.
pub extern "C" fn run(_: *mut c_void) -> *mut c_void {
    thread::enter();
    thread::work(|| {
        table::leave_the_programs();
        scheduling::settle();
        if choose::is_jemalloc() && jemalloc::wants_background_threads(config::environment()) {
            jemalloc::start_background_threads();
        }
        recycler::set_governed(true);
        crate::python::find();
        // Asked only now: a process that never holds much need not read its control group.
        if config::settings().memory_limit_bytes.is_none() {
            recycler::set_memory_limit(cgroup::memory().limit_bytes);
        }
        Governor::new()
    })
    .watch()
}

/// What the thread knows from one tick to the next.
struct Governor {
    idle: idle::Idle,
    pressure: pressure::Watch,
    control: control::Listener,
    periodic: periodic::Periodic,
    hibernation: hibernate::Hibernation,
}

impl Governor {
    fn new() -> Governor {
        Governor {
            idle: idle::Idle::new(),
            pressure: pressure::Watch::new(config::settings()),
            control: control::Listener::open(),
            periodic: periodic::Periodic::new(Instant::now()),
            hibernation: hibernate::Hibernation::new(Instant::now()),
        }
    }

    fn watch(mut self) -> *mut c_void {
        let mut next = Instant::now();
        let (mut aging, mut sleep) = (None, None);
        loop {
            let pause = next.saturating_duration_since(Instant::now());
            let earlier = [aging, sleep, self.control.opens_in()]
                .into_iter()
                .flatten();
            let woken = self.wait(earlier.fold(pause, Duration::min));
            if !launch::is_running() {
                return thread::work(leave);
            }
            // A thread that forks may have to wait for the end of it.
            thread::work(|| {
                table::follow_stderr();
                aging = recycler::decay();
                // Between two looks only the recycler's pages age, and clients are served.
                if woken.control {
                    self.control.serve();
                }
                if woken.pressure || Instant::now() >= next {
                    COUNTERS.ticks.fetch_add(1, Relaxed);
                    next = Instant::now() + self.tick(woken);
                }
                sleep = self.hibernation.step();
            });
        }
    }

    /// One look at everything; answers how long the next may wait.
    fn tick(&mut self, woken: Woken) -> Duration {
        if procfs::has_only_this_thread_left() {
            scheduling::exit_process();
        }
        let now = Instant::now();
        let level = self.pressure.look(now, woken.pressure);
        COUNTERS.near_limit.store(level.near_limit, Relaxed);
        recycler::set_pressure(level.near_limit);
        if level.reclaim {
            python::ask_for_pools(WORTH_NEAR_LIMIT);
            let released = reclaim::everything();
            self.pressure.reclaimed(now, released);
        }
        let advice = self.idle.check(now, idle::program_cpu_time());
        if advice.decay_backend {
            reclaim::aged();
        }
        if advice.trim_backend {
            python::ask_for_pools(WORTH_WHEN_IDLE);
            let released = reclaim::idle_heap();
            self.idle.trimmed(now, released);
        }
        self.hibernation.tick(now, advice.idle_for);
        self.periodic.look(now);
        Governor::request_collection(level.near_limit, advice.is_quiet);
        advice.pause.min(level.pause)
    }

    /// Requests a full garbage collection from Python if one is due.
    fn request_collection(near_limit: bool, idle: bool) {
        let occasion = match (near_limit, idle) {
            (true, _) => Occasion::NearLimit,
            (false, true) => Occasion::Idle,
            (false, false) => return,
        };
        if !config::settings().gc || !crate::python::is_running() {
            return;
        }
        if garbage::request(occasion) && !python::COLLECTION.ask() {
            garbage::withdraw(occasion.requester());
        }
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
        // Rounded up: less than a millisecond must not be waited for in a circle.
        let timeout = i32::try_from(pause.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let ready = launch::asleep(|| {
            // SAFETY: the array has as many entries as is said.
            unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) }
        });
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

/// Back to a process without a governor: the recycler keeps little from now on.
fn leave() -> *mut c_void {
    control::forget();
    pressure::forget();
    recycler::trim();
    recycler::set_governed(false);
    std::ptr::null_mut()
}
