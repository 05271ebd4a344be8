//! Reads the CPU quota, memory usage and limits of the process's control group, in cgroup v1 and v2.
//!
//! Any ancestor can set a limit, so the smallest limit between the group and the mount's root applies.
//! In a container with a private cgroup namespace the path is `/`, or a directory that is not mounted.
//! Then the mount's root is the container's group. Nothing here allocates.

use std::ffi::CStr;

use crate::proc::procfs;

const PATH_MAX: usize = 1024;
/// cgroup v1 writes "no limit" as the largest page-aligned number.
const UNLIMITED: u64 = 1 << 60;

/// Memory usage and limit of the group; `None` if the file is missing or there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    pub current_bytes: Option<u64>,
    pub limit_bytes: Option<u64>,
}

/// The CPU quota in CPUs, rounded up; `None` without a quota.
pub fn cpu_quota() -> Option<u32> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    if let Some(path) = v1_path(groups, b"cpu") {
        return smallest_upwards(b"/sys/fs/cgroup/cpu", path, quota_v1).map(|n| n as u32);
    }
    smallest_upwards(b"/sys/fs/cgroup", v2_path(groups)?, quota_v2).map(|n| n as u32)
}

/// The usage of the process's group, and the smallest limit of the group and its ancestors. Not inlined,
/// as callers may have a small stack.
#[inline(never)]
pub fn memory() -> Memory {
    let mut membership = [0; 4096];
    let Some(groups) = procfs::read_file(c"/proc/self/cgroup", &mut membership) else {
        return Memory::default();
    };
    if let Some(path) = v1_path(groups, b"memory") {
        let mount = b"/sys/fs/cgroup/memory";
        return Memory {
            current_bytes: own(mount, path, |dir| number_in(dir, b"memory.usage_in_bytes")),
            limit_bytes: smallest_upwards(mount, path, |dir| {
                number_in(dir, b"memory.limit_in_bytes").filter(|&limit| limit < UNLIMITED)
            }),
        };
    }
    let Some(path) = v2_path(groups) else {
        return Memory::default();
    };
    let mount = b"/sys/fs/cgroup";
    Memory {
        current_bytes: own(mount, path, |dir| number_in(dir, b"memory.current")),
        // "max" does not parse as a number, so an unlimited group yields `None`.
        limit_bytes: smallest_upwards(mount, path, |dir| number_in(dir, b"memory.max")),
    }
}

/// Bytes that the group and its ancestors may still put into swap; `None` without a limit.
/// cgroup v1 limits the sum of memory and swap, which paging out does not change, so it yields `None`.
pub fn swap_left_bytes() -> Option<u64> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    smallest_upwards(b"/sys/fs/cgroup", v2_path(groups)?, |dir| {
        let limit = number_in(dir, b"memory.swap.max")?;
        let used = number_in(dir, b"memory.swap.current").unwrap_or(0);
        Some(limit.saturating_sub(used))
    })
}

/// Inactive file pages of the group in bytes. The kernel reclaims them before it kills a process.
pub fn inactive_file_bytes() -> u64 {
    own_statistic(
        (b"memory.stat", b"total_inactive_file "),
        (b"memory.stat", b"inactive_file "),
    )
    .unwrap_or(0)
}

/// The number of processes of the group that the kernel has killed for lack of memory.
pub fn oom_kills() -> Option<u64> {
    own_statistic(
        (b"memory.oom_control", b"oom_kill "),
        (b"memory.events", b"oom_kill "),
    )
}

/// A labelled number of the process's group: file and label in cgroup v1, then in v2. Not inlined, as
/// callers may have a small stack.
#[inline(never)]
fn own_statistic(v1: (&[u8], &[u8]), v2: (&[u8], &[u8])) -> Option<u64> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    let (mount, path, (file, label)): (&[u8], _, _) = match v1_path(groups, b"memory") {
        Some(path) => (b"/sys/fs/cgroup/memory", path, v1),
        None => (b"/sys/fs/cgroup", v2_path(groups).unwrap_or_default(), v2),
    };
    own(mount, path, |dir| {
        // The labels are in the first 1,200 bytes.
        let mut buffer = [0; 2048];
        procfs::labelled_number(dir.read(file, &mut buffer)?, label)
    })
}

/// Calls `act` with the path of `file` in the process's group (cgroup v2). If `act` returns `None`,
/// calls it again with the path in the mount's root.
pub fn with_v2_file<T>(file: &[u8], act: impl Fn(&CStr) -> Option<T>) -> Option<T> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    let mount = b"/sys/fs/cgroup";
    own(mount, v2_path(groups)?, |dir| dir.with_path(file, &act))
}

/// The path of the line `0::/path`.
fn v2_path(groups: &[u8]) -> Option<&[u8]> {
    groups
        .split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"))
}

/// The path of a line such as `4:cpu,cpuacct:/path` that names `controller`.
fn v1_path<'g>(groups: &'g [u8], controller: &[u8]) -> Option<&'g [u8]> {
    groups.split(|&b| b == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |&b| b == b':');
        let names = fields.nth(1)?;
        names
            .split(|&b| b == b',')
            .any(|name| name == controller)
            .then(|| fields.next())?
    })
}

fn quota_v1(dir: &Dir) -> Option<u64> {
    let quota = number_in(dir, b"cpu.cfs_quota_us")?;
    whole_cpus(quota, number_in(dir, b"cpu.cfs_period_us")?)
}

/// `cpu.max` holds `QUOTA PERIOD`, or `max PERIOD`.
fn quota_v2(dir: &Dir) -> Option<u64> {
    let mut buffer = [0; 64];
    let text = dir.read(b"cpu.max", &mut buffer)?;
    let mut fields = text.split(|&b| b == b' ');
    let quota = procfs::leading_number(fields.next()?)?;
    whole_cpus(quota, procfs::leading_number(fields.next()?)?)
}

fn whole_cpus(quota_us: u64, period_us: u64) -> Option<u64> {
    (period_us > 0).then(|| quota_us.div_ceil(period_us).max(1))
}

fn number_in(dir: &Dir, file: &[u8]) -> Option<u64> {
    let mut buffer = [0; 64];
    procfs::leading_number(dir.read(file, &mut buffer)?)
}

/// The value of the group, or of the mount's root if the group has none or is not mounted here.
fn own<T>(mount: &[u8], path: &[u8], value: impl Fn(&Dir) -> Option<T>) -> Option<T> {
    value(&Dir { mount, path }).or_else(|| value(&Dir { mount, path: b"" }))
}

/// The smallest value among the group and its ancestors up to the mount's root.
fn smallest_upwards(mount: &[u8], path: &[u8], value: impl Fn(&Dir) -> Option<u64>) -> Option<u64> {
    let mut path = path.strip_suffix(b"/").unwrap_or(path);
    let mut smallest = value(&Dir { mount, path });
    while let Some(slash) = path.iter().rposition(|&b| b == b'/') {
        path = &path[..slash];
        let above = value(&Dir { mount, path });
        smallest = [smallest, above].into_iter().flatten().min();
    }
    smallest
}

/// A directory of a cgroup file system.
struct Dir<'a> {
    mount: &'a [u8],
    path: &'a [u8],
}

impl Dir<'_> {
    fn read<'b>(&self, file: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.with_path(file, |path| procfs::read_file(path, buffer))
    }

    fn with_path<T>(&self, file: &[u8], act: impl FnOnce(&CStr) -> Option<T>) -> Option<T> {
        let mut name = [0u8; PATH_MAX];
        let mut len = 0;
        let slash: &[u8] = b"/";
        for part in [self.mount, self.path, slash, file] {
            name.get_mut(len..len + part.len())?.copy_from_slice(part);
            len += part.len();
        }
        act(CStr::from_bytes_until_nul(name.get(..=len)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &[u8] = b"5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/unified\n";

    #[test]
    fn group_path_is_found_in_v1_and_v2_lines() {
        assert_eq!(v1_path(V1, b"cpu"), Some(&b"/docker/abc"[..]));
        assert_eq!(v1_path(V1, b"cpuacct"), Some(&b"/docker/abc"[..]));
        assert_eq!(v1_path(V1, b"pids"), None);
        assert_eq!(v2_path(V1), Some(&b"/unified"[..]));
        assert_eq!(v2_path(b"0::/\n"), Some(&b"/"[..]));
    }

    #[test]
    fn fractional_cpu_quota_is_rounded_up() {
        assert_eq!(whole_cpus(50_000, 100_000), Some(1));
        assert_eq!(whole_cpus(250_000, 100_000), Some(3));
        assert_eq!(whole_cpus(1, 0), None);
    }

    #[test]
    fn smallest_limit_of_group_and_ancestors_applies() {
        let limits = [("/a/b", 30), ("/a", 10), ("", 20)];
        let value = |dir: &Dir| {
            limits
                .iter()
                .find(|(path, _)| path.as_bytes() == dir.path)
                .map(|(_, limit)| *limit)
        };
        assert_eq!(smallest_upwards(b"/m", b"/a/b", value), Some(10));
        assert_eq!(smallest_upwards(b"/m", b"/x/y", value), Some(20));
        assert_eq!(smallest_upwards(b"/m", b"/", value), Some(20));
    }
}
