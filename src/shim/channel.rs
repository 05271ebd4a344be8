//! The address of the control channel, and how a thread of the program wakes the governor through it.
//! Nothing here allocates.

use std::io::Write;

use flarena_sys::identity;
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

pub const SOCKET_FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

pub fn socket() -> Option<OwnedFd> {
    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SOCKET_FLAGS, None).ok()
}

/// The name is `\0flarena/PID/START`. The start time distinguishes processes that had the same pid.
pub fn address() -> Option<SocketAddrUnix> {
    let mut name = [0; 64];
    let mut rest = &mut name[..];
    let identity::Process { pid, start, .. } = identity::process();
    // The longest name has 36 bytes.
    let _ = write!(rest, "flarena/{pid}/{start}");
    let len = 64 - rest.len();
    SocketAddrUnix::new_abstract_name(&name[..len]).ok()
}

/// Wakes the governor from its wait. Without a channel it wakes up within a second.
pub fn wake() {
    if let Some((socket, address)) = socket().zip(address()) {
        let _ = net::connect(&socket, &address);
    }
}
