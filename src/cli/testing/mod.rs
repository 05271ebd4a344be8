//! Helpers of the unit tests, and the crate's fuzz target.

mod fuzz;
pub mod scratch;
pub mod server;
