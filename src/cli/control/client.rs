//! One request over one connection, with a timeout and a limit on the answer.
//!
//! A process listens on an abstract Unix socket in its network namespace. The name contains the pid
//! and the start time, so a later process with the same pid has another name.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

use crate::proc::Process;

/// Longer than any answer of the library.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// The name under which a process listens. Pid and start time are those in the process's own namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    pub pid: i32,
    pub start_ticks: u64,
}

impl Address {
    pub fn of(process: &Process) -> Self {
        Self {
            pid: process.own_pid(),
            start_ticks: process.own_start_ticks(),
        }
    }

    /// The name, without the leading NUL of an abstract name.
    pub fn name(&self) -> String {
        format!("flarena/{}/{}", self.pid, self.start_ticks)
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        let (pid, start) = name.strip_prefix("flarena/")?.split_once('/')?;
        Some(Self {
            pid: pid.parse().ok()?,
            start_ticks: start.parse().ok()?,
        })
    }
}

/// A request to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Stats,
    Trim,
    Who,
    /// The references to the objects of this site.
    Holders(u32),
    /// Turn sites on.
    Sites,
}

impl Request {
    fn line(self) -> String {
        match self {
            Request::Stats => "stats\n".to_owned(),
            Request::Trim => "trim\n".to_owned(),
            Request::Who => "who\n".to_owned(),
            Request::Sites => "sites\n".to_owned(),
            Request::Holders(site) => format!("holders {site}\n"),
        }
    }
}

/// Whether the process closed the connection, or refused it, before it answered.
pub fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::PermissionDenied
            | ErrorKind::UnexpectedEof
    )
}

/// The answer. An error of the kind `ConnectionRefused` means that no process listens under the address, `AddrInUse`
/// that another process does, and `InvalidData` that the answer is too long.
pub fn exchange(
    process: &Process,
    address: Address,
    request: Request,
    timeout: Duration,
) -> io::Result<String> {
    let socket = socket_in_network_of(process)?;
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(timeout))?;
    let name = SocketAddrUnix::new_abstract_name(address.name().as_bytes())?;
    connect(&socket, &name)?;
    if peer_pid(socket.as_fd())? != process.pid {
        return Err(ErrorKind::AddrInUse.into());
    }
    let mut stream = UnixStream::from(socket);
    stream.write_all(request.line().as_bytes())?;
    let answer = read_line(&mut stream, Instant::now() + timeout)?;
    if answer.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(answer)
}

/// The deadline also ends an answer that arrives byte by byte.
fn read_line(stream: &mut impl Read, deadline: Instant) -> io::Result<String> {
    let mut answer = Vec::new();
    let mut chunk = [0; 8192];
    while !answer.ends_with(b"\n") {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if answer.len() as u64 > MAX_ANSWER_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        if Instant::now() > deadline {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Abstract names belong to a network namespace, and a container has its own one.
fn socket_in_network_of(process: &Process) -> io::Result<OwnedFd> {
    let own = std::fs::read_link("/proc/self/ns/net").ok();
    let theirs = process.network_namespace();
    if theirs.is_none() || theirs == own {
        return Ok(socket()?);
    }
    let namespace = File::open(process.path("ns/net"))?;
    // In a separate thread, because the namespace is a property of the thread. A socket keeps the
    // one that it was created in.
    let made = thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        socket()
    });
    Ok(made.join().unwrap_or(Err(Errno::PERM))?)
}

fn socket() -> Result<OwnedFd, Errno> {
    socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
}

/// The process at the other end of a socket, or 0 if it is outside this pid namespace. rustix's
/// `UCred` cannot represent 0, hence the direct call.
fn peer_pid(socket: BorrowedFd) -> io::Result<i32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = mem::size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the socket is open while borrowed. The kernel writes at most `size` bytes into
    // `peer`, and any bytes are a valid `ucred`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_address_parses_to_it_and_other_names_do_not() {
        let address = Address {
            pid: 17,
            start_ticks: 9876,
        };
        assert_eq!(Address::parse(&address.name()), Some(address));
        for other in [
            "flarena/",
            "flarena/1",
            "flarena/a/b",
            "flarena/1/2/3",
            "x/1/2",
        ] {
            assert_eq!(Address::parse(other), None, "{other}");
        }
    }
}
