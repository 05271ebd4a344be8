//! Reads the CPU quota, memory usage and limits of the process's control group, in cgroup v1 and v2.
//!
//! Any ancestor up to the mount's root can set a limit. Of the memory limits the nearest one counts
//! (`flarena_shared::cgroup`).
//! In a container with a private cgroup namespace the path is `/`, or a directory that is not mounted.
//! Then the mount's root is the container's group. Nothing here allocates.

use std::ffi::CStr;

use flarena_shared::cgroup::{Files, Memory, Number, V1, V2};
use flarena_shared::fnv;

use crate::proc::procfs;

const PATH_MAX: usize = 1024;

/// The CPU quota in CPUs, rounded up; `None` without a quota.
pub fn cpu_quota() -> Option<u32> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    if let Some(path) = v1_path(groups, b"cpu") {
        return smallest_upwards(b"/sys/fs/cgroup/cpu", path, quota_v1).map(|n| n as u32);
    }
    smallest_upwards(b"/sys/fs/cgroup", v2_path(groups)?, quota_v2).map(|n| n as u32)
}

/// A group with its memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Group {
    pub memory: Memory,
    /// A hash of its path below the mount.
    pub hash: Option<u32>,
    /// The processes that the kernel has killed in it for lack of memory.
    pub oom_kills: Option<u64>,
}

/// The process's group, or the ancestor with the nearest limit.
#[inline(never)]
pub fn group() -> Group {
    let mut own_path = [0; PATH_MAX];
    let nearest = own_memory_group(&mut own_path).and_then(|(mount, path, files)| {
        nearest_upwards(mount, path, files).map(|nearest| (nearest, files))
    });
    let Some((nearest, files)) = nearest else {
        return Group::default();
    };
    // The count of an ancestor in v1 lacks the kills below it, and that of the process's group those beside it.
    let counts_all = files.counts_kills_below || nearest.is_own;
    let oom_kills = counts_all.then(|| number_in(&nearest.dir, files.oom_kills));
    Group {
        memory: nearest.memory,
        hash: Some(fnv::short(fnv::append(fnv::EMPTY, nearest.dir.path))),
        oom_kills: oom_kills.flatten(),
    }
}

/// The process's group, with a copy of its path. The caller may have a small stack, so the whole list of groups is not on
/// it while files are read.
#[inline(never)]
fn own_memory_group(copy: &mut [u8; PATH_MAX]) -> Option<(&'static [u8], &[u8], &'static Files)> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    let (mount, path, files) = memory_group(groups)?;
    let copy = copy.get_mut(..path.len())?;
    copy.copy_from_slice(path);
    Some((mount, copy, files))
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

/// The mount, the path and the files of the process's memory group.
fn memory_group(groups: &[u8]) -> Option<(&'static [u8], &[u8], &'static Files)> {
    match v1_path(groups, b"memory") {
        Some(path) => Some((b"/sys/fs/cgroup/memory", path, &V1)),
        None => Some((b"/sys/fs/cgroup", v2_path(groups)?, &V2)),
    }
}

impl LimitedGroup {
    /// `None` without a limit.
    fn new(nearest: &Nearest, files: &'static Files) -> Option<LimitedGroup> {
        let Dir { mount, path: below } = nearest.dir;
        let mut path = [0; PATH_MAX];
        let path_len = mount.len() + below.len();
        path.get_mut(..mount.len())?.copy_from_slice(mount);
        path.get_mut(mount.len()..path_len)?.copy_from_slice(below);
        Some(LimitedGroup {
            path,
            path_len,
            files,
            limit_bytes: nearest.memory.limit_bytes?,
        })
    }

    fn dir(&self) -> Option<Dir<'_>> {
        Some(Dir {
            mount: self.path.get(..self.path_len)?,
            path: b"",
        })
    }

    /// The usage of the group without the pages that the kernel reclaims before it kills a process.
    #[inline(never)]
    pub fn used_bytes(&self) -> Option<u64> {
        let dir = self.dir()?;
        self.files.used_bytes(|number| number_in(&dir, number))
    }

    /// The bytes that the group may still use before the kernel kills one of its processes.
    #[inline(never)]
    pub fn bytes_before_kill(&self) -> Option<u64> {
        let (dir, swap) = (self.dir()?, procfs::free_swap_bytes()?);
        self.files
            .bytes_before_kill(|number| number_in(&dir, number), swap)
    }
}

/// The groups of the process could not be read, for example for lack of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread;

/// Of the process's group and its ancestors, the one that may still use the fewest bytes; `None` without a limit.
#[inline(never)]
pub fn nearest_limit() -> Result<Option<LimitedGroup>, Unread> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership).ok_or(Unread)?;
    Ok(memory_group(groups).and_then(|(mount, path, files)| {
        LimitedGroup::new(&nearest_upwards(mount, path, files)?, files)
    }))
}

/// The group whose limit counts.
struct Nearest<'a> {
    dir: Dir<'a>,
    memory: Memory,
    /// It is the process's group, or the mount's root if that is the process's group.
    is_own: bool,
}

/// Of the group and its ancestors, the one with the least room. Not inlined, as callers may have a small stack.
#[inline(never)]
fn nearest_upwards<'a>(mount: &'a [u8], path: &'a [u8], files: &Files) -> Option<Nearest<'a>> {
    let memory = |dir: &Dir| files.memory(|number| number_in(dir, number));
    upwards(mount, path)
        .map(|dir| (memory(&dir), dir))
        .filter(|(memory, _)| memory.exists())
        .enumerate()
        .map(|(place, (memory, dir))| Nearest {
            dir,
            memory,
            is_own: place == 0,
        })
        .min_by_key(|group| group.memory.room_bytes())
}

/// Calls `act` with the path of `file` in the process's group (cgroup v2). If `act` returns `None`,
/// calls it again with the path in the mount's root.
pub fn with_v2_file<T>(file: &[u8], act: impl Fn(&CStr) -> Option<T>) -> Option<T> {
    let mut membership = [0; 4096];
    let groups = procfs::read_file(c"/proc/self/cgroup", &mut membership)?;
    let mount = b"/sys/fs/cgroup";
    let in_group = |path| Dir { mount, path }.with_path(file, &act);
    in_group(v2_path(groups)?).or_else(|| in_group(b""))
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
    let quota = number_in(dir, ("cpu.cfs_quota_us", ""))?;
    whole_cpus(quota, number_in(dir, ("cpu.cfs_period_us", ""))?)
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

/// The number is in the first 2,048 bytes of the file.
#[inline(never)]
fn number_in(dir: &Dir, (file, label): Number) -> Option<u64> {
    let mut buffer = [0; 2048];
    procfs::labelled_number(dir.read(file.as_bytes(), &mut buffer)?, label.as_bytes())
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

    const GROUPS: &[u8] = b"5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/unified\n";

    #[test]
    fn group_path_is_found_in_v1_and_v2_lines() {
        assert_eq!(v1_path(GROUPS, b"cpu"), Some(&b"/docker/abc"[..]));
        assert_eq!(v1_path(GROUPS, b"cpuacct"), Some(&b"/docker/abc"[..]));
        assert_eq!(v1_path(GROUPS, b"pids"), None);
        assert_eq!(v2_path(GROUPS), Some(&b"/unified"[..]));
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

    /// The nearest group of `/job/task`, with these files below a directory of the test's own.
    fn nearest(test: &str, files: &[(&str, &str)], version: &'static Files) -> (Memory, bool) {
        let mount = std::env::temp_dir().join(format!("flarena-{test}-{}", std::process::id()));
        for (file, text) in files {
            let path = mount.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = mount.to_str().unwrap().as_bytes();
        let nearest = nearest_upwards(root, b"/job/task", version).unwrap();
        if let Some(group) = LimitedGroup::new(&nearest, version) {
            assert_eq!(group.used_bytes(), nearest.memory.unreclaimable_bytes());
        }
        std::fs::remove_dir_all(&mount).unwrap();
        (nearest.memory, nearest.is_own)
    }

    fn memory(used: u64, reclaimable: u64, limit: u64) -> Memory {
        Memory {
            used_bytes: Some(used),
            reclaimable_bytes: Some(reclaimable),
            limit_bytes: Some(limit),
        }
    }

    #[test]
    fn in_cgroup_v2_the_group_with_the_least_room_counts_and_memory_high_is_a_limit() {
        let files = [
            ("job/memory.max", "1000\n"),
            ("job/memory.current", "700\n"),
            ("job/memory.stat", "anon 5\ninactive_file 100\n"),
            ("job/task/memory.max", "max\n"),
            ("job/task/memory.current", "650\n"),
            ("job/task/memory.high", "900\n"),
        ];
        assert_eq!(nearest("v2", &files, &V2), (memory(650, 0, 900), true));
        let without_high = &files[..5];
        let parent = (memory(700, 100, 1000), false);
        assert_eq!(nearest("v2-max", without_high, &V2), parent);
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
        let parent = (memory(4000, 1000, 5000), false);
        assert_eq!(nearest("v1", &files, &V1), parent);
    }

    #[test]
    fn without_a_limit_the_usage_is_that_of_the_own_group_or_of_the_mounts_root() {
        let files = [
            ("memory.current", "90\n"),
            ("job/task/memory.max", "max\n"),
            ("job/task/memory.current", "20\n"),
        ];
        let used = |bytes| Memory {
            used_bytes: Some(bytes),
            ..Memory::default()
        };
        assert_eq!(nearest("own", &files, &V2), (used(20), true));
        assert_eq!(nearest("root", &files[..1], &V2), (used(90), true));
    }
}
