//! What was read, in bounded memory: processes, their stages, and points per round.

mod order;
mod process;
mod sample;
mod series;
mod store;

pub use process::Process;
pub use sample::{Sample, Size, Sizes};
pub use series::{Point, Series};
pub use store::{Notice, Place, Store};
