pub mod lock;
pub mod once;
pub mod primitives;
pub mod stdio;
