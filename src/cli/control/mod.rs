//! Talking to live processes: each process that runs on flarena listens on an abstract Unix
//! socket that its governor serves. One line asked, one JSON line answered.

mod address;
mod ask;
mod client;
mod discover;
mod peer;
#[cfg(test)]
pub mod server;
mod stats;

pub use ask::{ask, ask_when_awake, is_small, AskError, STATS_PATIENCE};
pub use client::Request;
pub use discover::{listening, shimmed};
pub use stats::Stats;
