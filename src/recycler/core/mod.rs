pub mod extent_pool;
pub mod geometry;
pub mod page_ledger;
pub mod pagemap;
pub mod unit;
