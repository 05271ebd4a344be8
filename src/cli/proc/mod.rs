//! Reads processes through `/proc/PID`, without stopping or changing them.

mod cgroup;
mod java;
mod maps;
mod process;
mod room;
mod script;
mod stat;
mod status;
mod user;

pub use cgroup::Cgroup;
pub use java::JavaHeap;
#[cfg(test)]
pub use maps::parse_maps;
pub use maps::Mapping;
pub use process::{parse_pid, Environment, Process, ReadError};
pub use room::Room;
pub use stat::Stat;
pub use status::{Rollup, Status};
pub use user::user_name;
