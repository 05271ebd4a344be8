//! Reads small files of `/proc` and `/sys` with plain system calls into the caller's buffers.
//! Nothing here allocates or is a cancellation point (see `io::file`). So malloc, free and the selection of
//! the allocator may call it.

use std::ffi::CStr;
use std::io::Write;

use rustix::fs::OFlags;

use crate::io::file::File;

/// Reads the beginning of a file; `None` if it is empty or cannot be read. Preserves errno.
pub fn read_file<'b>(path: &CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    // One read is enough: the kernel generates the file for each read, and each caller's buffer is large enough.
    let filled = File::open(path, OFlags::RDONLY).ok()?.read(buffer).ok()?;
    (filled > 0).then(|| &buffer[..filled])
}

/// The number that follows `label` at the start of a line, as in `VmHWM:     1234 kB`.
pub fn labelled_number(text: &[u8], label: &[u8]) -> Option<u64> {
    leading_number(labelled(text, label)?)
}

/// The set of signals or capabilities that follows `label`, as in `SigPnd: 0000000040000000`.
pub fn labelled_set(text: &[u8], label: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(labelled(text, label)?).ok()?, 16).ok()
}

fn labelled<'t>(text: &'t [u8], label: &[u8]) -> Option<&'t [u8]> {
    let mut lines = text.split(|&b| b == b'\n');
    Some(
        lines
            .find_map(|line| line.strip_prefix(label))?
            .trim_ascii(),
    )
}

/// The decimal number at the beginning of `text`.
pub fn leading_number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    flarena_shared::parse::number(&text[..digits])
}

/// The RSS of the process; `None` without `/proc`.
pub fn resident_bytes() -> Option<u64> {
    let mut buffer = [0; 128];
    let statm = read_file(c"/proc/self/statm", &mut buffer)?;
    let pages = leading_number(statm.split(|&b| b == b' ').nth(1)?)?;
    Some(pages * page_bytes() as u64)
}

/// The resident memory of the process that the kernel cannot drop: without pages of files.
#[inline(never)]
pub fn unreclaimable_bytes() -> Option<u64> {
    let mut buffer = [0; 4096];
    let status = read_file(c"/proc/self/status", &mut buffer)?;
    let kilobytes = |label: &[u8]| labelled_number(status, label);
    Some((kilobytes(b"RssAnon:")? + kilobytes(b"RssShmem:")?) << 10)
}

/// The memory of the machine.
pub fn host_memory_bytes() -> Option<u64> {
    machine_bytes(b"MemTotal:")
}

pub fn free_swap_bytes() -> Option<u64> {
    machine_bytes(b"SwapFree:")
}

/// The label is in the first kilobyte.
#[inline(never)]
fn machine_bytes(label: &[u8]) -> Option<u64> {
    let mut buffer = [0; 1024];
    let meminfo = read_file(c"/proc/meminfo", &mut buffer)?;
    Some(labelled_number(meminfo, label)? << 10)
}

/// The start time of this process in clock ticks since boot.
pub fn start_ticks() -> Option<u64> {
    own_stat(|stat| leading_number(stat_field(stat, 22)?))
}

/// The number of threads of this process.
pub fn threads() -> Option<u64> {
    own_stat(|stat| leading_number(stat_field(stat, 20)?))
}

/// True if the main thread has ended and the caller is the only thread that remains.
pub fn has_only_this_thread_left() -> bool {
    own_stat(threads_beside_the_ended_main) == Some(1)
}

fn own_stat<T>(read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    read(read_file(c"/proc/self/stat", &mut [0; 1024])?)
}

/// The threads besides an ended main thread, which `/proc/self/stat` counts too; `None` while the main thread
/// runs.
fn threads_beside_the_ended_main(stat: &[u8]) -> Option<u64> {
    let threads = leading_number(stat_field(stat, 20)?)?;
    (stat_field(stat, 3)? == b"Z").then(|| threads.saturating_sub(1))
}

/// True if this thread of the process is in interruptible sleep (state `S`).
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

/// A field of `/proc/PID/stat` by its number in proc(5), from 3 (the state) on.
fn stat_field(stat: &[u8], number: usize) -> Option<&[u8]> {
    // The second field is the name in parentheses, which may contain spaces and parentheses.
    let after_name = stat.iter().rposition(|&b| b == b')')? + 2;
    stat.get(after_name..)?
        .split(|&b| b == b' ')
        .nth(number.checked_sub(3)?)
}

/// The page size in bytes.
pub fn page_bytes() -> usize {
    // A tracer may interpose sysconf with a version that allocates. This function must not allocate,
    // because it runs during the selection of the allocator.
    // SAFETY: the loader filled the auxiliary vector before any code ran, and getauxval only reads it.
    match unsafe { libc::getauxval(libc::AT_PAGESZ) } {
        0 => 4096,
        size => size as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_size_and_start_time_of_this_process_are_read() {
        assert!(resident_bytes().unwrap() > 10 * page_bytes() as u64);
        assert!(start_ticks().unwrap() > 0);
    }

    #[test]
    fn other_threads_are_counted_only_after_the_main_thread_has_ended() {
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
        let text = b"ShdPnd:\t8000000000000001\nSigPnd:\t0000000040000000\n";
        assert_eq!(labelled_set(text, b"SigPnd:"), Some(1 << 30));
        assert_eq!(labelled_set(text, b"ShdPnd:"), Some(1 << 63 | 1));
        assert_eq!(labelled_set(text, b"SigBlk:"), None);
    }

    #[test]
    fn reading_a_missing_file_preserves_errno() {
        crate::errno::set(7);
        assert_eq!(read_file(c"/no/such/file", &mut [0; 8]), None);
        assert_eq!(crate::errno::get(), 7);
    }
}
