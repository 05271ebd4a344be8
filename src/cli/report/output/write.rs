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
    let written = create(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A new file, also where another one has the name: in a shared folder such as /tmp it may be another user's.
pub fn create(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => fs::File::create_new(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_file_is_replaced_with_no_temporary_file_left_and_a_link_is_not_followed() {
        let scratch = Scratch::new();
        let file = scratch.path().join("out.prom");
        replace(&file, b"one").unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
        let other = scratch.write("other", "precious");
        std::os::unix::fs::symlink(&other, scratch.path().join("link")).unwrap();
        create(&scratch.path().join("link")).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        drop(scratch);
        assert!(replace(&file, b"gone").is_err());
    }
}
