//! A test server in place of the governor.

use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::control::Address;

pub struct Server {
    pub address: Address,
    /// Keeps the name of a silent server in use.
    _listener: Option<UnixListener>,
}

impl Server {
    /// Answers one request.
    pub fn answering(answer: impl FnOnce(&str) -> Vec<u8> + Send + 'static) -> Self {
        Self::after_hanging_up(0, answer)
    }

    /// Closes `count` connections without an answer, then answers one request.
    pub fn after_hanging_up(
        count: usize,
        answer: impl FnOnce(&str) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let (address, listener) = listen();
        thread::spawn(move || {
            for _ in 0..count {
                drop(listener.accept());
            }
            serve(&listener, answer);
        });
        Self {
            address,
            _listener: None,
        }
    }

    /// Listens and never accepts a connection.
    pub fn silent() -> Self {
        let (address, listener) = listen();
        Self {
            address,
            _listener: Some(listener),
        }
    }
}

fn serve(listener: &UnixListener, answer: impl FnOnce(&str) -> Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = String::new();
    BufReader::new(&stream).read_line(&mut request).unwrap();
    // The client may have closed the connection.
    let _ = stream.write_all(&answer(&request));
}

fn listen() -> (Address, UnixListener) {
    let address = new_address();
    let listener = bind(address.name());
    (address, listener)
}

/// Each server has a start time that differs from this process's.
fn new_address() -> Address {
    static SERIAL: AtomicU64 = AtomicU64::new(1 << 60);
    Address {
        pid: std::process::id() as i32,
        start_ticks: SERIAL.fetch_add(1, Ordering::Relaxed),
    }
}

fn bind(name: impl AsRef<[u8]>) -> UnixListener {
    let name = SocketAddr::from_abstract_name(name).unwrap();
    UnixListener::bind_addr(&name).unwrap()
}
