pub mod address_window;
pub mod blocks;
#[cfg(debug_assertions)]
pub mod check;
pub mod counters;
pub mod origin;
pub mod recycler;
pub mod space;
pub mod stats;
pub mod vma_count;
pub mod warm;
