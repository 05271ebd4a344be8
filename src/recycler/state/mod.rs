pub mod address_window;
pub mod recycler;
pub mod space;
pub mod stats;
pub mod vma_count;
