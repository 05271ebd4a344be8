//! The control channel: an abstract Unix socket through which `flarena stats`, `trim` and `top`
//! reach a live process, also inside a container.
//!
//! One line in, one JSON line out, then closed. Only the process's own user and root are answered,
//! by the credentials that the kernel gives for the peer. The governor serves it, so no thread of
//! the application ever waits for a client.

use std::ffi::c_int;
use std::time::Duration;

use flarena_shared::VERSION;
use serde_json::{json, Value};

use super::descriptor::{close, Descriptor};
use super::{python, reclaim};
use crate::process::{config, identity};
use crate::report::{answers, garbage, sites, stats, trim};

static LISTENER: Descriptor = Descriptor::none();

/// The longest request that is read.
const REQUEST_MAX_BYTES: usize = 64;
/// How long a client may take to ask, and to take its answer.
const PATIENCE_MS: c_int = 1000;
/// How long the program may take to collect its garbage at a client's request.
const GC_PATIENCE: Duration = Duration::from_secs(5);
/// Clients answered in one go, before the rest of the governor's work.
const CLIENTS_AT_ONCE: usize = 16;

/// Gives the socket up: the child of a fork must not keep its parent's, and one that fails serves
/// nobody. A number that is no longer ours is left alone.
pub fn forget() {
    LISTENER.forget();
}

/// The listening socket, or none where the system does not give one.
pub struct Listener;

impl Listener {
    pub fn open() -> Listener {
        if let Some(fd) = open_listener() {
            LISTENER.keep(fd);
        }
        Listener
    }

    /// The descriptor, while it is still ours.
    pub fn descriptor(&self) -> Option<c_int> {
        LISTENER.get()
    }

    /// Answers the clients that wait.
    pub fn serve(&self) {
        for _ in 0..CLIENTS_AT_ONCE {
            let Some(listener) = self.descriptor() else {
                return;
            };
            // SAFETY: accept4 takes null for an address that nobody wants.
            let client = unsafe {
                libc::accept4(
                    listener,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    CLIENT_FLAGS,
                )
            };
            if client < 0 {
                return;
            }
            if is_allowed(client) {
                answer(client);
            }
            close(client);
        }
    }
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

/// The name is `\0flarena/PID/START`: the start tells processes of one pid apart.
fn bind_and_listen(fd: c_int) -> bool {
    let name = format!(
        "\0flarena/{}/{}",
        std::process::id(),
        identity::start_ticks()
    );
    // SAFETY: an all-zero address is a valid one to fill.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (place, byte) in address.sun_path.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    // SAFETY: the address holds `len` bytes: the name is far shorter than the path.
    unsafe {
        libc::bind(fd, (&raw const address).cast(), len as libc::socklen_t) == 0
            && libc::listen(fd, CLIENTS_AT_ONCE as c_int) == 0
    }
}

/// The same user, or root.
fn is_allowed(client: c_int) -> bool {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer has the length that is said.
    let error = unsafe {
        libc::getsockopt(
            client,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut len,
        )
    };
    // SAFETY: geteuid cannot fail.
    error == 0 && (peer.uid == 0 || peer.uid == unsafe { libc::geteuid() })
}

fn answer(client: c_int) {
    let mut buffer = [0; REQUEST_MAX_BYTES];
    let Some(request) = read_line(client, &mut buffer) else {
        return;
    };
    let reply = match request {
        b"stats" => stats::document(),
        b"trim" => trimmed(),
        b"who" => serde_json::to_value(sites::document()).unwrap_or_default(),
        request if request.starts_with(HOLDERS) => holders(&request[HOLDERS.len()..]),
        b"ping" => json!({ "version": VERSION }),
        _ => json!({ "error": "unknown request; known are stats, trim, who, holders and ping" }),
    };
    let mut line = reply.to_string();
    line.push('\n');
    write_all(client, line.as_bytes());
}

const HOLDERS: &[u8] = b"holders ";

/// `null` until the program's main thread has answered: the client asks again.
fn holders(site: &[u8]) -> Value {
    let site = std::str::from_utf8(site)
        .ok()
        .and_then(|site| site.parse().ok());
    let answer = site.and_then(answers::take);
    let answer = answer.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    json!({ "python": crate::sites::reads_python(), "holders": answer })
}

/// Garbage first, so that what it held goes back, too.
fn trimmed() -> Value {
    let before = garbage::total();
    let collected = collect();
    let (result, released_bytes) = reclaim::counted(trim::trim);
    json!({
        "released_bytes": released_bytes,
        "result": result,
        "collected": collected,
        "gc_released_bytes": garbage::total().released_bytes - before.released_bytes,
    })
}

/// Null where there is no collector to ask; false when the program did not come by in time.
fn collect() -> Option<bool> {
    if !config::settings().gc || !python::is_running() {
        return None;
    }
    let collections = garbage::total().collections;
    python::ask();
    Some(python::wait(GC_PATIENCE) && garbage::total().collections > collections)
}

/// The request without its newline; `None` when the client is too slow or says too much.
fn read_line(client: c_int, buffer: &mut [u8; REQUEST_MAX_BYTES]) -> Option<&[u8]> {
    let mut len = 0;
    loop {
        if let Some(end) = buffer[..len].iter().position(|&b| b == b'\n') {
            return Some(&buffer[..end]);
        }
        if len == buffer.len() || !is_ready(client, libc::POLLIN) {
            return None;
        }
        let rest = &mut buffer[len..];
        // SAFETY: the slice says how much may be written.
        let n = unsafe { libc::read(client, rest.as_mut_ptr().cast(), rest.len()) };
        len += usize::try_from(n).ok().filter(|&n| n > 0)?;
    }
}

fn write_all(client: c_int, mut rest: &[u8]) {
    while !rest.is_empty() && is_ready(client, libc::POLLOUT) {
        // SAFETY: the pointer and the length are those of a live slice.
        let n = unsafe { libc::send(client, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(n) {
            Ok(n) if n > 0 => rest = &rest[n..],
            _ => return,
        }
    }
}

fn is_ready(client: c_int, events: libc::c_short) -> bool {
    let mut poll = libc::pollfd {
        fd: client,
        events,
        revents: 0,
    };
    // SAFETY: one entry, as is said.
    unsafe { libc::poll(&mut poll, 1, PATIENCE_MS) == 1 && poll.revents & events != 0 }
}
