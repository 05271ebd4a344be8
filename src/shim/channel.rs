//! The address of the control channel, and how a thread of the program wakes the governor through it.
//! Nothing here allocates.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use flarena_sys::identity;

pub const SOCKET_FLAGS: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

pub fn socket() -> Option<OwnedFd> {
    // SAFETY: the call takes numbers alone.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | SOCKET_FLAGS, 0) };
    // SAFETY: the call opened the descriptor, and nothing else owns it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The name is `\0flarena/PID/START`. The start time distinguishes processes that had the same pid.
pub fn address() -> (libc::sockaddr_un, libc::socklen_t) {
    let mut name = [0; 64];
    let mut rest = &mut name[..];
    let identity::Process { pid, start, .. } = identity::process();
    // The longest name has 37 bytes.
    let _ = write!(rest, "\0flarena/{pid}/{start}");
    let len = 64 - rest.len();
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (place, byte) in address.sun_path.iter_mut().zip(&name[..len]) {
        *place = *byte as libc::c_char;
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + len;
    (address, len as libc::socklen_t)
}

/// Wakes the governor from its wait. Without a channel it wakes up within a second.
pub fn wake() {
    if let Some(socket) = socket() {
        let (address, len) = address();
        // SAFETY: the address has `len` bytes.
        unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) };
    }
}
