//! The control channel: an abstract Unix socket through which `flarena stats`, `trim` and `top`
//! reach a live process, also inside a container.
//!
//! One line in, one JSON line out, then closed. Only the process's own user and root are answered
//! (`peer`), and strangers cost little (`door`). The governor serves it, so no thread of the
//! application ever waits for a client.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use flarena_shared::VERSION;
use serde_json::{json, Value};

use super::descriptor::{close, Descriptor};
use super::door::Door;
use super::request::{self, Request};
use super::{peer, python, reclaim};
use crate::garbage;
use crate::report::{answers, sites, stats, trim};
use flarena_sys::{config, identity, thread};

static LISTENER: Descriptor = Descriptor::none();

/// The longest request that is read.
pub(super) const REQUEST_MAX_BYTES: usize = 64;
/// How long a client may take to ask, and again to take its answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the program may take to collect its garbage at a client's request.
const GC_PATIENCE: Duration = Duration::from_secs(5);
/// Clients answered in one go, before the rest of the governor's work.
const CLIENTS_AT_ONCE: usize = 16;

/// Gives the socket up: one that fails serves nobody. A number that is no longer ours is left alone.
pub fn forget() {
    LISTENER.forget();
}

/// The child of a fork must not keep its parent's.
pub fn after_fork_in_child() {
    LISTENER.forget_in_child();
}

/// Called by a thread of the program's: makes the governor look up from its wait.
pub fn wake() {
    // SAFETY: plain numbers; the socket is closed below.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | CLIENT_FLAGS, 0) };
    if fd >= 0 {
        let (address, len) = address();
        // SAFETY: the address holds `len` bytes.
        unsafe { libc::connect(fd, (&raw const address).cast(), len) };
        close(fd);
    }
}

/// The listening socket, or none where the system does not give one, and when it is looked at.
pub struct Listener {
    door: Door,
}

impl Listener {
    pub fn open() -> Listener {
        if let Some(fd) = open_listener() {
            LISTENER.keep(fd);
        }
        Listener { door: Door::new() }
    }

    /// The descriptor, while it is still ours and those who wait there are to be looked at.
    pub fn descriptor(&self) -> Option<c_int> {
        LISTENER.get().filter(|_| self.opens_in().is_none())
    }

    /// How long nobody is looked at; `None` when the descriptor tells.
    pub fn opens_in(&self) -> Option<Duration> {
        self.door.opens_in(Instant::now())
    }

    /// Answers the clients that wait.
    pub fn serve(&mut self) {
        let mut strangers = false;
        for _ in 0..CLIENTS_AT_ONCE {
            let Some(client) = accept() else { break };
            let Some(fd) = client.get() else { continue };
            if peer::may_ask(fd) {
                answer(&client);
            } else {
                strangers = true;
            }
            client.forget();
        }
        self.door.looked(Instant::now(), strangers);
    }
}

fn accept() -> Option<Descriptor> {
    let listener = LISTENER.get()?;
    // SAFETY: accept4 takes null for an address that nobody wants.
    let fd = unsafe {
        libc::accept4(
            listener,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            CLIENT_FLAGS,
        )
    };
    if fd < 0 {
        return None;
    }
    let client = Descriptor::none();
    client.keep(fd);
    Some(client)
}

const CLIENT_FLAGS: c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

fn open_listener() -> Option<c_int> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | CLIENT_FLAGS, 0) };
    if fd < 0 {
        return None;
    }
    if bind_and_listen(fd) {
        return Some(fd);
    }
    close(fd);
    None
}

fn bind_and_listen(fd: c_int) -> bool {
    let (address, len) = address();
    // SAFETY: the address holds `len` bytes.
    unsafe {
        libc::bind(fd, (&raw const address).cast(), len) == 0
            && libc::listen(fd, CLIENTS_AT_ONCE as c_int) == 0
    }
}

/// The name is `\0flarena/PID/START`: the start tells processes of one pid apart.
fn address() -> (libc::sockaddr_un, libc::socklen_t) {
    let name = format!(
        "\0flarena/{}/{}",
        std::process::id(),
        identity::start_ticks()
    );
    // SAFETY: an all-zero address is a valid one to fill.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The name is far shorter than the path.
    for (place, byte) in address.sun_path.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    (address, len as libc::socklen_t)
}

fn answer(client: &Descriptor) {
    let mut buffer = [0; REQUEST_MAX_BYTES];
    let Some(request) = read_line(client, &mut buffer) else {
        return;
    };
    let reply = match request::parse(request) {
        Request::Stats => stats::document(),
        Request::Trim => trimmed(),
        Request::Who => serde_json::to_value(sites::document()).unwrap_or_default(),
        Request::Holders(site) => holders(site),
        Request::Ping => json!({ "version": VERSION }),
        Request::Unknown => {
            json!({ "error": "unknown request; known are stats, trim, who, holders and ping" })
        }
    };
    let mut line = reply.to_string();
    line.push('\n');
    write_all(client, line.as_bytes());
}

/// `null` until the program's main thread has answered: the client asks again.
fn holders(site: Option<u32>) -> Value {
    let answer = site.and_then(answers::take);
    let answer = answer.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    json!({ "python": crate::sites::reads_python(), "holders": answer })
}

/// Garbage first, so that what it held goes back, too.
fn trimmed() -> Value {
    let before = garbage::total();
    let end = Instant::now() + GC_PATIENCE;
    let collected = collect();
    // What Arrow or PyTorch keep beside malloc. A main thread that has not come by for the one need not be waited for.
    let pools = python::ask_for_pools(GC_PATIENCE)
        && python::POOLS.wait(end.saturating_duration_since(Instant::now()));
    let (result, released_bytes) = reclaim::counted(trim::trim);
    json!({
        "released_bytes": released_bytes,
        "result": result,
        "collected": collected,
        "pools": pools,
        "gc_released_bytes": garbage::total().released_bytes - before.released_bytes,
    })
}

/// Null where there is no collector to ask; false when the program did not come by in time.
fn collect() -> Option<bool> {
    if !config::settings().gc || !crate::python::is_running() {
        return None;
    }
    let collections = garbage::total().collections;
    python::COLLECTION.ask();
    Some(python::COLLECTION.wait(GC_PATIENCE) && garbage::total().collections > collections)
}

/// The request without its newline; `None` when the client is too slow or says too much.
pub(super) fn read_line<'b>(
    client: &Descriptor,
    buffer: &'b mut [u8; REQUEST_MAX_BYTES],
) -> Option<&'b [u8]> {
    let deadline = Instant::now() + PATIENCE;
    let mut len = 0;
    loop {
        if let Some(end) = buffer[..len].iter().position(|&b| b == b'\n') {
            return Some(&buffer[..end]);
        }
        if len == buffer.len() {
            return None;
        }
        let fd = ready(client, libc::POLLIN, deadline)?;
        let rest = &mut buffer[len..];
        // SAFETY: the slice says how much may be written.
        let n = unsafe { libc::read(fd, rest.as_mut_ptr().cast(), rest.len()) };
        len += usize::try_from(n).ok().filter(|&n| n > 0)?;
    }
}

fn write_all(client: &Descriptor, mut rest: &[u8]) {
    let deadline = Instant::now() + PATIENCE;
    while !rest.is_empty() {
        let Some(fd) = ready(client, libc::POLLOUT, deadline) else {
            return;
        };
        // SAFETY: the pointer and the length are those of a live slice.
        let n = unsafe { libc::send(fd, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(n) {
            Ok(n) if n > 0 => rest = &rest[n..],
            _ => return,
        }
    }
}

/// Waits for the client, until the deadline. Answers its number, which the wait may have made somebody else's.
fn ready(client: &Descriptor, events: libc::c_short, deadline: Instant) -> Option<c_int> {
    let mut poll = libc::pollfd {
        fd: client.get()?,
        events,
        revents: 0,
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = left.as_millis() as c_int;
    // SAFETY: one entry, as is said.
    let ready = thread::between_work(|| unsafe { libc::poll(&mut poll, 1, timeout) });
    (ready == 1 && poll.revents & events != 0)
        .then(|| client.get())
        .flatten()
}
