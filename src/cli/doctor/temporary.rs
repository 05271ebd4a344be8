//! The directory of temporary files. NVFlare 2.8 and later offload tensors there, which saves
//! nothing in a tmpfs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;

use super::environment::Get;
use super::finding::Finding;
use super::subject::Subject;
use crate::units::bytes;

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

pub fn of_process(subject: &Subject) -> Option<Finding> {
    subject.environment.as_ref().ok()?;
    let inside = |path: &str| subject.process.inside(path);
    finding(&|name| subject.get(name), &inside, subject.role().is_some())
}

/// A warning for NVFlare's processes, a note for others. `inside` maps a path of the process to one
/// that can be opened here.
pub fn finding(get: Get, inside: &dyn Fn(&str) -> PathBuf, is_nvflare: bool) -> Option<Finding> {
    let folder = folder(get, &|path| inside(path).is_dir())?;
    let size = memory_behind(&inside(&folder))?;
    let fact = format!(
        "temporary files go to {folder}, which is in memory (tmpfs, {}), so NVFlare's disk offload of tensors saves nothing",
        bytes(size)
    );
    let remedy = "export TMPDIR=/var/tmp, or another folder on a disk, before NVFlare starts";
    let finding = if is_nvflare {
        Finding::warning("tmpfs", fact)
    } else {
        Finding::note("tmpfs", fact)
    };
    Some(finding.remedy(remedy))
}

/// The directory that Python's tempfile chooses.
fn folder(get: Get, is_folder: &dyn Fn(&str) -> bool) -> Option<String> {
    let named = ["TMPDIR", "TEMP", "TMP"].into_iter().filter_map(get);
    let usual = ["/tmp", "/var/tmp", "/usr/tmp"].map(OsString::from);
    let mut folders = named
        .chain(usual)
        .filter_map(|path| path.into_string().ok());
    folders.find(|path| path.starts_with('/') && is_folder(path))
}

/// The size of the file system if it is in memory.
fn memory_behind(folder: &Path) -> Option<u64> {
    let found = statfs(folder).ok()?;
    let kind = found.f_type as u64 & 0xffff_ffff;
    [TMPFS, RAMFS]
        .contains(&kind)
        .then(|| found.f_blocks * found.f_bsize as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(set: &[(&str, &str)], there: &[&str]) -> Option<String> {
        let get = |name: &str| {
            let found = set.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        folder(&get, &|path| there.contains(&path))
    }

    #[test]
    fn the_folder_is_the_one_that_python_chooses() {
        let set = [("TMP", "/c"), ("TMPDIR", "/a"), ("TEMP", "b")];
        assert_eq!(chosen(&set, &["/a", "/c", "/tmp"]).as_deref(), Some("/a"));
        assert_eq!(chosen(&set, &["b", "/c", "/tmp"]).as_deref(), Some("/c"));
        assert_eq!(chosen(&set, &["/var/tmp"]).as_deref(), Some("/var/tmp"));
        assert_eq!(chosen(&[], &[]), None);
    }

    #[test]
    fn a_tmpfs_is_a_warning_for_nvflare_and_a_note_for_others() {
        let shared = "/dev/shm";
        if memory_behind(Path::new(shared)).is_none() {
            return; // this container has none
        }
        let get = |name: &str| (name == "TMPDIR").then(|| OsString::from(shared));
        let level = |is_nvflare| {
            let found = finding(&get, &|path| PathBuf::from(path), is_nvflare);
            found.unwrap().level
        };
        assert!(level(true) > level(false));
        assert!(memory_behind(Path::new("/proc")).is_none());
    }
}
