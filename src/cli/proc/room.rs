//! The memory that all processes here share: that of the control group if it has a limit, else that
//! of the machine.

use std::fs;

use super::status::kilobytes;
use super::{Cgroup, Process};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub used_bytes: u64,
    pub total_bytes: u64,
    /// `cgroup` or `machine`
    pub of: &'static str,
}

impl Room {
    pub fn read() -> Option<Room> {
        let own = Process::find(std::process::id() as i32).ok();
        let cgroup = own.as_ref().and_then(Cgroup::of);
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Room::choose(cgroup.as_ref(), &meminfo)
    }

    fn choose(cgroup: Option<&Cgroup>, meminfo: &str) -> Option<Room> {
        let line = |name: &str| {
            let mut lines = meminfo.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(kilobytes))
        };
        let total_bytes = line("MemTotal")?;
        let limited = cgroup.and_then(|cgroup| {
            let memory = cgroup.memory;
            let limit = memory.limit_bytes.filter(|limit| *limit < total_bytes)?;
            Some(Room {
                used_bytes: memory.unreclaimable_bytes()?,
                total_bytes: limit,
                of: "cgroup",
            })
        });
        limited.or(Some(Room {
            used_bytes: total_bytes.saturating_sub(line("MemAvailable")?),
            total_bytes,
            of: "machine",
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flarena_shared::cgroup::Memory;

    #[test]
    fn the_tighter_of_cgroup_and_machine_counts() {
        let meminfo = "MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable:  4 kB\n";
        let room = |limit| {
            let memory = Memory {
                used_bytes: Some(7 << 10),
                reclaimable_bytes: Some(1 << 10),
                limit_bytes: limit,
            };
            let cgroup = Cgroup {
                memory,
                ..Cgroup::default()
            };
            let room = Room::choose(Some(&cgroup), meminfo).unwrap();
            (room.used_bytes >> 10, room.total_bytes >> 10, room.of)
        };
        assert_eq!(room(Some(8 << 10)), (6, 8, "cgroup"));
        assert_eq!(room(Some(32 << 10)), (12, 16, "machine"));
        assert_eq!(room(None), (12, 16, "machine"));
        assert_eq!(Room::choose(None, ""), None);
    }
}
