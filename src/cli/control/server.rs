//! A small stand-in for the governor's end of the channel, for tests.

use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

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
            serve(&listener, answer);
        });
        Self {
            address,
            _listener: None,
        }
    }

    /// Listens only after a while, then answers one request.
    pub fn late(delay: Duration, answer: impl FnOnce(&str) -> Vec<u8> + Send + 'static) -> Self {
        let address = new_address();
        let name = address.name();
        thread::spawn(move || {
            thread::sleep(delay);
            serve(&bind(name), answer);
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

fn serve(listener: &UnixListener, answer: impl FnOnce(&str) -> Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = String::new();
    BufReader::new(&stream).read_line(&mut request).unwrap();
    // The client may have had enough.
    let _ = stream.write_all(&answer(&request));
}

fn listen() -> (Address, UnixListener) {
    let address = new_address();
    let listener = bind(address.name());
    (address, listener)
}

/// Each server has a start time that this process certainly did not have.
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
