//! Finds the logs and marker files in a folder, also in the folders below it.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flarena_shared::system_error::reason;
use memchr::memmem::find;

use super::FileReport;

/// Deeper folders are not read.
const MAX_DEPTH: usize = 12;
const MAX_FILES: usize = 100_000;
/// Parts of a file's name, between dots, that belong to a log or a marker file.
const NAMES: [&str; 8] = [
    "jsonl", "ndjson", "log", "txt", "out", "err", "stdout", "stderr",
];
/// A file with another name is read if its beginning contains a marker.
const START: u64 = 16 * 1024;
const MARKERS: [&[u8]; 2] = [b"{\"v\":1,\"t\":", b"[RSS] "];

/// NVFlare's job store keeps a job and its logs in a zip file of this name.
const STORED_JOB: &str = "workspace";
const ZIP: &[u8] = b"PK\x03\x04";
const ZIP_NOTE: &str = "is a zip file, whose logs are not read; unpack it, and name its folder";

/// Adds the files of a folder to `files`, in the order of their names. Each folder that cannot be read and each zip file, which
/// is not read, has a report of its own.
pub fn add(folder: &Path, depth: usize, files: &mut Vec<PathBuf>, reports: &mut Vec<FileReport>) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return reports.push(FileReport::unreadable(folder, reason(&error))),
    };
    entries.sort_by_key(DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        match entry.file_type() {
            _ if is_hidden || files.len() >= MAX_FILES => {}
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => add(&path, depth + 1, files, reports),
            Ok(kind) if kind.is_file() && has_name_of_log(&path) => files.push(path),
            Ok(kind) if kind.is_file() => {
                let start = start(&path);
                if MARKERS.iter().any(|marker| find(&start, marker).is_some()) {
                    files.push(path);
                } else if start.starts_with(ZIP) && may_hold_logs(&path) {
                    let mut report = FileReport::of(&path);
                    report.add_note(None, ZIP_NOTE);
                    reports.push(report);
                }
            }
            // A symbolic link is not followed: it may lead back to this folder.
            Ok(_) | Err(_) => {}
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
fn start(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(START).read_to_end(&mut bytes));
    read.map_or(Vec::new(), |_| bytes)
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
        let (mut found, mut reports) = (Vec::new(), Vec::new());
        add(scratch.path(), 0, &mut found, &mut reports);
        let zip = scratch.path().join("jobs/4711/workspace");
        let paths: Vec<&str> = reports.iter().map(|report| &*report.path).collect();
        assert_eq!(paths, [zip.to_str().unwrap()]);
        assert!(reports[0].fully_read);
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
        add(&scratch.path().join("missing"), 0, &mut found, &mut reports);
        assert!(reports.len() == 2 && !reports[1].fully_read);
    }
}
