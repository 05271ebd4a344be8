//! Finds the logs and marker files in a folder, also in the folders below it.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memchr::memmem::find;

/// Deeper folders are not read.
const MAX_DEPTH: usize = 12;
const MAX_FILES: usize = 100_000;
/// Parts of a file's name, between dots, that belong to a log or a marker file.
const NAMES: [&str; 8] = [
    "jsonl", "ndjson", "log", "txt", "out", "err", "stdout", "stderr",
];
/// A file with another name is read if its beginning contains a marker.
const BEGINNING: u64 = 16 * 1024;
const MARKERS: [&[u8]; 2] = [b"{\"v\":1,\"t\":", b"[RSS] "];

/// NVFlare's job store keeps a job and its logs in a zip file of this name.
const STORED_JOB: &str = "workspace";
const ZIP: &[u8] = b"PK\x03\x04";

/// What a folder holds, in the order of the names.
#[derive(Default)]
pub struct Found {
    pub files: Vec<PathBuf>,
    /// Zip files, which are not read.
    pub zips: Vec<PathBuf>,
    /// Folders that cannot be read.
    pub errors: Vec<(PathBuf, io::Error)>,
}

pub fn files(folder: &Path) -> Found {
    let mut found = Found::default();
    add(folder, 0, &mut found);
    found
}

fn add(folder: &Path, depth: usize, found: &mut Found) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return found.errors.push((folder.to_owned(), error)),
    };
    entries.sort_by_key(DirEntry::file_name);
    for entry in entries {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A symbolic link is not followed: it may lead back to this folder.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        match () {
            () if is_hidden || found.files.len() >= MAX_FILES => {}
            () if kind.is_dir() && depth < MAX_DEPTH => add(&path, depth + 1, found),
            () if !kind.is_file() => {}
            () if has_name_of_log(&path) => found.files.push(path),
            () => match beginning(&path) {
                bytes if MARKERS.iter().any(|marker| find(&bytes, marker).is_some()) => {
                    found.files.push(path);
                }
                bytes if bytes.starts_with(ZIP) && may_hold_logs(&path) => found.zips.push(path),
                _ => {}
            },
        }
    }
}

/// True for `log.txt`, `rss.jsonl.3.gz` and `error_log`.
fn has_name_of_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_lowercase();
    let mut parts = name.split('.');
    parts.any(|part| NAMES.contains(&part) || part.ends_with("_log"))
}

/// The first bytes of a file; empty if it cannot be read.
fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
    if read.is_ok() {
        bytes
    } else {
        Vec::new()
    }
}

/// Models (`.npz`, `.pt`) are zip files, too.
fn may_hold_logs(zip: &Path) -> bool {
    zip.extension().is_some_and(|end| end == "zip")
        || zip.file_name().is_some_and(|name| name == STORED_JOB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn logs_rotated_and_compressed_ones_and_files_with_markers_are_found_in_all_folders() {
        let scratch = Scratch::new();
        for name in [
            "site-1/log.txt",
            "site-1/log.txt.2.gz",
            "rss-7.jsonl",
            "site-2/run/error_log",
            "model.npz",
            "app/train.py",
            ".cache/log.txt",
        ] {
            scratch.write(name, "x");
        }
        scratch.write("site-2/rss", "{\"v\":1,\"t\":5,\"pid\":7");
        scratch.write("jobs/4711/workspace", "PK\x03\x04");
        scratch.write("jobs/4711/model.npz", "PK\x03\x04");
        let Found {
            files: found,
            zips,
            errors,
        } = files(scratch.path());
        assert_eq!(zips, [scratch.path().join("jobs/4711/workspace")]);
        let name = |path: &PathBuf| {
            let below = path.strip_prefix(scratch.path()).unwrap();
            below.to_string_lossy().into_owned()
        };
        let names: Vec<String> = found.iter().map(name).collect();
        assert_eq!(
            names,
            [
                "rss-7.jsonl",
                "site-1/log.txt",
                "site-1/log.txt.2.gz",
                "site-2/rss",
                "site-2/run/error_log",
            ]
        );
        assert!(errors.is_empty());
        assert_eq!(files(&scratch.path().join("missing")).errors.len(), 1);
    }
}
