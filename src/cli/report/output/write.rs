//! Writes an output file atomically: a reader sees the old file or the whole new one.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Replaces the file by a rename. If writing fails, the old file stays.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        // A pipe or /dev/stdout cannot be replaced.
        return fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(bytes);
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temporary_name = OsString::from(".");
    temporary_name.push(name);
    // The collector would read a name that ends in `.prom`.
    temporary_name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary_name);
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_file_is_replaced_and_no_temporary_file_is_left() {
        let scratch = Scratch::new();
        let file = scratch.path().join("out.prom");
        replace(&file, b"one").unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
        drop(scratch);
        assert!(replace(&file, b"gone").is_err());
    }
}
