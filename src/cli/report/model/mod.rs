//! What was read, in bounded memory: processes, their stages, and points per round.

mod duplicates;
mod garbage;
mod held;
mod order;
mod process;
mod sample;
mod series;
mod store;

pub use duplicates::Duplicate;
pub use garbage::Collected;
pub use held::{History, Round};
pub use process::{Notice, Process};
pub use sample::{or_zero, Sample, Size, Sizes, NO_NAME};
pub use series::{Point, Series};
pub use store::{Place, Store};

#[cfg(test)]
pub use held::tests as held_tests;
