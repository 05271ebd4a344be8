//! What each verdict says and advises: a file each.

pub mod file_backed;
pub mod garbage;
pub mod growth;
pub mod live_growth;
mod pool;
pub mod quiet;
pub mod retention;
pub mod swap;
