//! Reads the CPU quota, memory usage and limits of the process's control group, in cgroup v1 and v2.
//!
//! Any ancestor can set a limit, so the smallest limit between the group and the mount's root applies.
//! In a container with a private cgroup namespace the path is `/`, or a directory that is not mounted.
//! Then the mount's root is the container's group. Nothing here allocates.

use std::ffi::CStr;

use crate::proc::procfs;

const PATH_MAX: usize = 1024;

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
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership);
    let Some((mount, path, files)) = groups.and_then(memory_group) else {
        return Memory::default();
    };
    Memory {
        current_bytes: own(mount, path, |dir| number_in(dir, files.usage)),
        limit_bytes: smallest_upwards(mount, path, |dir| files.limit_in(dir)),
    }
}

/// A group with a memory limit, for repeated measurements. Its files are found once, because finding them needs
/// more stack than a thread that allocates may have left.
#[derive(Clone, Copy)]
pub struct LimitedGroup {
    /// The directory.
    path: [u8; PATH_MAX],
    path_len: usize,
    files: &'static Files,
    pub limit_bytes: u64,
}

/// The files of the memory controller in one version of cgroup.
struct Files {
    limit: &'static [u8],
    /// A number from here on means that there is no limit.
    unlimited: u64,
    /// cgroup v2 slows processes down above this value.
    throttle: Option<&'static [u8]>,
    usage: &'static [u8],
    inactive_file: Statistic,
    oom_kills: Statistic,
}

/// A file, and the label of a number in it. The label is in the first 1,200 bytes.
type Statistic = (&'static [u8], &'static [u8]);

const FILES_V1: Files = Files {
    limit: b"memory.limit_in_bytes",
    // cgroup v1 writes "no limit" as the largest page-aligned number.
    unlimited: 1 << 60,
    throttle: None,
    usage: b"memory.usage_in_bytes",
    inactive_file: (b"memory.stat", b"total_inactive_file "),
    oom_kills: (b"memory.oom_control", b"oom_kill "),
};
const FILES_V2: Files = Files {
    limit: b"memory.max",
    // cgroup v2 writes "max", which is not a number.
    unlimited: u64::MAX,
    throttle: Some(b"memory.high"),
    usage: b"memory.current",
    inactive_file: (b"memory.stat", b"inactive_file "),
    oom_kills: (b"memory.events", b"oom_kill "),
};

impl Files {
    fn limit_in(&self, dir: &Dir) -> Option<u64> {
        number_in(dir, self.limit).filter(|&limit| limit < self.unlimited)
    }
}

/// The mount, the path and the files of the process's memory group.
fn memory_group(groups: &[u8]) -> Option<(&'static [u8], &[u8], &'static Files)> {
    match v1_path(groups, b"memory") {
        Some(path) => Some((b"/sys/fs/cgroup/memory", path, &FILES_V1)),
        None => Some((b"/sys/fs/cgroup", v2_path(groups)?, &FILES_V2)),
    }
}

impl LimitedGroup {
    fn at(dir: &Dir, files: &'static Files) -> Option<LimitedGroup> {
        let limit = files.limit_in(dir);
        let throttle = files.throttle.and_then(|file| number_in(dir, file));
        let limit_bytes = limit.into_iter().chain(throttle).min()?;
        let mut path = [0; PATH_MAX];
        let path_len = dir.mount.len() + dir.path.len();
        path.get_mut(..dir.mount.len())?.copy_from_slice(dir.mount);
        path.get_mut(dir.mount.len()..path_len)?
            .copy_from_slice(dir.path);
        Some(LimitedGroup {
            path,
            path_len,
            files,
            limit_bytes,
        })
    }

    /// The usage of the group without the pages that the kernel reclaims before it kills a process.
    #[inline(never)]
    pub fn used_bytes(&self) -> Option<u64> {
        let dir = Dir {
            mount: self.path.get(..self.path_len)?,
            path: b"",
        };
        let used = number_in(&dir, self.files.usage)?;
        let inactive_file = statistic_in(&dir, self.files.inactive_file);
        Some(used.saturating_sub(inactive_file.unwrap_or(0)))
    }
}

#[inline(never)]
fn statistic_in(dir: &Dir, (file, label): Statistic) -> Option<u64> {
    let mut buffer = [0; 2048];
    procfs::labelled_number(dir.read(file, &mut buffer)?, label)
}

/// The groups of the process could not be read, for example for lack of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread;

/// Of the process's group and its ancestors, the one that may still use the fewest bytes, with its usage; `None`
/// without a limit.
#[inline(never)]
pub fn nearest_limit() -> Result<Option<(LimitedGroup, Option<u64>)>, Unread> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership).ok_or(Unread)?;
    Ok(memory_group(groups)
        .and_then(|(mount, path, files)| nearest_limit_upwards(mount, path, files)))
}

fn nearest_limit_upwards(
    mount: &[u8],
    path: &[u8],
    files: &'static Files,
) -> Option<(LimitedGroup, Option<u64>)> {
    let limited = upwards(mount, path).filter_map(|dir| {
        let group = LimitedGroup::at(&dir, files)?;
        let used_bytes = group.used_bytes();
        Some((group, used_bytes))
    });
    limited.min_by_key(|(group, used_bytes)| match used_bytes {
        Some(used_bytes) => group.limit_bytes.saturating_sub(*used_bytes),
        None => u64::MAX,
    })
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
    own_statistic(|files| files.inactive_file).unwrap_or(0)
}

/// The number of processes of the group that the kernel has killed for lack of memory.
pub fn oom_kills() -> Option<u64> {
    own_statistic(|files| files.oom_kills)
}

/// A statistic of the process's group. Not inlined, as callers may have a small stack.
#[inline(never)]
fn own_statistic(of: fn(&Files) -> Statistic) -> Option<u64> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    let (mount, path, files) = memory_group(groups)?;
    own(mount, path, |dir| statistic_in(dir, of(files)))
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

/// The group's directory, and those of its ancestors up to the mount's root.
fn upwards<'a>(mount: &'a [u8], path: &'a [u8]) -> impl Iterator<Item = Dir<'a>> {
    let own = path.strip_suffix(b"/").unwrap_or(path);
    let above = |path: &&'a [u8]| Some(&path[..path.iter().rposition(|&b| b == b'/')?]);
    std::iter::successors(Some(own), above).map(move |path| Dir { mount, path })
}

/// The smallest value among the group and its ancestors up to the mount's root.
fn smallest_upwards(mount: &[u8], path: &[u8], value: impl Fn(&Dir) -> Option<u64>) -> Option<u64> {
    upwards(mount, path).filter_map(|dir| value(&dir)).min()
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

    /// Files of control groups below a directory of the test's own.
    fn nearest(test: &str, files: &[(&str, &str)], version: &'static Files) -> (u64, Option<u64>) {
        let mount = std::env::temp_dir().join(format!("flarena-{test}-{}", std::process::id()));
        for (file, text) in files {
            let path = mount.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = mount.to_str().unwrap().as_bytes();
        let (group, used_bytes) = nearest_limit_upwards(root, b"/job/task", version).unwrap();
        let seen = (group.limit_bytes, group.used_bytes());
        assert_eq!(used_bytes, seen.1);
        std::fs::remove_dir_all(mount).unwrap();
        seen
    }

    #[test]
    fn in_cgroup_v2_the_group_with_the_least_room_counts_and_memory_high_is_a_limit() {
        let files = [
            ("job/memory.max", "1000\n"),
            ("job/memory.current", "700\n"),
            ("job/memory.stat", "anon 5\ninactive_file 100\n"),
            ("job/task/memory.max", "max\n"),
            ("job/task/memory.high", "900\n"),
            ("job/task/memory.current", "650\n"),
        ];
        assert_eq!(nearest("v2", &files, &FILES_V2), (900, Some(650)));
        let without_high = &files[..4];
        assert_eq!(
            nearest("v2-max", without_high, &FILES_V2),
            (1000, Some(600))
        );
    }

    #[test]
    fn in_cgroup_v1_a_number_without_meaning_is_no_limit() {
        let files = [
            ("job/memory.limit_in_bytes", "5000\n"),
            ("job/memory.usage_in_bytes", "4000\n"),
            (
                "job/memory.stat",
                "inactive_file 9\ntotal_inactive_file 1000\n",
            ),
            ("job/task/memory.limit_in_bytes", "9223372036854771712\n"),
            ("job/task/memory.usage_in_bytes", "10\n"),
        ];
        assert_eq!(nearest("v1", &files, &FILES_V1), (5000, Some(3000)));
    }
}
