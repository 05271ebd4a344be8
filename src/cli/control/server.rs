//! A small stand-in for the governor's end of the channel, for tests.

use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::address::Address;

pub struct Server {
    pub address: Address,
    /// Keeps a silent server's name taken.
    _listener: Option<UnixListener>,
}

impl Server {
    /// Answers one request.
    pub fn answering(answer: impl FnOnce(&str) -> Vec<u8> + Send + 'static) -> Self {
        Self::after_hanging_up(0, answer)
    }

    /// Closes so many connections without a word first.
    pub fn after_hanging_up(
        count: usize,
        answer: impl FnOnce(&str) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let (address, listener) = listen();
        thread::spawn(move || {
            for _ in 0..count {
                drop(listener.accept());
            }
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            // The client may have had enough.
            let _ = stream.write_all(&answer(&request));
        });
        Self {
            address,
            _listener: None,
        }
    }

    /// Accepts nothing.
    pub fn silent() -> Self {
        let (address, listener) = listen();
        Self {
            address,
            _listener: Some(listener),
        }
    }
}

/// Each server has a start time that this process certainly did not have.
fn listen() -> (Address, UnixListener) {
    static SERIAL: AtomicU64 = AtomicU64::new(1 << 60);
    let start_ticks = SERIAL.fetch_add(1, Ordering::Relaxed);
    let address = Address {
        pid: std::process::id() as i32,
        start_ticks,
    };
    let name = SocketAddr::from_abstract_name(address.name()).unwrap();
    (address, UnixListener::bind_addr(&name).unwrap())
}
