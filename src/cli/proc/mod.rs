//! Reads processes through `/proc/PID`, without stopping or changing them.

mod cgroup;
mod files;
mod process;

pub use cgroup::Cgroup;
#[cfg(test)]
pub use files::parse_maps;
pub use files::{Mapping, Stat, Status};
pub use process::{parse_pid, user_name, Environment, Process, ReadError};
