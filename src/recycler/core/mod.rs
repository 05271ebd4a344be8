pub mod amount;
pub mod extent_list;
pub mod extent_pool;
pub mod geometry;
pub mod kind;
pub mod page_ledger;
pub mod pagemap;
pub mod unit;
