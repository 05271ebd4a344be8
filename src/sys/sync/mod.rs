pub mod lock;
pub mod once;
pub mod primitives;
pub mod racy_once;
pub mod stdio;
