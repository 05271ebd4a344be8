//! The reports of the process on itself: markers, statistics, allocation sites, the log. Also the
//! trim on request. These are cold paths, so all of them may allocate.

pub mod at_limit;
mod buffer;
pub mod history;
pub mod holders;
pub mod log;
pub mod mark;
mod marker_file;
mod memory;
pub mod panic;
pub mod sites;
pub mod stats;
pub mod trim;
