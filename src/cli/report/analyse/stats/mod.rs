//! Statistics of a series of memory sizes: pure functions of numbers.
//!
//! There is one estimator (`line`) and one classification (`trend`), so that the tables, sentences,
//! JSON and `--fail-on` show the same numbers.

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
pub use trend::{
    material_growth, Trend, TrendClass, MATERIAL_BYTES, MIN_ROUNDS, MIN_SETTLED_ROUNDS,
};
