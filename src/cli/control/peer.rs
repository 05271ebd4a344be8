//! Who is at the other end of a Unix socket. By hand because rustix's `UCred` cannot hold the
//! pid 0 that the kernel gives for a process outside our pid namespace.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The process that listens at the other end, or 0 where we cannot see it.
pub fn pid(socket: BorrowedFd) -> io::Result<i32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = mem::size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the socket is open while it is borrowed; `peer` and `size` are ours, the kernel
    // writes at most `size` bytes, and any bytes make a valid `ucred`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut size,
        )
    };
    if result == 0 {
        Ok(peer.pid)
    } else {
        Err(io::Error::last_os_error())
    }
}
