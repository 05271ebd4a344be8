//! Small files of `/proc` and `/sys`, read with plain system calls into buffers of the caller.
//! Nothing here allocates, so the choice of the allocator may use it. malloc and free may read here (`file`).

use std::ffi::CStr;
use std::io::Write;

use rustix::fs::OFlags;

use crate::io::file::File;

/// Reads the beginning of a file; `None` when it cannot be opened or read. Keeps errno.
pub fn read_file<'b>(path: &CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    // These files are made whole for each read, and all that we read fit the buffers given.
    let filled = File::open(path, OFlags::RDONLY).ok()?.read(buffer).ok()?;
    (filled > 0).then(|| &buffer[..filled])
}

/// The number that follows `label` at the start of a line, as in `VmHWM:     1234 kB`.
pub fn labelled_number(text: &[u8], label: &[u8]) -> Option<u64> {
    let line = text
        .split(|&b| b == b'\n')
        .find(|line| line.starts_with(label))?;
    leading_number(line[label.len()..].trim_ascii_start())
}

/// The decimal number at the beginning of `text`.
pub fn leading_number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    flarena_shared::parse::number(&text[..digits])
}

/// The resident set of the process in pages; `None` without `/proc`.
pub fn resident_pages() -> Option<u64> {
    let mut buffer = [0; 128];
    let statm = read_file(c"/proc/self/statm", &mut buffer)?;
    leading_number(statm.split(|&b| b == b' ').nth(1)?)
}

/// Start of this process in clock ticks since boot.
pub fn start_ticks() -> Option<u64> {
    let mut buffer = [0; 1024];
    leading_number(stat_field(read_file(c"/proc/self/stat", &mut buffer)?, 22)?)
}

/// The threads of this process.
pub fn threads() -> Option<u64> {
    let mut buffer = [0; 1024];
    leading_number(stat_field(read_file(c"/proc/self/stat", &mut buffer)?, 20)?)
}

/// True when the main thread has ended and the caller is the only other one.
pub fn has_only_this_thread_left() -> bool {
    let mut buffer = [0; 1024];
    read_file(c"/proc/self/stat", &mut buffer)
        .and_then(threads_beside_the_ended_main)
        .is_some_and(|threads| threads == 1)
}

/// Of `/proc/self/stat`, which counts the main thread, too; `None` while that one lives.
fn threads_beside_the_ended_main(stat: &[u8]) -> Option<u64> {
    let threads = leading_number(stat_field(stat, 20)?)?;
    (stat_field(stat, 3)? == b"Z").then(|| threads.saturating_sub(1))
}

/// True for a thread of this process that waits for something other than the disk.
pub fn is_asleep(thread: u32) -> bool {
    let (mut path, mut buffer) = ([0; 40], [0; 1024]);
    if write!(&mut path[..], "/proc/self/task/{thread}/stat\0").is_err() {
        return false;
    }
    CStr::from_bytes_until_nul(&path)
        .ok()
        .and_then(|path| stat_field(read_file(path, &mut buffer)?, 3))
        .is_some_and(|state| state == b"S")
}

/// A field of `/proc/PID/stat`, by its number in the manual: 3 is the state.
fn stat_field(stat: &[u8], number: usize) -> Option<&[u8]> {
    // The second field is the name in parentheses, which may hold anything.
    let after_name = stat.iter().rposition(|&b| b == b')')? + 2;
    stat.get(after_name..)?
        .split(|&b| b == b' ')
        .nth(number.checked_sub(3)?)
}

/// Bytes in a page.
pub fn page_bytes() -> usize {
    // Not sysconf, which may be a tracer's that allocates: who asks here may be choosing the allocator.
    // SAFETY: getauxval reads a table that the loader filled before any code ran.
    match unsafe { libc::getauxval(libc::AT_PAGESZ) } {
        0 => 4096,
        size => size as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_resident_and_has_started() {
        assert!(resident_pages().unwrap() > 10);
        assert!(start_ticks().unwrap() > 0);
    }

    #[test]
    fn a_process_whose_main_thread_has_ended_counts_the_others() {
        let stat = |state: &str, threads: u32| {
            format!("7 (a ) b) {state} 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 99 0")
        };
        let count = |state, threads| threads_beside_the_ended_main(stat(state, threads).as_bytes());
        assert_eq!(count("Z", 2), Some(1));
        assert_eq!(count("Z", 3), Some(2));
        assert_eq!(count("S", 2), None);
        assert!(!has_only_this_thread_left());
    }

    #[test]
    fn labels_are_found_at_line_starts_only() {
        let text = b"XVmHWM: 1 kB\nVmHWM:\t  77 kB\n";
        assert_eq!(labelled_number(text, b"VmHWM:"), Some(77));
        assert_eq!(labelled_number(text, b"VmSwap:"), None);
    }

    #[test]
    fn a_missing_file_leaves_errno_alone() {
        crate::errno::set(7);
        assert_eq!(read_file(c"/no/such/file", &mut [0; 8]), None);
        assert_eq!(crate::errno::get(), 7);
    }
}
