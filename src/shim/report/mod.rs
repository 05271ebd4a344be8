//! What the process tells of itself, and does at a request: markers, statistics, messages, the trim.
//! Cold paths: all of it may allocate.

pub mod answers;
mod buffer;
pub mod hibernation;
mod history;
pub mod log;
pub mod mark;
mod marker_file;
mod memory;
pub mod panic;
pub mod sites;
pub mod stats;
pub mod trim;
