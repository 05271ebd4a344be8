//! Test code that the tests of this crate and the fuzz targets share.

#[cfg(test)]
mod any_input;
pub mod fuzz;
