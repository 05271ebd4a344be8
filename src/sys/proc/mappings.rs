//! The mappings of this process, as the kernel lists them.

use std::collections::HashSet;
use std::ops::Range;

use rustix::fs::OFlags;

use crate::io::file::File;
use crate::proc::procfs;

const BUFFER_BYTES: usize = 1 << 16;
/// A mapping that is larger than all that is resident, so many times over, is a reserve of addresses: to look for pages
/// in it takes longer than they are worth.
const RESERVE: usize = 16;

/// Neighbours that differ in nothing that is asked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<usize>,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of no file: heaps and stacks.
    Heap,
    File,
    /// A file on a block device that this process runs code of.
    Library,
}

/// What only this process writes and everybody in it may read. Allocates: not for malloc's path. Empty without `/proc`.
pub fn private() -> Vec<Mapping> {
    let resident = procfs::resident_pages().unwrap_or(0) as usize * procfs::page_bytes();
    let text = read().unwrap_or_default();
    let mut found: Vec<Mapping> = Vec::new();
    for next in private_of(&String::from_utf8_lossy(&text)) {
        if next.range.len() > resident.saturating_mul(RESERVE) {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.range.end == next.range.start && last.kind == next.kind => {
                last.range.end = next.range.end;
            }
            _ => found.push(next),
        }
    }
    found
}

fn private_of(text: &str) -> impl Iterator<Item = Mapping> + '_ {
    let lines = || text.lines().filter_map(Line::read);
    let with_code: HashSet<_> = lines()
        .filter(|line| line.rights.contains('x'))
        .map(|line| (line.device, line.inode))
        .collect();
    lines().filter(Line::is_private).map(move |line| Mapping {
        kind: match line.inode {
            "0" => Kind::Heap,
            // Devices without a number of their own: memory, file systems behind a network; btrfs and overlays, too.
            inode
                if with_code.contains(&(line.device, inode)) && !line.device.starts_with("00:") =>
            {
                Kind::Library
            }
            _ => Kind::File,
        },
        range: line.range,
    })
}

/// `start-end rwxp offset device inode name`.
struct Line<'a> {
    range: Range<usize>,
    rights: &'a str,
    device: &'a str,
    inode: &'a str,
    name: &'a str,
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Option<Line<'a>> {
        let mut words = text.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(Line {
            range: address(start)?..address(end)?,
            rights: words.next()?,
            device: words.nth(1)?,
            inode: words.next()?,
            name: words.next().unwrap_or_default(),
        })
    }

    fn is_private(&self) -> bool {
        // The kernel's own: vdso, vvar, vsyscall.
        let is_kernels = self.name.starts_with("[v");
        !is_kernels && self.rights.starts_with('r') && self.rights.ends_with('p')
    }
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
        let text = "\
55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 r--p 00000000 fe:00 131 /usr/lib/a library.so (deleted)
7f0000001000-7f0000002000 r-xp 00001000 fe:00 131 /usr/lib/a library.so (deleted)
7f0000003000-7f0000004000 rw-p 00000000 fe:00 132 /data/numbers
7f0000005000-7f0000006000 r-xp 00000000 00:2a 131 /network/library.so
7f0000007000-7f0000008000 rw-s 00000000 00:05 77 /dev/shm/numbers
7f0000009000-7f000000a000 ---p 00000000 00:00 0
7ffc1e7d5000-7ffc1e7d7000 r-xp 00000000 00:00 0 [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]

";
        let found: Vec<_> = private_of(text).map(|m| (m.range.start, m.kind)).collect();
        let expected = [
            (0x55d0_c0a0_0000, Kind::Heap),
            (0x7f00_0000_0000, Kind::Library),
            (0x7f00_0000_1000, Kind::Library),
            (0x7f00_0000_3000, Kind::File),
            (0x7f00_0000_5000, Kind::File),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_this_thread_has_on_its_stack_is_listed_and_its_code_with_a_file() {
        let found = private();
        let local = 0;
        let kind = |address: usize| {
            let mut found = found.iter();
            found
                .find(|mapping| mapping.range.contains(&address))
                .map(|mapping| mapping.kind)
        };
        assert_eq!(kind(&raw const local as usize), Some(Kind::Heap));
        let code = kind(private as *const () as usize);
        assert!(matches!(code, Some(Kind::File | Kind::Library)), "{code:?}");
        assert!(found.is_sorted_by(|a, b| a.range.end <= b.range.start));
    }
}
