//! Runs the command once: starts it, samples its processes, and ends all of them.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::io::Errno;
use rustix::process::{waitid, Pid, Signal, WaitId, WaitIdOptions};

use super::load::{self, Load};
use super::model::Run;
use super::series::{pause, Sample, Series};
use super::tree::{self, Member};
use crate::output::create;
use crate::run::{cannot_start, Environment};

/// Processes that outlive the command get this long before they are ended.
const GRACE: Duration = Duration::from_secs(10);
/// After SIGTERM a process gets this long before SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);
const END_POLL: Duration = Duration::from_millis(20);

/// The signal that ends the comparison; 0 for none.
pub struct Interrupts(Arc<AtomicUsize>);

impl Interrupts {
    pub fn register() -> anyhow::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let flag = Arc::clone(&signal);
            signal_hook::flag::register_usize(number, flag, number as usize)
                .context("cannot handle signals")?;
        }
        Ok(Self(signal))
    }

    pub fn signal(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::Relaxed))
            .ok()
            .filter(|signal| *signal != 0)
    }
}

/// How a run ended.
pub enum End {
    Measured(Run),
    /// With the status as a phrase.
    Failed(String),
    Interrupted,
}

/// The end of a run, and facts that the user should know about it.
pub struct Execution {
    pub end: End,
    /// Processes that outlived the command and were ended.
    pub left_over: usize,
    /// Processes whose memory could not be read.
    pub denied: usize,
}

/// Runs the command. `show` gets the seconds and the size after each sample.
pub fn execute(
    command: &[OsString],
    environment: &Environment,
    log: &Path,
    interrupts: &Interrupts,
    show: &dyn Fn(f64, f64),
) -> anyhow::Result<Execution> {
    let cpu_before = cpu_of(libc::RUSAGE_CHILDREN);
    let (load, own_before) = (Load::start(), cpu_of(libc::RUSAGE_SELF));
    let mut child = start(command, environment, log)?;
    let started = Instant::now();
    let ended = watch_for_the_end(&child);
    let pid = child.id() as i32;
    let mut series = Series::default();
    let mut denied = 0;
    let end = loop {
        let begun = Instant::now();
        let members = tree::members();
        let used = tree::use_of(&members);
        tree::reap_orphans(&members, pid);
        let mut end = ended.try_recv().ok();
        // A sample after the end lacks the command.
        if end.is_none() {
            denied = denied.max(used.denied);
            let at = begun.duration_since(started).as_secs_f64();
            series.push(Sample {
                at,
                pss_bytes: used.pss_bytes as f64,
                cpu_s: load::seconds(used.cpu_ticks) + cpu_of(libc::RUSAGE_CHILDREN) - cpu_before,
            });
            show(at, used.pss_bytes as f64);
            if interrupts.signal().is_some() {
                break None;
            }
            let pause = pause(started.elapsed(), begun.elapsed());
            end = ended.recv_timeout(pause).ok();
        }
        if let Some(end) = end {
            series.finish(end.duration_since(started).as_secs_f64());
            break Some(end);
        }
    };
    let mut left_over = 0;
    match end {
        Some(_) => left_over = end_left_over(pid, interrupts),
        None => end_all(pid),
    }
    let status = child.wait().context("cannot wait for the command")?;
    let cpu_s = cpu_of(libc::RUSAGE_CHILDREN) - cpu_before;
    let measuring_s = cpu_of(libc::RUSAGE_SELF) - own_before;
    let load_of_others = load.and_then(|load| load.share_of_others(cpu_s + measuring_s));
    let end = match end {
        _ if interrupts.signal().is_some() => End::Interrupted,
        None => End::Interrupted,
        Some(_) if !status.success() => End::Failed(phrase(status)),
        Some(end) => End::Measured(Run {
            series,
            cpu_s,
            wall_s: end.duration_since(started).as_secs_f64(),
            load_of_others,
        }),
    };
    Ok(Execution {
        end,
        left_over,
        denied,
    })
}

/// A process group of its own, so that Ctrl-C reaches only this program, which then ends the tree.
fn start(command: &[OsString], environment: &Environment, log: &Path) -> anyhow::Result<Child> {
    let cannot_write = || format!("cannot write {}", log.display());
    let out = create(log).with_context(cannot_write)?;
    let err = out.try_clone().with_context(cannot_write)?;
    let mut started = Command::new(&command[0]);
    started.args(&command[1..]).process_group(0);
    started.stdin(Stdio::null()).stdout(out).stderr(err);
    environment.apply_to(&mut started);
    started.spawn().map_err(|error| {
        let _ = std::fs::remove_file(log);
        anyhow::anyhow!(cannot_start(&command[0], &error))
    })
}

/// A thread sends the exact end, which the samples would miss by up to one pause.
fn watch_for_the_end(child: &Child) -> Receiver<Instant> {
    let (sender, ended) = mpsc::channel();
    let pid = Pid::from_child(child);
    thread::spawn(move || {
        // NOWAIT: the main thread reads the status.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        let _ = sender.send(Instant::now());
    });
    ended
}

/// Waits for the processes that outlive the command, `pid`, and ends them after a while. Returns
/// their number.
fn end_left_over(pid: i32, interrupts: &Interrupts) -> usize {
    let left = watch_tree(pid, GRACE, |_| interrupts.signal().is_none());
    if left > 0 {
        end_all(pid);
    }
    left
}

/// Ends every process of the tree: SIGTERM, then SIGKILL. The command itself, `pid`, stays to be
/// waited for.
fn end_all(pid: i32) {
    tree::signal_all(&tree::members(), Signal::TERM);
    if watch_tree(pid, TERM_GRACE, |_| true) > 0 {
        watch_tree(pid, TERM_GRACE, |members| {
            tree::signal_all(members, Signal::KILL);
            true
        });
    }
}

/// Polls the tree until all its processes have ended, for at most this time, and while `go_on` is true. Returns the
/// number of the others.
fn watch_tree(pid: i32, time: Duration, go_on: impl Fn(&[Member]) -> bool) -> usize {
    let begun = Instant::now();
    loop {
        let members = tree::members();
        tree::reap_orphans(&members, pid);
        let left = tree::live(&members).count();
        if left == 0 || begun.elapsed() > time || !go_on(&members) {
            return left;
        }
        thread::sleep(END_POLL);
    }
}

/// `exit status 1`, `killed by signal 9`
fn phrase(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("killed by signal {signal}"),
        _ => status.to_string(),
    }
}

/// The CPU seconds of this process, or of all ended descendants that were waited for.
fn cpu_of(whom: libc::c_int) -> f64 {
    // SAFETY: `rusage` is plain data, and zeroes are a valid value.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call only writes to `used`, which outlives it.
    unsafe { libc::getrusage(whom, &mut used) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(used.ru_utime) + seconds(used.ru_stime)
}
