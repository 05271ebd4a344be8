//! What a series of memory sizes does over the rounds: pure functions of numbers.
//!
//! `robust` and `slope` estimate, `settle`, `steps` and `teeth` recognise the forms that would
//! mislead a slope (warm-up, jumps, sawtooth), `trend` decides.

mod robust;
mod settle;
mod slope;
mod steps;
mod teeth;
mod trend;

#[cfg(test)]
pub mod random;
#[cfg(test)]
pub mod synthetic;

pub use robust::median;
pub use slope::Slope;
pub use trend::{Course, Shape, Trend};
