//! What a series of memory sizes does over the rounds: pure functions of numbers.
//!
//! One estimator (`line`), one interval, one decision (`trend`): the table, the sentence, the JSON and
//! `--fail-on` show the same numbers.

mod line;
mod robust;
mod trend;

#[cfg(test)]
mod properties;
#[cfg(test)]
pub mod random;
#[cfg(test)]
pub mod synthetic;

pub use line::{mean, Slope};
pub use robust::{median, quantile};
pub use trend::{material, Course, Trend, LEAST, LEAST_GROWING, MATERIAL_BYTES};
