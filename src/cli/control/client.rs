//! One question over one connection, bounded in time and size.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

use super::address::Address;
use super::peer;
use crate::proc::Process;

/// More than any answer; what is longer is not ours.
const LONGEST_ANSWER: u64 = 1 << 20;

/// What a process can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Stats,
    Trim,
    Who,
    /// Who refers to the objects of this site.
    Holders(u32),
}

impl Request {
    fn line(self) -> String {
        match self {
            Request::Stats => "stats\n".to_owned(),
            Request::Trim => "trim\n".to_owned(),
            Request::Who => "who\n".to_owned(),
            Request::Holders(site) => format!("holders {site}\n"),
        }
    }
}

#[derive(Debug)]
pub enum Failure {
    NobodyListens,
    Refused,
    TimedOut,
    Imposter,
    TooLong,
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::NobodyListens,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::TimedOut,
            // It looked at who we are and hung up before it read the request.
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Failure::Refused,
            io::ErrorKind::PermissionDenied => Failure::Refused,
            _ => Failure::Io(error),
        }
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

pub fn exchange(
    process: &Process,
    request: Request,
    patience: Duration,
) -> Result<String, Failure> {
    exchange_at(process, Address::of(process), request, patience)
}

pub(super) fn exchange_at(
    process: &Process,
    address: Address,
    request: Request,
    patience: Duration,
) -> Result<String, Failure> {
    let socket = socket_in_its_network(process)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
    let name = SocketAddrUnix::new_abstract_name(address.name().as_bytes())?;
    connect(&socket, &name)?;
    if peer::pid(socket.as_fd())? != process.pid {
        return Err(Failure::Imposter);
    }
    let mut stream = UnixStream::from(socket);
    stream.write_all(request.line().as_bytes())?;
    let answer = read_line(&mut stream, Instant::now() + patience)?;
    if answer.is_empty() {
        return Err(Failure::Refused);
    }
    Ok(answer)
}

/// A patient sender of single bytes must not keep us longer than a silent one.
fn read_line(stream: &mut impl Read, deadline: Instant) -> Result<String, Failure> {
    let mut answer = Vec::new();
    let mut chunk = [0; 8192];
    while !answer.ends_with(b"\n") {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        if answer.len() as u64 > LONGEST_ANSWER {
            return Err(Failure::TooLong);
        }
        if Instant::now() > deadline {
            return Err(Failure::TimedOut);
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Abstract names belong to a network namespace, and a container has its own.
fn socket_in_its_network(process: &Process) -> Result<OwnedFd, Failure> {
    let own = std::fs::read_link("/proc/self/ns/net").ok();
    let theirs = process.network_namespace();
    if theirs.is_none() || theirs == own {
        return Ok(socket()?);
    }
    let namespace = File::open(process.path("ns/net"))?;
    // A thread of its own: the namespace is the thread's, and a socket keeps the one it was made in.
    let made = thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        socket()
    });
    match made.join() {
        Ok(Err(Errno::PERM)) => Err(Failure::Refused),
        Ok(made) => Ok(made?),
        Err(_) => Err(Failure::Io(io::Error::other(
            "cannot enter its network namespace",
        ))),
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
}
