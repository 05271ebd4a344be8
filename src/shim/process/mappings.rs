//! The mappings of this process, as the kernel lists them.

use std::ops::Range;

use rustix::fs::OFlags;

use crate::process::file::File;
use crate::process::procfs;

const BUFFER_BYTES: usize = 1 << 16;
/// A mapping that is larger than all that is resident, so many times over, is a reserve of addresses: to look for pages
/// in it takes longer than they are worth.
const RESERVE: usize = 16;

/// Neighbours that differ in nothing that is asked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<usize>,
    pub has_file: bool,
}

/// What only this process writes and everybody in it may read: heaps, stacks, and files that are mapped privately,
/// libraries among them. Allocates: not for malloc's path. Empty without `/proc`.
pub fn private() -> Vec<Mapping> {
    let resident = procfs::resident_pages().unwrap_or(0) as usize * procfs::page_bytes();
    let mut found: Vec<Mapping> = Vec::new();
    let text = read().unwrap_or_default();
    for next in text.split(|&byte| byte == b'\n').filter_map(private_one) {
        if next.range.len() > resident.saturating_mul(RESERVE) {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.range.end == next.range.start && last.has_file == next.has_file => {
                last.range.end = next.range.end;
            }
            _ => found.push(next),
        }
    }
    found
}

/// Of one line, `start-end rwxp offset device inode name`.
fn private_one(line: &[u8]) -> Option<Mapping> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let has_file = words.nth(2)? != "0";
    // The kernel's own: vdso, vvar, vsyscall.
    let is_kernels = words.next().is_some_and(|name| name.starts_with("[v"));
    if is_kernels || !rights.starts_with('r') || !rights.ends_with('p') {
        return None;
    }
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(Mapping {
        range: address(start)?..address(end)?,
        has_file,
    })
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
    fn private_memory_that_can_be_read_is_listed_and_nothing_else() {
        let of = |line: &str| private_one(line.as_bytes());
        let heap =
            "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0                          [heap]";
        let library =
            "7f0000000000-7f0000001000 r-xp 00026000 fe:00 131 /usr/lib/a library.so (deleted)";
        for (line, range, has_file) in [
            (heap, 0x55d0_c0a0_0000..0x55d0_c0a2_1000, false),
            (library, 0x7f00_0000_0000..0x7f00_0000_1000, true),
        ] {
            assert_eq!(of(line), Some(Mapping { range, has_file }));
        }
        for other in [
            "7f0000000000-7f0000001000 rw-s 00000000 00:05 77 /dev/shm/numbers",
            "7f0000000000-7f0000001000 ---p 00000000 00:00 0",
            "7ffc1e7d5000-7ffc1e7d7000 r-xp 00000000 00:00 0 [vdso]",
            "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn what_this_thread_has_on_its_stack_is_listed_and_its_code_with_a_file() {
        let found = private();
        let local = 0;
        let kind = |address: usize| {
            let mut found = found.iter();
            found
                .find(|mapping| mapping.range.contains(&address))
                .map(|mapping| mapping.has_file)
        };
        assert_eq!(kind(&raw const local as usize), Some(false));
        assert_eq!(kind(private as *const () as usize), Some(true));
        assert!(found.is_sorted_by(|a, b| a.range.end <= b.range.start));
    }
}
