//! Locks and once-cells for the malloc path. Under `--cfg loom` they run on loom's atomics.

pub mod lock;
pub mod once;
#[cfg(not(loom))]
pub mod primitives;
#[cfg(loom)]
#[path = "../tests/loom/primitives.rs"]
pub mod primitives;
pub mod racy_once;
pub mod stdio;
