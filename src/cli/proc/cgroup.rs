//! The limits of a process's cgroup, v2 or v1, and its ancestors. Of the memory limits the nearest one counts
//! (`flarena_shared::cgroup`).

use std::fs;
use std::path::{Path, PathBuf};

use flarena_shared::cgroup::{Files, Memory, Number, V1, V2};

use super::Process;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Cgroup {
    pub memory: Memory,
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
                "" => found.take_memory(&V2, &levels(mount, path)),
                _ if controllers.split(',').any(|name| name == "memory") => {
                    found.take_memory(&V1, &levels(&mount.join("memory"), path));
                }
                _ => {}
            }
        }
        (found != Self::default()).then_some(found)
    }

    fn take_memory(&mut self, files: &Files, levels: &[PathBuf]) {
        let memory = |dir: &PathBuf| files.memory(|what| number(dir, what));
        let all = levels.iter().map(memory);
        let nearest = all.filter(Memory::exists).min_by_key(Memory::room_bytes);
        self.memory = nearest.unwrap_or(self.memory);
    }
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

fn number(dir: &Path, (file, label): Number) -> Option<u64> {
    let text = fs::read_to_string(dir.join(file)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.trim().parse().ok()
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
        let cgroup = Cgroup::read(mount.path(), "0::/job/task\n").unwrap();
        assert_eq!(
            (cgroup.memory.used_bytes, cgroup.memory.limit_bytes),
            (Some(900), Some(1000))
        );
        assert_eq!(cgroup.fullness(), Some(0.5));
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
        let text = "4:memory:/pod\n3:cpu,cpuacct:/pod\n";
        let cgroup = Cgroup::read(mount.path(), text).unwrap();
        assert_eq!(
            (cgroup.memory.used_bytes, cgroup.memory.limit_bytes),
            (Some(50), Some(100))
        );
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
}
