//! Allocation sites over the rounds: which line holds what, and by how much it grows.
//!
//! The model keeps what the records of one process say; `growth` judges it; `text` and `page` show it.

mod growth;
mod page;
mod text;

pub use page::section;
pub use text::{guilty, json, table};
