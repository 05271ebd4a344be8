//! The data read from markers and logs: processes, their stages, and one point per round.
//!
//! Memory is bounded: long series and crowded stores are compacted. Only `Store` adds samples; after
//! `Store::finish` nothing changes.

mod chain;
mod collections;
mod exec;
mod order;
mod process;
mod sample;
mod series;
mod site_history;
mod store;

pub use chain::PEAK_STAGE;
pub use collections::Collection;
pub use order::Order;
pub use process::{KillCount, Notice, Process};
pub use sample::{or_zero, Sample, Size, Sizes, NO_NAME};
pub use series::{Point, Series, Unit};
pub use site_history::{RoundHoldings, SiteHistory};
pub use store::{SourceLine, Store};

#[cfg(test)]
pub use site_history::tests as site_history_tests;
