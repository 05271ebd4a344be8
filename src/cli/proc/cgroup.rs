//! The limits of a process's cgroup, v2 or v1, and its ancestors. Of the memory limits the nearest one counts
//! (`flarena_shared::cgroup`), of the CPU quotas the tightest.

use std::fs;
use std::path::{Path, PathBuf};

use flarena_shared::cgroup::{Files, Memory, Number, V1, V2};

use super::files::kilobytes;
use super::Process;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Cgroup {
    pub memory: Memory,
    pub cpus: Option<f64>,
}

impl Cgroup {
    pub fn of(process: &Process) -> Option<Self> {
        let membership = process.text("cgroup").ok()?;
        Self::read(Path::new("/sys/fs/cgroup"), &membership)
    }

    /// The used share of the limit, without reclaimable file pages.
    pub fn fullness(&self) -> Option<f64> {
        let limit = self.memory.limit_bytes.filter(|limit| *limit > 0)?;
        Some(self.memory.unreclaimable_bytes()? as f64 / limit as f64)
    }

    fn read(mount: &Path, membership: &str) -> Option<Self> {
        let mut found = Self::default();
        for line in membership.lines() {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            match controllers {
                "" => {
                    let levels = levels(mount, path);
                    found.take_memory(&V2, &levels);
                    found.take_cpus(quota_v2, &levels);
                }
                _ if has(controllers, "memory") => {
                    found.take_memory(&V1, &levels(&mount.join("memory"), path));
                }
                _ if has(controllers, "cpu") => {
                    found.take_cpus(quota_v1, &levels(&v1_cpu(mount), path));
                }
                _ => {}
            }
        }
        (found != Self::default()).then_some(found)
    }

    fn take_memory(&mut self, files: &Files, levels: &[PathBuf]) {
        let all = levels
            .iter()
            .map(|dir| files.memory(|what| number(dir, what)));
        let nearest = all.filter(Memory::exists).min_by_key(Memory::room_bytes);
        self.memory = nearest.unwrap_or(self.memory);
    }

    fn take_cpus(&mut self, quota: fn(&Path) -> Option<f64>, levels: &[PathBuf]) {
        let quotas = levels.iter().filter_map(|dir| quota(dir));
        self.cpus = quotas.chain(self.cpus).min_by(f64::total_cmp);
    }
}

fn has(controllers: &str, name: &str) -> bool {
    controllers.split(',').any(|controller| controller == name)
}

fn v1_cpu(mount: &Path) -> PathBuf {
    ["cpu", "cpu,cpuacct", "cpuacct,cpu"]
        .iter()
        .map(|name| mount.join(name))
        .find(|dir| dir.is_dir())
        .unwrap_or_else(|| mount.join("cpu"))
}

/// The directories of the group and its ancestors, innermost first. In a container the path may not
/// exist in the mount; then only the root of the mount is left.
fn levels(mount: &Path, path: &str) -> Vec<PathBuf> {
    let inner = mount.join(path.trim_start_matches('/').trim_start_matches("../"));
    let levels = inner.ancestors().take_while(|dir| dir.starts_with(mount));
    levels
        .filter(|dir| dir.is_dir())
        .map(Path::to_owned)
        .collect()
}

fn quota_v2(dir: &Path) -> Option<f64> {
    let text = fs::read_to_string(dir.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    quotient(quota.parse().ok()?, period.parse().ok()?)
}

fn quota_v1(dir: &Path) -> Option<f64> {
    let quota = number(dir, ("cpu.cfs_quota_us", ""))?;
    quotient(quota as f64, number(dir, ("cpu.cfs_period_us", ""))? as f64)
}

fn quotient(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn number(dir: &Path, (file, label): Number) -> Option<u64> {
    let text = fs::read_to_string(dir.join(file)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.trim().parse().ok()
}

/// The memory that all processes here share: that of the control group if it has a limit, else that of the machine.
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
        let total_bytes = kilobytes(meminfo, "MemTotal")?;
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
            used_bytes: total_bytes.saturating_sub(kilobytes(meminfo, "MemAvailable")?),
            total_bytes,
            of: "machine",
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_limit_of_an_ancestor_counts_with_the_use_of_that_ancestor() {
        let mount = Scratch::new();
        mount.write("job/memory.max", "1000\n");
        mount.write("job/memory.current", "900\n");
        mount.write("job/memory.stat", "anon 5\ninactive_file 400\n");
        mount.write("job/task/memory.max", "max\n");
        mount.write("job/task/memory.current", "10\n");
        mount.write("job/task/cpu.max", "max 100000\n");
        mount.write("job/cpu.max", "150000 100000\n");
        let cgroup = Cgroup::read(mount.path(), "0::/job/task\n").unwrap();
        assert_eq!(
            (cgroup.memory.used_bytes, cgroup.memory.limit_bytes),
            (Some(900), Some(1000))
        );
        assert_eq!(cgroup.fullness(), Some(0.5));
        assert_eq!(cgroup.cpus, Some(1.5));
    }

    #[test]
    fn of_two_limits_the_one_with_less_room_counts_even_if_it_is_higher() {
        let mount = Scratch::new();
        mount.write("job/memory.max", "1000\n");
        mount.write("job/memory.current", "950\n");
        mount.write("job/task/memory.max", "500\n");
        mount.write("job/task/memory.current", "100\n");
        let memory = Cgroup::read(mount.path(), "0::/job/task\n").unwrap().memory;
        assert_eq!((memory.limit_bytes, memory.room_bytes()), (Some(1000), 50));
    }

    #[test]
    fn without_a_limit_the_use_is_known_and_the_limit_is_none() {
        let mount = Scratch::new();
        mount.write("memory.current", "7\n");
        let cgroup = Cgroup::read(mount.path(), "0::/\n").unwrap();
        assert_eq!(
            (cgroup.memory.used_bytes, cgroup.fullness()),
            (Some(7), None)
        );
    }

    #[test]
    fn version_1_files_are_read_and_a_huge_limit_is_none() {
        let mount = Scratch::new();
        mount.write("memory/pod/memory.usage_in_bytes", "50\n");
        mount.write("memory/pod/memory.limit_in_bytes", "100\n");
        mount.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        mount.write("memory/memory.usage_in_bytes", "60\n");
        mount.write("cpu,cpuacct/pod/cpu.cfs_quota_us", "-1\n");
        let text = "4:memory:/pod\n3:cpu,cpuacct:/pod\n";
        let cgroup = Cgroup::read(mount.path(), text).unwrap();
        assert_eq!(
            (cgroup.memory.used_bytes, cgroup.memory.limit_bytes),
            (Some(50), Some(100))
        );
        assert_eq!(cgroup.cpus, None);
    }

    #[test]
    fn a_path_outside_the_mount_uses_the_root_of_the_mount() {
        let mount = Scratch::new();
        mount.write("memory.max", "5\n");
        mount.write("memory.current", "1\n");
        let cgroup = Cgroup::read(mount.path(), "0::/../../elsewhere\n").unwrap();
        assert_eq!(cgroup.memory.limit_bytes, Some(5));
    }

    #[test]
    fn a_missing_cgroup_is_none() {
        assert_eq!(Cgroup::read(Path::new("/nonexistent"), "0::/\n"), None);
    }

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
