//! The limits of a process's cgroup, v2 or v1. The tightest limit of the group and its ancestors
//! counts.

use std::fs;
use std::path::{Path, PathBuf};

use super::process::Process;

/// The tightest memory limit, with the use of its group, and the tightest CPU quota.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Cgroup {
    pub used_bytes: Option<u64>,
    pub limit_bytes: Option<u64>,
    /// File pages in `used_bytes` that the kernel can reclaim before it kills.
    pub inactive_file_bytes: u64,
    pub cpus: Option<f64>,
    /// Swap that the group may still use; `None` without a limit.
    pub swap_left_bytes: Option<u64>,
}

impl Cgroup {
    pub fn of(process: &Process) -> Option<Self> {
        let membership = process.text("cgroup").ok()?;
        Self::read(Path::new("/sys/fs/cgroup"), &membership)
    }

    /// The used share of the limit, without reclaimable file pages.
    pub fn fullness(&self) -> Option<f64> {
        let used = self.used_bytes?.saturating_sub(self.inactive_file_bytes);
        Some(used as f64 / self.limit_bytes.filter(|limit| *limit > 0)? as f64)
    }

    fn read(mount: &Path, membership: &str) -> Option<Self> {
        let mut found = Self::default();
        for line in membership.lines() {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            match controllers {
                "" => found.take(&Version2, mount, path),
                _ if has(controllers, "memory") => {
                    found.take_memory(&Version1, &mount.join("memory"), path);
                }
                _ if has(controllers, "cpu") => {
                    found.take_cpus(&Version1, &v1_cpu(mount), path);
                }
                _ => {}
            }
        }
        (found != Self::default()).then_some(found)
    }

    fn take(&mut self, version: &dyn Version, mount: &Path, path: &str) {
        self.take_memory(version, mount, path);
        self.take_cpus(version, mount, path);
    }

    fn take_memory(&mut self, version: &dyn Version, mount: &Path, path: &str) {
        for dir in levels(mount, path) {
            let left = version.swap_left_bytes(&dir);
            self.swap_left_bytes = [self.swap_left_bytes, left].into_iter().flatten().min();
            let limit = version.limit_bytes(&dir);
            let is_tighter =
                limit.is_some() && self.limit_bytes.is_none_or(|old| limit < Some(old));
            if let Some(used) = version
                .used_bytes(&dir)
                .filter(|_| is_tighter || self.used_bytes.is_none())
            {
                self.used_bytes = Some(used);
                self.inactive_file_bytes = version.inactive_file_bytes(&dir);
                self.limit_bytes = limit.or(self.limit_bytes);
            }
        }
    }

    fn take_cpus(&mut self, version: &dyn Version, mount: &Path, path: &str) {
        let quotas = levels(mount, path)
            .into_iter()
            .filter_map(|dir| version.cpus(&dir));
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

/// The files of one cgroup version.
trait Version {
    fn used_bytes(&self, dir: &Path) -> Option<u64>;
    fn limit_bytes(&self, dir: &Path) -> Option<u64>;
    fn inactive_file_bytes(&self, dir: &Path) -> u64;
    fn cpus(&self, dir: &Path) -> Option<f64>;
    fn swap_left_bytes(&self, dir: &Path) -> Option<u64>;
}

struct Version2;
struct Version1;

impl Version for Version2 {
    fn used_bytes(&self, dir: &Path) -> Option<u64> {
        number(dir, "memory.current")
    }

    /// `max` means no limit. `memory.high` counts too: it throttles before `memory.max` kills.
    fn limit_bytes(&self, dir: &Path) -> Option<u64> {
        let limits = [number(dir, "memory.max"), number(dir, "memory.high")];
        limits.into_iter().flatten().min()
    }

    fn inactive_file_bytes(&self, dir: &Path) -> u64 {
        field(dir, "memory.stat", "inactive_file")
    }

    fn cpus(&self, dir: &Path) -> Option<f64> {
        let text = fs::read_to_string(dir.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        quotient(quota.parse().ok()?, period.parse().ok()?)
    }

    fn swap_left_bytes(&self, dir: &Path) -> Option<u64> {
        let used = number(dir, "memory.swap.current").unwrap_or(0);
        Some(number(dir, "memory.swap.max")?.saturating_sub(used))
    }
}

impl Version for Version1 {
    fn used_bytes(&self, dir: &Path) -> Option<u64> {
        number(dir, "memory.usage_in_bytes")
    }

    /// A number near the end of the address space means no limit.
    fn limit_bytes(&self, dir: &Path) -> Option<u64> {
        number(dir, "memory.limit_in_bytes").filter(|limit| *limit < 1 << 60)
    }

    fn inactive_file_bytes(&self, dir: &Path) -> u64 {
        field(dir, "memory.stat", "total_inactive_file")
    }

    fn cpus(&self, dir: &Path) -> Option<f64> {
        let quota = number(dir, "cpu.cfs_quota_us")?;
        quotient(quota as f64, number(dir, "cpu.cfs_period_us")? as f64)
    }

    /// Version 1 limits the sum of memory and swap, which paging out does not change.
    fn swap_left_bytes(&self, _: &Path) -> Option<u64> {
        None
    }
}

fn quotient(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn number(dir: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok()
}

fn field(dir: &Path, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find_map(|(key, value)| (key == name).then(|| value.trim().parse().ok()).flatten())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_tightest_limit_of_the_group_and_its_ancestors_counts() {
        let mount = Scratch::new();
        mount.write("job/memory.max", "1000\n");
        mount.write("job/memory.current", "900\n");
        mount.write("job/memory.stat", "anon 5\ninactive_file 400\n");
        mount.write("job/task/memory.max", "max\n");
        mount.write("job/task/memory.current", "10\n");
        mount.write("job/task/cpu.max", "max 100000\n");
        mount.write("job/cpu.max", "150000 100000\n");
        mount.write("job/memory.swap.max", "50\n");
        mount.write("job/memory.swap.current", "20\n");
        let cgroup = Cgroup::read(mount.path(), "0::/job/task\n").unwrap();
        assert_eq!(
            (cgroup.used_bytes, cgroup.limit_bytes),
            (Some(900), Some(1000))
        );
        assert_eq!(cgroup.fullness(), Some(0.5));
        assert_eq!(cgroup.cpus, Some(1.5));
        assert_eq!(cgroup.swap_left_bytes, Some(30));
    }

    #[test]
    fn without_a_limit_the_use_is_known_and_the_limit_is_none() {
        let mount = Scratch::new();
        mount.write("memory.current", "7\n");
        let cgroup = Cgroup::read(mount.path(), "0::/\n").unwrap();
        assert_eq!(
            (cgroup.used_bytes, cgroup.limit_bytes, cgroup.fullness()),
            (Some(7), None, None)
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
            (cgroup.used_bytes, cgroup.limit_bytes),
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
        assert_eq!(cgroup.limit_bytes, Some(5));
    }

    #[test]
    fn a_missing_cgroup_is_none() {
        assert_eq!(Cgroup::read(Path::new("/nonexistent"), "0::/\n"), None);
    }
}
