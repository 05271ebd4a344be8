//! The recycler serves large blocks, and reuses the pages of freed ones for blocks of other sizes.
//!
//! To gather one large block from several freed ones, it moves their pages with `mremap`. A move of
//! 2 MiB moves one pointer to a page-table page, and costs a hundredth of faulting the pages in.
//! Caching never raises the resident set above the highest total of live blocks, except for a small
//! tolerance (`policy::budget`). README.md describes the folders, the states of an extent and the
//! life of an allocation. `api` is the only public module.

mod api;
mod core;
mod ops;
mod os;
mod policy;
mod state;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use api::*;
