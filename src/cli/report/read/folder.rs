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

/// The files of the folder in the order of their names, and the folders that cannot be read.
pub fn files(folder: &Path) -> (Vec<PathBuf>, Vec<(PathBuf, io::Error)>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    add(folder, 0, &mut found, &mut errors);
    (found, errors)
}

fn add(
    folder: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
    errors: &mut Vec<(PathBuf, io::Error)>,
) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return errors.push((folder.to_owned(), error)),
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
            () if is_hidden || found.len() >= MAX_FILES => {}
            () if kind.is_dir() && depth < MAX_DEPTH => add(&path, depth + 1, found, errors),
            () if kind.is_file() && (has_name_of_log(&path) || begins_with_marker(&path)) => {
                found.push(path);
            }
            () => {}
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

fn begins_with_marker(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
    read.is_ok() && MARKERS.iter().any(|marker| find(&bytes, marker).is_some())
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
        let (found, errors) = files(scratch.path());
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
        assert_eq!(files(&scratch.path().join("missing")).1.len(), 1);
    }
}
