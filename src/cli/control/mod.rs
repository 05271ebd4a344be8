//! Requests to live processes. The governor of each process on flarena listens on an abstract Unix
//! socket: a request is one line, the answer is one line of JSON.

mod ask;
mod client;
mod discover;
mod stats;

pub use ask::{ask, ask_when_open, AskError, STATS_TIMEOUT};
#[cfg(test)]
pub use client::Address;
pub use client::Request;
pub use discover::{has_library, listening, with_library};
pub use stats::Stats;
