//! The control channel: an abstract Unix socket through which `flarena stats`, `trim`, `top` and
//! `who` reach a live process, also inside a container.
//!
//! A client sends one line, gets one line of JSON, and is disconnected. The governor answers only
//! the process's own user and root. It serves clients itself, so no thread of the program ever
//! waits for one. Only the governor's thread changes the state here.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use flarena_shared::backoff::Backoff;
use flarena_shared::parse;
use flarena_shared::VERSION;
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{self, SendFlags};
use serde_json::{json, Value};

use super::{descriptors, python};
use crate::report::{holders, sites, stats, trim};
use crate::{channel, garbage, launch, memory_limit};
use flarena_sys::proc::procfs;
use flarena_sys::{config, thread::helper};

/// The longest request, with its newline.
const REQUEST_MAX_BYTES: usize = 64;
/// Time limit for the request of a client, and again for sending the reply.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for Python's main thread to collect garbage and to release its pools.
const PYTHON_TIMEOUT: Duration = Duration::from_secs(5);
/// Clients that are served before the governor's other work.
const CLIENTS_AT_ONCE: usize = 16;

/// The listening socket. It accepts nothing for a while after clients of other users, longer each time. Every user of the
/// machine may connect, and to find out who it is costs CPU time. Authorized clients wait in the queue meanwhile, for a
/// second at most.
pub struct Listener {
    /// `None` if the system refused it, and without an own descriptor table.
    pub socket: Option<OwnedFd>,
    closed_until: Option<Instant>,
    pause: Backoff<Duration>,
}

impl Listener {
    const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);

    pub fn open() -> Listener {
        Listener::new(descriptors::keep_open(listen))
    }

    fn new(socket: Option<OwnedFd>) -> Listener {
        let pause = Backoff::between(Self::SHORTEST_PAUSE, Self::LONGEST_PAUSE);
        Listener {
            socket,
            closed_until: None,
            pause: pause.starting_at(Duration::ZERO),
        }
    }

    /// The descriptor to poll; `None` while no client is accepted.
    pub fn descriptor(&self, now: Instant) -> Option<c_int> {
        let socket = self.socket.as_ref();
        let accepting = socket.filter(|_| self.accepts_in(now).is_none());
        accepting.map(AsRawFd::as_raw_fd)
    }

    /// The time until clients are accepted again; `None`: they are now.
    pub fn accepts_in(&self, now: Instant) -> Option<Duration> {
        let until = self.closed_until.filter(|until| *until > now)?;
        Some(until - now)
    }

    /// Serves the clients that wait.
    pub fn serve(&mut self) {
        let Some(socket) = &self.socket else { return };
        let mut unauthorized_peers = 0;
        for _ in 0..CLIENTS_AT_ONCE {
            let Ok(client) = net::accept_with(socket, channel::SOCKET_FLAGS) else {
                break;
            };
            if is_authorized(&client) {
                answer(&client);
            } else {
                unauthorized_peers += 1;
            }
        }
        self.served(Instant::now(), unauthorized_peers);
    }

    /// Records that all waiting clients were served.
    fn served(&mut self, now: Instant, unauthorized_peers: usize) {
        if unauthorized_peers == 0 {
            // No reset: the next unauthorized client is likely the same program.
            self.pause.shorten();
        } else {
            self.pause.lengthen();
            self.closed_until = Some(now + self.pause.value());
        }
    }
}

fn listen() -> Option<OwnedFd> {
    let socket = channel::socket()?;
    net::bind(&socket, &channel::address()?).ok()?;
    net::listen(&socket, CLIENTS_AT_ONCE as c_int).ok()?;
    Some(socket)
}

/// True for the process's own user and root, by the kernel's report.
fn is_authorized(client: &OwnedFd) -> bool {
    let own = rustix::process::geteuid().as_raw();
    uid_of(client).is_some_and(|uid| (uid == 0 || uid == own) && !is_ambiguous(uid))
}

/// Not by rustix, whose type for the pid of a peer excludes 0: a process outside this pid namespace has none.
fn uid_of(client: &OwnedFd) -> Option<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer has the length that is passed.
    let error = unsafe {
        libc::getsockopt(
            client.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut len,
        )
    };
    (error == 0).then_some(peer.uid)
}

/// True if the number may stand for several users. In a user namespace all users without a mapping
/// look like one user, which may also be the process's own.
fn is_ambiguous(uid: u32) -> bool {
    /// The kernel's default.
    const OVERFLOW_UID: u32 = 65_534;
    let mut buffer = [0; 32];
    let overflow = procfs::read_file(c"/proc/sys/kernel/overflowuid", &mut buffer)
        .and_then(procfs::leading_number)
        .map_or(OVERFLOW_UID, |number| number as u32);
    if uid != overflow && uid != OVERFLOW_UID {
        return false;
    }
    let mut buffer = [0; 256];
    !procfs::read_file(c"/proc/self/uid_map", &mut buffer).is_some_and(maps_all_users)
}

/// True for the map of the initial user namespace, which maps each user to itself.
fn maps_all_users(map: &[u8]) -> bool {
    let fields = map.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
    fields.take(3).eq([&b"0"[..], b"0", b"4294967295"])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Stats,
    Trim,
    Who,
    /// The holders of this site's blocks; `None` if the number is missing or wrong.
    Holders(Option<u32>),
    /// Turns sites on.
    Sites,
    Ping,
    Unknown,
}

impl Request {
    const HOLDERS: &[u8] = b"holders ";

    /// Parses a line without its newline. The line comes from outside.
    fn parse(line: &[u8]) -> Request {
        match line {
            b"stats" => Request::Stats,
            b"trim" => Request::Trim,
            b"who" => Request::Who,
            b"sites" => Request::Sites,
            b"ping" => Request::Ping,
            _ => match line.strip_prefix(Self::HOLDERS) {
                Some(site) => {
                    Request::Holders(parse::number(site).and_then(|site| site.try_into().ok()))
                }
                None => Request::Unknown,
            },
        }
    }
}

fn answer(client: &OwnedFd) {
    let mut buffer = [0; REQUEST_MAX_BYTES];
    let Some(request) = read_line(client, &mut buffer) else {
        return;
    };
    let reply = match Request::parse(request) {
        Request::Stats => stats::document(),
        Request::Trim => trim(),
        Request::Who => serde_json::to_value(sites::document()).unwrap_or_default(),
        Request::Holders(site) => holders(site),
        Request::Sites => serde_json::to_value(super::sites::start()).unwrap_or_default(),
        Request::Ping => json!({ "version": VERSION }),
        Request::Unknown => {
            json!({ "error": "unknown request; known are stats, trim, who, holders, sites and ping" })
        }
    };
    write_all(client, format!("{reply}\n").as_bytes());
}

/// `null` until Python's main thread has found the holders. The client asks again.
fn holders(site: Option<u32>) -> Value {
    let answer = site.and_then(holders::take);
    let answer = answer.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    json!({ "python": flarena_sites::reads_python(), "late": flarena_sites::is_late(), "holders": answer })
}

/// Collects garbage first, then releases Python's pools, then trims what both have freed.
fn trim() -> Value {
    let before = garbage::total();
    let end = Instant::now() + PYTHON_TIMEOUT;
    let collected = collect();
    // A main thread that did not respond to the first request is not waited for again.
    let pools = python::ask_for_pools(PYTHON_TIMEOUT)
        && python::POOLS.wait(end.saturating_duration_since(Instant::now()));
    let (result, released_bytes) = memory_limit::counted(trim::trim);
    json!({
        "released_bytes": released_bytes,
        "result": result,
        "collected": collected.map(|outcome| outcome.is_ok()),
        "not_collected_because": collected.and_then(Result::err),
        "pools": pools,
        "gc_released_bytes": garbage::total().released_bytes - before.released_bytes,
    })
}

/// `None` without Python or with `FLARENA_GC=off`. An error is the reason, for the user.
fn collect() -> Option<Result<(), &'static str>> {
    if !config::settings().gc || !crate::python::is_running() {
        return None;
    }
    if garbage::ends_sharing() {
        return Some(Err(
            "memory shared with parent or children would become private",
        ));
    }
    let collections = garbage::total().collections;
    python::COLLECTION.ask();
    let has_answered = python::COLLECTION.wait(PYTHON_TIMEOUT);
    Some(match garbage::total().collections > collections {
        true => Ok(()),
        false if has_answered => Err("disabled, in a signal handler, or Python is ending"),
        false => Err("the main thread did not respond in 5 s"),
    })
}

/// Reads the request, without its newline. `None` if the client is too slow or the line too long.
fn read_line<'b>(client: &OwnedFd, buffer: &'b mut [u8; REQUEST_MAX_BYTES]) -> Option<&'b [u8]> {
    let deadline = Instant::now() + CLIENT_TIMEOUT;
    let mut len = 0;
    loop {
        if let Some(end) = buffer[..len].iter().position(|&b| b == b'\n') {
            return Some(&buffer[..end]);
        }
        if len == buffer.len() || !wait_for(client, PollFlags::IN, deadline) {
            return None;
        }
        let read = rustix::io::read(client, &mut buffer[len..]);
        len += read.ok().filter(|&n| n > 0)?;
    }
}

fn write_all(client: &OwnedFd, mut rest: &[u8]) {
    let deadline = Instant::now() + CLIENT_TIMEOUT;
    while !rest.is_empty() && wait_for(client, PollFlags::OUT, deadline) {
        match net::send(client, rest, SendFlags::NOSIGNAL) {
            Ok(n) if n > 0 => rest = &rest[n..],
            _ => return,
        }
    }
}

/// False if the client is not ready before the deadline, or has disconnected, and once the governor is
/// to end.
fn wait_for(client: &OwnedFd, events: PollFlags, deadline: Instant) -> bool {
    if launch::is_ending() {
        return false;
    }
    let mut polled = [PollFd::new(client, events)];
    let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
    let ready = helper::wait_outside_work(|| event::poll(&mut polled, left.as_ref()));
    ready == Ok(1) && polled[0].revents().contains(events)
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType};

    use super::*;

    /// For the fuzzer: a client sends these bytes and disconnects.
    pub fn any_request(input: &[u8]) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let pair = net::socketpair(family, kind, SocketFlags::empty(), None);
        let (client, peer) = pair.expect("the system has sockets");
        let written = rustix::io::write(&peer, input);
        assert_eq!(written, Ok(input.len()), "the input fits into the socket");
        drop(peer);
        let mut buffer = [0; REQUEST_MAX_BYTES];
        let read = read_line(&client, &mut buffer);
        let line = input.split(|&byte| byte == b'\n').next();
        let complete = line.filter(|line| line.len() < input.len().min(REQUEST_MAX_BYTES));
        assert_eq!(read, complete);
        if let Some(line) = read {
            check_meaning(line, Request::parse(line));
        }
    }

    /// Panics if the line means another request.
    fn check_meaning(line: &[u8], request: Request) {
        let known: &[&[u8]] = &[b"stats", b"trim", b"who", b"sites", b"ping"];
        let asks_for_holders = line.starts_with(Request::HOLDERS);
        match request {
            Request::Unknown => assert!(!known.contains(&line) && !asks_for_holders),
            Request::Holders(site) => {
                assert!(asks_for_holders);
                if let Some(site) = site {
                    assert!(line.ends_with(site.to_string().as_bytes()));
                }
            }
            _ => assert!(known.contains(&line)),
        }
    }

    #[test]
    fn each_request_has_one_word() {
        assert_eq!(Request::parse(b"stats"), Request::Stats);
        assert_eq!(Request::parse(b"holders 7"), Request::Holders(Some(7)));
        let too_large = b"holders 99999999999";
        assert_eq!(Request::parse(too_large), Request::Holders(None));
        assert_eq!(Request::parse(b"holders"), Request::Unknown);
        assert_eq!(Request::parse(b"trim "), Request::Unknown);
    }

    fn word() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"stats".to_vec()),
            Just(b"trim".to_vec()),
            Just(b"who".to_vec()),
            Just(b"sites".to_vec()),
            Just(b"ping".to_vec()),
            Just(b"holders ".to_vec()),
            any::<u64>().prop_map(|number| number.to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..8),
        ]
    }

    proptest! {
        #[test]
        fn any_line_is_a_request_and_only_a_known_line_has_an_effect(
            words in prop::collection::vec(word(), 0..4)
        ) {
            let line = words.concat();
            check_meaning(&line, Request::parse(&line));
        }
    }

    #[test]
    fn authorized_clients_never_stop_the_accepting() {
        let (mut listener, now) = (Listener::new(None), Instant::now());
        for _ in 0..1000 {
            listener.served(now, 0);
            assert_eq!(listener.accepts_in(now), None);
        }
    }

    #[test]
    fn endless_unauthorized_peers_are_accepted_once_a_second() {
        let (mut listener, start) = (Listener::new(None), Instant::now());
        let (mut now, mut accepted) = (start, 0);
        while now < start + Duration::from_secs(60) {
            if listener.accepts_in(now).is_none() {
                listener.served(now, 1);
                accepted += 1;
            }
            now += Duration::from_millis(1);
        }
        assert!((60..=70).contains(&accepted), "{accepted} in a minute");
    }

    #[test]
    fn one_unauthorized_peer_delays_others_for_the_shortest_time() {
        let (mut listener, now) = (Listener::new(None), Instant::now());
        let shortest = Listener::SHORTEST_PAUSE;
        listener.served(now, 1);
        assert_eq!(listener.accepts_in(now), Some(shortest));
        assert_eq!(listener.accepts_in(now + shortest), None);
    }

    #[test]
    fn only_the_initial_namespace_maps_all_users() {
        let first = b"         0          0 4294967295\n";
        assert!(maps_all_users(first));
        for map in [
            &b"0 1000 1\n1 100000 65536\n"[..],
            b"65534 1000 1\n",
            b"0 1000 4294967295\n",
            b"",
        ] {
            assert!(!maps_all_users(map));
        }
    }
}
