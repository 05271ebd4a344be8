//! Whatever a client of the control channel sends.

use std::io::Write;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;

use super::control::{read_line, REQUEST_MAX_BYTES};
use super::descriptor::Descriptor;
use super::request::{check, parse};

/// What one client sends before it hangs up.
pub fn any_request(input: &[u8]) {
    let (ours, mut theirs) = UnixStream::pair().expect("the system gives sockets");
    let client = Descriptor::none();
    client.keep(ours.into_raw_fd());
    theirs.write_all(input).expect("it fits into the socket");
    drop(theirs);
    let mut buffer = [0; REQUEST_MAX_BYTES];
    let read = read_line(&client, &mut buffer);
    client.forget();
    let line = input.split(|&byte| byte == b'\n').next();
    let complete = line.filter(|line| line.len() < input.len().min(REQUEST_MAX_BYTES));
    assert_eq!(read, complete);
    if let Some(line) = read {
        check(line, parse(line));
    }
}
