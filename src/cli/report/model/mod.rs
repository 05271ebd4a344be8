//! The data read from markers and logs: processes, their stages, and one point per round.
//!
//! Memory is bounded: long series and crowded stores are compacted. Only `Store` adds samples; after
//! `Store::finish` nothing changes.

mod collections;
mod join;
mod names;
mod order;
mod process;
mod series;
mod site_history;
mod sizes;
mod store;

pub use collections::Collections;
pub use join::PEAK_STAGE;
pub use order::Order;
pub use process::{add_kill_count, GroupId, KillCounts, Process, Refused, MIN_SILENCE_SECONDS};
pub use series::{Point, Series, Unit};
pub use site_history::{RoundHoldings, SiteHistory};
pub use sizes::{Size, Sizes};
pub use store::{Notice, Store};

#[cfg(test)]
pub use site_history::tests as site_history_tests;
