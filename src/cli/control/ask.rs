//! Sends one request to one process, and explains why there is no answer.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use flarena_shared::defaults::GOVERNOR_START_BYTES;
use flarena_shared::system_error::reason;

use super::client::{self, is_hang_up, Address, Request};
use super::discover::has_library;
use super::stats::Stats;
use crate::proc::{Process, ReadError};
use crate::units::bytes;

/// Timeout of a request for statistics. A process may be slow because jemalloc walks its arenas.
pub const STATS_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Process(#[from] ReadError),
    #[error("process {0} runs without flarena: start it with `flarena run -- COMMAND`")]
    NoLibrary(i32),
    #[error("process {pid} runs with flarena, but has no control channel yet: {}", why_no_channel(*.rss_bytes))]
    NoChannel { pid: i32, rss_bytes: u64 },
    #[error("process {0} refuses this user: ask as the user of the process, or as root")]
    Refused(i32),
    #[error("process {0} closed the connection without an answer: it is too busy, or in another user namespace")]
    HungUp(i32),
    #[error(
        "process {pid} did not answer within {seconds} s: it may be stopped or busy; try again"
    )]
    TimedOut { pid: i32, seconds: f64 },
    #[error("process {0}: another process listens under its name; its answer is ignored")]
    Imposter(i32),
    #[error("process {pid}: its answer is not readable: {reason}")]
    Garbled { pid: i32, reason: String },
    #[error("process {pid}: {reason}")]
    Other { pid: i32, reason: String },
}

const ATTEMPTS: usize = 4;
/// A process that has just started opens its control channel within a second. The pauses are counted and not the time, which
/// says little on a busy machine.
const CHANNEL_PAUSES: u32 = 20;
const CHANNEL_PAUSE: Duration = Duration::from_millis(50);

/// Like [`ask`], but waits about a second for a control channel that is not open yet.
pub fn ask_when_open(
    process: &Process,
    request: Request,
    timeout: Duration,
) -> Result<Stats, AskError> {
    retry_until_open(|| ask(process, request, timeout))
}

fn retry_until_open(mut ask: impl FnMut() -> Result<Stats, AskError>) -> Result<Stats, AskError> {
    let mut answer = ask();
    for _ in 0..CHANNEL_PAUSES {
        if !matches!(answer, Err(AskError::NoChannel { .. })) {
            break;
        }
        thread::sleep(CHANNEL_PAUSE);
        answer = ask();
    }
    answer
}

/// Sends one request. `timeout` limits the wait for each part of the answer.
pub fn ask(process: &Process, request: Request, timeout: Duration) -> Result<Stats, AskError> {
    let pid = process.pid;
    // The process hangs up on a permitted client whose request line is late, which happens on a
    // busy machine. Such a request is repeated.
    let attempts = if may_ask(process) { ATTEMPTS } else { 1 };
    let exchange = || client::exchange(process, Address::of(process), request, timeout);
    let mut result = exchange();
    for _ in 1..attempts {
        if result.as_ref().is_err_and(is_hang_up) {
            result = exchange();
        }
    }
    let text = result.map_err(|error| explain(&error, process, timeout))?;
    Stats::parse(&text).map_err(|reason| AskError::Garbled { pid, reason })
}

/// The same rule as in the library: a process answers its own user and root.
fn may_ask(process: &Process) -> bool {
    let own = rustix::process::geteuid();
    let owner = process.status().ok().and_then(|status| status.uid);
    own.is_root() || owner == Some(own.as_raw())
}

fn explain(error: &io::Error, process: &Process, timeout: Duration) -> AskError {
    let pid = process.pid;
    match error.kind() {
        _ if is_hang_up(error) && may_ask(process) => AskError::HungUp(pid),
        _ if is_hang_up(error) => AskError::Refused(pid),
        ErrorKind::ConnectionRefused => explain_no_listener(process),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::TimedOut {
            pid,
            seconds: timeout.as_secs_f64(),
        },
        ErrorKind::AddrInUse => AskError::Imposter(pid),
        ErrorKind::InvalidData => AskError::Garbled {
            pid,
            reason: "it is too long".to_owned(),
        },
        _ => AskError::Other {
            pid,
            reason: reason(error),
        },
    }
}

fn explain_no_listener(process: &Process) -> AskError {
    let pid = process.pid;
    if process.has_ended() {
        return ReadError::Gone(pid).into();
    }
    match has_library(process) {
        Ok(true) => AskError::NoChannel {
            pid,
            rss_bytes: process.status().map_or(0, |status| status.rss_bytes),
        },
        Ok(false) => AskError::NoLibrary(pid),
        Err(error) => error.into(),
    }
}

/// The library checks the size in malloc and free. A program that fills its memory and then sleeps
/// calls neither.
fn why_no_channel(rss_bytes: u64) -> String {
    let held = bytes(rss_bytes);
    // The governor opens the control channel.
    if rss_bytes < GOVERNOR_START_BYTES {
        return format!("it is small, {held}, and needs none");
    }
    format!(
        "it holds {held}, but has not called malloc or free since it grew. Ask again when it is active, \
         or let it call flarena.mark(). With FLARENA_GOVERNOR=off or in a sandbox it never opens one"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::server::Server;

    fn own() -> Process {
        Process::find(std::process::id() as i32).unwrap()
    }

    fn ask_server(server: Server) -> Result<Stats, AskError> {
        let mut process = own();
        process.start_ticks = server.address.start_ticks;
        ask(&process, Request::Stats, STATS_TIMEOUT)
    }

    #[test]
    fn an_answer_is_parsed_and_the_request_is_one_line() {
        let server = Server::answering(|request| format!("{{\"asked\":{request:?}}}\n").into());
        let stats = ask_server(server).unwrap();
        assert_eq!(stats.text("asked"), Some("stats\n"));
    }

    #[test]
    fn a_channel_that_opens_late_is_awaited() {
        let mut asked = 0;
        let answer = retry_until_open(|| {
            asked += 1;
            if asked <= CHANNEL_PAUSES {
                return Err(AskError::NoChannel {
                    pid: 1,
                    rss_bytes: 0,
                });
            }
            Ok(Stats::parse("{\"pid\":1}\n").unwrap())
        });
        assert_eq!(answer.unwrap().number("pid"), Some(1));
    }

    #[test]
    fn a_channel_that_does_not_open_is_awaited_for_a_second() {
        let mut asked = 0;
        let answer = retry_until_open(|| {
            asked += 1;
            Err(AskError::NoChannel {
                pid: 1,
                rss_bytes: 0,
            })
        });
        assert!(matches!(answer, Err(AskError::NoChannel { .. })));
        assert_eq!(asked, CHANNEL_PAUSES + 1);
    }

    #[test]
    fn a_process_of_this_user_that_hangs_up_is_asked_again() {
        let server = Server::after_hanging_up(2, |_| b"{\"pid\":1}\n".to_vec());
        assert_eq!(ask_server(server).unwrap().number("pid"), Some(1));
    }

    #[test]
    fn hanging_up_on_its_own_user_is_not_reported_as_a_refusal() {
        let server = Server::after_hanging_up(ATTEMPTS, |_| Vec::new());
        assert!(matches!(ask_server(server), Err(AskError::HungUp(_))));
    }

    #[test]
    fn an_answer_that_is_not_a_json_object_is_garbled() {
        for answer in ["hello\n", "[1]\n", "{\"cut\":", "\u{0}\n"] {
            let server = Server::answering(move |_| answer.into());
            assert!(
                matches!(ask_server(server), Err(AskError::Garbled { .. })),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn an_endless_answer_is_garbled() {
        let server = Server::answering(|_| vec![b'x'; 4 << 20]);
        assert!(matches!(ask_server(server), Err(AskError::Garbled { .. })));
    }

    #[test]
    fn a_process_that_does_not_answer_times_out() {
        let server = Server::silent();
        let mut process = own();
        process.start_ticks = server.address.start_ticks;
        let answer = ask(&process, Request::Stats, Duration::from_millis(300));
        assert!(matches!(answer, Err(AskError::TimedOut { .. })));
    }

    #[test]
    fn only_a_small_process_without_a_channel_is_called_small() {
        let text = |rss_bytes| AskError::NoChannel { pid: 7, rss_bytes }.to_string();
        assert!(text(9 << 20).ends_with("it is small, 9.00 MB, and needs none"));
        let large = text(900 << 20);
        assert!(
            large.contains("it holds 900.0 MB, ") && !large.contains("small"),
            "{large}"
        );
    }

    #[test]
    fn a_process_without_the_library_is_reported() {
        let error = ask(&own(), Request::Stats, Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, AskError::NoLibrary(_)), "{error}");
    }

    #[test]
    fn a_zombie_has_ended_and_does_not_run_without_the_library() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::find(child.id() as i32).unwrap();
        while !process.status().unwrap().is_zombie {
            thread::sleep(Duration::from_millis(5));
        }
        let error = ask(&process, Request::Stats, Duration::from_millis(300)).unwrap_err();
        assert!(
            matches!(error, AskError::Process(ReadError::Gone(_))),
            "{error}"
        );
        child.wait().unwrap();
    }

    #[test]
    fn an_answer_of_another_process_is_not_used() {
        let server = Server::answering(|_| b"{}\n".to_vec());
        let mut init = Process::find(1).unwrap();
        // The server listens under the pid of this test; pretend that it is process 1.
        init.start_ticks = server.address.start_ticks;
        let address = Address {
            pid: std::process::id() as i32,
            ..server.address
        };
        let failure = client::exchange(&init, address, Request::Stats, Duration::from_secs(1));
        assert_eq!(failure.unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
