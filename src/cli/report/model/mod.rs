//! What was read, in bounded memory: processes, their stages, and points per round.

mod collections;
mod duplicates;
mod order;
mod process;
mod sample;
mod series;
mod site_history;
mod store;

pub use collections::Collected;
pub use duplicates::Duplicate;
pub use process::{Notice, Process};
pub use sample::{or_zero, Sample, Size, Sizes, NO_NAME};
pub use series::{Point, Series};
pub use site_history::{History, Round};
pub use store::{Place, Store};

#[cfg(test)]
pub use site_history::tests as held_tests;
