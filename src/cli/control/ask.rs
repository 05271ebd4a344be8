//! One question to one process, and why there may be no answer.

use std::thread;
use std::time::{Duration, Instant};

use flarena_shared::defaults::GOVERNOR_START_BYTES;
use flarena_shared::system_error::reason;

use super::client::{self, Request};
use super::discover::is_shimmed;
use super::stats::Stats;
use crate::proc::{Process, ReadError};
use crate::units::bytes;

/// How long a process may take to count: jemalloc walks its arenas.
pub const STATS_PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Process(#[from] ReadError),
    #[error("process {0} does not run on flarena: start it with flarena run -- COMMAND")]
    NotShimmed(i32),
    #[error("process {pid} runs on flarena and has no control channel yet: {}", why_asleep(*.rss_bytes))]
    Asleep { pid: i32, rss_bytes: u64 },
    #[error("process {0} refuses this user: ask as its own user or as root")]
    Refused(i32),
    #[error("process {0} hangs up before it answers: too busy, or in a user namespace of its own")]
    HangsUp(i32),
    #[error("process {pid} does not answer within {seconds} s")]
    Silent { pid: i32, seconds: f64 },
    #[error("process {0}: another process answers in its name, so the answer is not used")]
    Imposter(i32),
    #[error("process {pid}: its answer cannot be read: {reason}")]
    Garbled { pid: i32, reason: String },
    #[error("process {pid}: {reason}")]
    Other { pid: i32, reason: String },
}

const ATTEMPTS: usize = 4;
/// A process that has just started may not have come to it yet.
const WAIT_FOR_CHANNEL: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// [`ask`], and where there is no control channel yet, a moment later again.
pub fn ask_when_awake(
    process: &Process,
    request: Request,
    patience: Duration,
) -> Result<Stats, AskError> {
    until_awake(|| ask(process, request, patience))
}

fn until_awake(ask: impl Fn() -> Result<Stats, AskError>) -> Result<Stats, AskError> {
    let deadline = Instant::now() + WAIT_FOR_CHANNEL;
    loop {
        match ask() {
            Err(AskError::Asleep { .. }) if Instant::now() < deadline => thread::sleep(PAUSE),
            answer => return answer,
        }
    }
}

/// Asks one process; never waits longer than `patience` for its next word.
pub fn ask(process: &Process, request: Request, patience: Duration) -> Result<Stats, AskError> {
    let pid = process.pid;
    let mut answer = client::exchange(process, request, patience);
    let is_ours = may_ask(process);
    for _ in 1..ATTEMPTS {
        // It takes nobody's line later than a moment after the connection; on a busy machine
        // that moment can pass between two of our own instructions.
        if is_ours && matches!(answer, Err(client::Failure::Refused)) {
            answer = client::exchange(process, request, patience);
        }
    }
    let text = match answer {
        Ok(text) => text,
        Err(client::Failure::NobodyListens) => return Err(explain_absence(process)),
        Err(client::Failure::Refused) if is_ours => return Err(AskError::HangsUp(pid)),
        Err(client::Failure::Refused) => return Err(AskError::Refused(pid)),
        Err(client::Failure::TimedOut) => {
            return Err(AskError::Silent {
                pid,
                seconds: patience.as_secs_f64(),
            });
        }
        Err(client::Failure::Imposter) => return Err(AskError::Imposter(pid)),
        Err(client::Failure::TooLong) => {
            return Err(AskError::Garbled {
                pid,
                reason: "it does not end".to_owned(),
            });
        }
        Err(client::Failure::Io(error)) => {
            return Err(AskError::Other {
                pid,
                reason: reason(&error),
            });
        }
    };
    Stats::parse(&text).map_err(|reason| AskError::Garbled { pid, reason })
}

/// The rule that the other side keeps, too: its own user and root.
fn may_ask(process: &Process) -> bool {
    let own = rustix::process::geteuid();
    let owner = process.status().ok().and_then(|status| status.uid);
    own.is_root() || owner == Some(own.as_raw())
}

fn explain_absence(process: &Process) -> AskError {
    let pid = process.pid;
    match is_shimmed(process) {
        Ok(true) => AskError::Asleep {
            pid,
            rss_bytes: process.status().map_or(0, |status| status.rss_bytes),
        },
        Ok(false) if Process::find(pid).is_err() => ReadError::Gone(pid).into(),
        Ok(false) => AskError::NotShimmed(pid),
        Err(error) => error.into(),
    }
}

/// Whether a process is too small for a control channel, which opens with the governor.
pub fn is_small(rss_bytes: u64) -> bool {
    rss_bytes < GOVERNOR_START_BYTES
}

/// The size is looked at in calls of malloc and free: a program that fills its memory and then sleeps makes none.
fn why_asleep(rss_bytes: u64) -> String {
    let held = bytes(rss_bytes);
    if is_small(rss_bytes) {
        return format!("it is small, {held}: it has nothing worth asking for yet");
    }
    format!(
        "it holds {held}, and no malloc or free of its has looked since. The channel opens with its background \
         thread, which a program that only sleeps does not need: ask again when it works, or let it call \
         flarena.mark() (not with FLARENA_GOVERNOR=off, nor in a sandbox)"
    )
}

#[cfg(test)]
mod tests {
    use super::super::address::Address;
    use super::super::server::Server;
    use super::*;

    fn own() -> Process {
        Process::find(std::process::id() as i32).unwrap()
    }

    fn ask_server(server: Server) -> Result<Stats, AskError> {
        let mut process = own();
        process.start_ticks = server.address.start_ticks;
        ask(&process, Request::Stats, Duration::from_millis(300))
    }

    #[test]
    fn an_answer_is_read_and_the_request_is_one_line() {
        let server = Server::answering(|request| format!("{{\"asked\":{request:?}}}\n").into());
        let stats = ask_server(server).unwrap();
        assert_eq!(stats.text("asked"), Some("stats\n"));
    }

    #[test]
    fn a_process_that_opens_its_channel_late_is_waited_for() {
        let server = Server::late(Duration::from_millis(300), |_| b"{\"pid\":1}\n".to_vec());
        let mut process = own();
        process.start_ticks = server.address.start_ticks;
        let answer = until_awake(|| match ask(&process, Request::Stats, STATS_PATIENCE) {
            // This test does not run on the library; to a process that does, no channel means not yet.
            Err(AskError::NotShimmed(pid)) => Err(AskError::Asleep { pid, rss_bytes: 0 }),
            answer => answer,
        });
        assert_eq!(answer.unwrap().number("pid"), Some(1));
    }

    #[test]
    fn a_process_of_ours_that_hangs_up_is_asked_again() {
        let server = Server::after_hanging_up(2, |_| b"{\"pid\":1}\n".to_vec());
        assert_eq!(ask_server(server).unwrap().number("pid"), Some(1));
    }

    #[test]
    fn one_that_always_hangs_up_is_no_refusal_of_our_user() {
        let server = Server::after_hanging_up(ATTEMPTS, |_| Vec::new());
        assert!(matches!(ask_server(server), Err(AskError::HangsUp(_))));
    }

    #[test]
    fn an_answer_that_is_no_json_object_is_garbled() {
        for answer in ["hello\n", "[1]\n", "{\"cut\":", "\u{0}\n"] {
            let server = Server::answering(move |_| answer.into());
            assert!(
                matches!(ask_server(server), Err(AskError::Garbled { .. })),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn an_answer_without_end_is_cut_off() {
        let server = Server::answering(|_| vec![b'x'; 4 << 20]);
        assert!(matches!(ask_server(server), Err(AskError::Garbled { .. })));
    }

    #[test]
    fn silence_does_not_hang_the_command() {
        let server = Server::silent();
        assert!(matches!(ask_server(server), Err(AskError::Silent { .. })));
    }

    #[test]
    fn a_process_without_a_channel_is_called_small_only_if_it_is() {
        let told = |rss_bytes| AskError::Asleep { pid: 7, rss_bytes }.to_string();
        assert!(told(9 << 20).ends_with("it is small, 9.0 MB: it has nothing worth asking for yet"));
        let large = told(900 << 20);
        assert!(
            large.contains("it holds 900.0 MB, ") && !large.contains("small"),
            "{large}"
        );
    }

    #[test]
    fn a_process_without_the_library_is_named_so() {
        let error = ask(&own(), Request::Stats, Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, AskError::NotShimmed(_)), "{error}");
    }

    #[test]
    fn another_process_answering_in_the_name_of_one_is_not_believed() {
        let server = Server::answering(|_| b"{}\n".to_vec());
        let mut init = Process::find(1).unwrap();
        // The server listens in our name; ask for it as if it were process 1.
        init.start_ticks = server.address.start_ticks;
        let address = Address {
            pid: std::process::id() as i32,
            ..server.address
        };
        let failure = client::exchange_at(&init, address, Request::Stats, Duration::from_secs(1));
        assert!(matches!(failure, Err(client::Failure::Imposter)));
    }
}
