//! Appends lines to the marker file.
//!
//! The lines of a marker are one `write(2)` to a file opened with O_APPEND, so lines of different
//! threads and processes never mix. The file is opened for each marker. Programs close descriptors that they do
//! not know, so a descriptor that stays open could later belong to another file.

use std::ffi::{c_int, CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flarena_shared::system_error::reason;
use rustix::fs::OFlags;

use crate::report::log;
use flarena_sys::io::file::{self, File};
use flarena_sys::{io::quiet_write, seccomp};

/// Appends lines. Returns 0 or the error, and logs the first error of the process.
pub fn append(path: &[u8], lines: &[u8]) -> c_int {
    let Ok(name) = CString::new(expand(path)) else {
        return libc::EINVAL;
    };
    let error = write_to(&name, lines);
    if error != 0 {
        report_once(path, &name, error);
    }
    error
}

fn write_to(path: &CStr, lines: &[u8]) -> c_int {
    // Follows no symbolic link, and does not wait for the reader of a pipe.
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::NONBLOCK;
    match File::open(path, flags) {
        // A seccomp filter that permits open and write may forbid fstat.
        Ok(file) if seccomp::allows_common_calls() && file.is_planted(path) => libc::EACCES,
        Ok(file) => write_lines(file.as_raw(), lines),
        Err(error) => error.raw_os_error(),
    }
}

fn write_lines(fd: c_int, lines: &[u8]) -> c_int {
    match quiet_write::write(fd, lines) {
        Ok(written) if written < lines.len() => {
            // The disk is full.
            quiet_write::blank_out(fd, written);
            libc::ENOSPC
        }
        Ok(_) => 0,
        Err(error) => error,
    }
}

/// Replaces each `%p` by the pid.
fn expand(path: &[u8]) -> Vec<u8> {
    let pid = std::process::id().to_string();
    let mut expanded = Vec::with_capacity(path.len() + pid.len());
    let mut rest = path;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"%p") {
        expanded.extend_from_slice(&rest[..at]);
        expanded.extend_from_slice(pid.as_bytes());
        rest = &rest[at + 2..];
    }
    expanded.extend_from_slice(rest);
    expanded
}

fn report_once(path: &[u8], name: &CStr, error: c_int) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if REPORTED.swap(true, Relaxed) {
        return;
    }
    let reason = match error {
        libc::EACCES if file::is_planted(name) => {
            "in a sticky folder, a file of another user is never written".to_owned()
        }
        libc::ELOOP => "it is a symbolic link, which is never followed".to_owned(),
        error => reason(&std::io::Error::from_raw_os_error(error)),
    };
    log::warn(format_args!(
        "FLARENA_MARKER_FILE={} cannot be written ({reason}); markers go to stderr only",
        log::Quoted(path),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_percent_p_is_replaced_by_the_pid() {
        let pid = std::process::id();
        assert_eq!(
            expand(b"/tmp/%p/m-%p.%x"),
            format!("/tmp/{pid}/m-{pid}.%x").into_bytes()
        );
        assert_eq!(expand(b"plain"), b"plain");
    }
}
