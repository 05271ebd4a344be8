//! Lists the private anonymous mappings of this process: heaps and stacks.

use std::ops::Range;

use rustix::fs::OFlags;

use crate::io::file::File;
use crate::proc::procfs;

const BUFFER_BYTES: usize = 1 << 16;
/// A mapping larger than this multiple of the resident size is an address reservation. It is skipped:
/// the scan takes long and finds few pages.
const RESERVE: usize = 16;

/// The readable private anonymous mappings; adjacent ones are joined. Empty without `/proc`.
/// Allocates, so malloc must not call it.
pub fn anonymous() -> Vec<Range<usize>> {
    let resident = procfs::resident_bytes().unwrap_or(0) as usize;
    let text = read().unwrap_or_default();
    let mut found: Vec<Range<usize>> = Vec::new();
    for next in anonymous_of(&String::from_utf8_lossy(&text)) {
        if next.len() > resident.saturating_mul(RESERVE) {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.end == next.start => last.end = next.end,
            _ => found.push(next),
        }
    }
    found
}

fn anonymous_of(maps: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    maps.lines().filter_map(anonymous_range)
}

/// Parses a line `start-end rwxp offset device inode name`; `None` unless the mapping is readable,
/// private and anonymous.
fn anonymous_range(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let inode = words.nth(2)?;
    // Mappings of the kernel: vdso, vvar, vsyscall.
    let is_kernels = words.next().is_some_and(|name| name.starts_with("[v"));
    let is_wanted = inode == "0" && !is_kernels && rights.starts_with('r') && rights.ends_with('p');
    let address = |text| usize::from_str_radix(text, 16).ok();
    is_wanted.then_some(address(start)?..address(end)?)
}

fn read() -> Option<Vec<u8>> {
    let file = File::open(c"/proc/self/maps", OFlags::RDONLY).ok()?;
    let mut text = Vec::new();
    loop {
        let filled = text.len();
        text.resize(filled + BUFFER_BYTES, 0);
        let read = file.read(&mut text[filled..]).ok()?;
        text.truncate(filled + read);
        if read == 0 {
            return Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readable_private_anonymous_mappings_are_listed() {
        let text = "\
55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 r--p 00000000 fe:00 131 /usr/lib/a library.so (deleted)
7f0000001000-7f0000002000 r-xp 00001000 fe:00 131 /usr/lib/a library.so (deleted)
7f0000003000-7f0000004000 rw-p 00000000 fe:00 132 /data/numbers
7f0000005000-7f0000006000 rw-p 00000000 00:00 0
7f0000007000-7f0000008000 rw-s 00000000 00:05 77 /dev/shm/numbers
7f0000009000-7f000000a000 ---p 00000000 00:00 0
7ffc1e7d5000-7ffc1e7d7000 r-xp 00000000 00:00 0 [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]

";
        let found: Vec<_> = anonymous_of(text).map(|range| range.start).collect();
        assert_eq!(found, [0x55d0_c0a0_0000, 0x7f00_0000_5000]);
    }

    #[test]
    fn the_stack_is_listed_and_code_is_not() {
        let found = anonymous();
        let local = 0;
        let is_listed = |address: usize| found.iter().any(|range| range.contains(&address));
        assert!(is_listed(&raw const local as usize));
        assert!(!is_listed(anonymous as *const () as usize));
        assert!(found.is_sorted_by(|a, b| a.end <= b.start));
    }
}
