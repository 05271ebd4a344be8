//! Pages of this process that go to swap and come back, with what was in them.

use rustix::fs::OFlags;
use rustix::mm::Advice;

use crate::io::file::File;
use crate::proc::procfs;

/// Entries of `/proc/self/pagemap` read at once.
const ENTRIES: usize = 1024;
const ENTRY_BYTES: usize = size_of::<u64>();
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// Of a file, or shared with other processes.
const SHARED: u64 = 1 << 61;
/// A guard of the program's (Linux 6.13), which reads as if it were swapped.
const GUARD: u64 = 1 << 58;

/// What a fault brings of a file, if nobody changed that: 16 pages of 4 KiB. A run of pages goes on over no larger gap.
const FAULT_BYTES: usize = 64 << 10;
/// What the kernel reads ahead of a file in one call, at most, on usual disks.
const READ_BYTES: usize = 128 << 10;

/// Pages, in bytes. Each counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    pub present_bytes: u64,
    pub swapped_bytes: u64,
    pub shared_bytes: u64,
}

/// The kernel knows how to page out (5.4), how to bring back (5.14), and tells where a page is.
pub fn is_possible() -> bool {
    [Advice::LinuxPageOut, Advice::LinuxPopulateRead]
        .into_iter()
        .all(|advice| advise(0, 0, advice))
        && pages(0, 0).is_some()
}

/// Pages a range out. Answers how many bytes went: what is locked or pinned stays, what a forked child still
/// shares, and everything when swap is full. A range where the program has mapped something else is left alone.
pub fn out(start: usize, bytes: usize) -> u64 {
    let Some(before) =
        pages(start, bytes).filter(|pages| pages.present_bytes > 0 && pages.shared_bytes == 0)
    else {
        return 0;
    };
    advise(start, bytes, Advice::LinuxPageOut);
    swapped_since(before, start, bytes)
}

/// Pages out what the program wrote of a file that it has mapped for itself; the file's own pages stay. Answers what went.
pub fn out_written(start: usize, bytes: usize) -> u64 {
    let Some(before) = pages(start, bytes).filter(|pages| pages.present_bytes > 0) else {
        return 0;
    };
    let role = |entry| match entry & (PRESENT | SHARED) {
        PRESENT => Role::Inside,
        _ => Role::Outside,
    };
    each_run(start, bytes, 0, role, |from, to| {
        advise(from, to - from, Advice::LinuxPageOut);
    });
    swapped_since(before, start, bytes)
}

/// How many bytes of the range went to swap.
fn swapped_since(before: Pages, start: usize, bytes: usize) -> u64 {
    let after = pages(start, bytes).unwrap_or(before);
    after.swapped_bytes.saturating_sub(before.swapped_bytes)
}

/// Takes a file's own pages out of the process, where no other has mapped them and the file is this user's. The kernel
/// drops them as it does, and reads them again at once: while nobody needs the memory no fault waits for the disk.
pub fn out_of_file(start: usize, bytes: usize) {
    let role = |entry| match entry & (PRESENT | SHARED | SWAPPED) {
        0 | SHARED => Role::Between,
        found if found == PRESENT | SHARED => Role::Inside,
        _ => Role::Outside,
    };
    each_run(start, bytes, FAULT_BYTES, role, |from, to| {
        advise(from, to - from, Advice::LinuxPageOut);
        for piece in (from..to).step_by(READ_BYTES) {
            advise(piece, READ_BYTES.min(to - piece), Advice::WillNeed);
        }
    });
}

/// Begins to read what of a range is in swap, and does not wait: a fault reads eight pages, and waits for each eight.
pub fn announce(start: usize, bytes: usize) {
    each_swapped(start, bytes, |from, to| {
        advise(from, to - from, Advice::WillNeed);
    });
}

/// Brings back what of a range is in swap, and touches no page that was never there. Answers the bytes.
pub fn back(start: usize, bytes: usize) -> u64 {
    each_swapped(start, bytes, |from, to| {
        // Refused, it is left to the program's own faults.
        advise(from, to - from, Advice::LinuxPopulateRead);
    })
}

/// The runs of pages that are in swap, each over pages between them that are present: fewer calls. Answers the bytes.
fn each_swapped(start: usize, bytes: usize, each: impl FnMut(usize, usize)) -> u64 {
    let role = |entry| match entry {
        entry if is_swapped(entry) => Role::Inside,
        entry if entry & PRESENT != 0 => Role::Between,
        _ => Role::Outside,
    };
    each_run(start, bytes, usize::MAX, role, each)
}

/// What a page is to a run.
enum Role {
    Inside,
    /// The run may go on behind it.
    Between,
    Outside,
}

/// The runs of pages, each over gaps of no more than `gap_bytes`. Answers the bytes that are inside of one.
fn each_run(
    start: usize,
    bytes: usize,
    gap_bytes: usize,
    role: impl Fn(u64) -> Role,
    mut each: impl FnMut(usize, usize),
) -> u64 {
    let mut runs = Runs {
        page_bytes: procfs::page_bytes(),
        gap_bytes,
        at: start,
        run: None,
        inside_bytes: 0,
    };
    let _ = each_page(start, bytes, |entry| {
        if let Some((from, to)) = runs.next(role(entry)) {
            each(from, to);
        }
    });
    if let Some((from, to)) = runs.run {
        each(from, to);
    }
    runs.inside_bytes as u64
}

/// Page by page to runs.
struct Runs {
    page_bytes: usize,
    gap_bytes: usize,
    /// The next page.
    at: usize,
    /// The one that may still go on.
    run: Option<(usize, usize)>,
    inside_bytes: usize,
}

impl Runs {
    /// Takes a page, and answers the run that ended before it.
    fn next(&mut self, role: Role) -> Option<(usize, usize)> {
        let page = (self.at, self.at + self.page_bytes);
        self.at = page.1;
        match role {
            Role::Between => None,
            Role::Outside => self.run.take(),
            Role::Inside => {
                self.inside_bytes += self.page_bytes;
                match &mut self.run {
                    Some((_, end)) if end.saturating_add(self.gap_bytes) >= page.0 => {
                        *end = page.1;
                        None
                    }
                    run => run.replace(page),
                }
            }
        }
    }
}

/// Where the pages of a range are; `None` when the system does not tell.
pub fn pages(start: usize, bytes: usize) -> Option<Pages> {
    let page_bytes = procfs::page_bytes() as u64;
    let mut pages = Pages::default();
    each_page(start, bytes, |entry| {
        if is_swapped(entry) {
            pages.swapped_bytes += page_bytes;
        } else if entry & (PRESENT | SHARED) == PRESENT | SHARED {
            pages.shared_bytes += page_bytes;
        } else if entry & PRESENT != 0 {
            pages.present_bytes += page_bytes;
        }
    })?;
    Some(pages)
}

fn is_swapped(entry: u64) -> bool {
    entry & (SWAPPED | GUARD) == SWAPPED
}

/// Hands the entry of each page on. The file is opened anew: nothing of ours stays open in the program's table.
fn each_page(start: usize, bytes: usize, mut each: impl FnMut(u64)) -> Option<()> {
    let file = File::open(c"/proc/self/pagemap", OFlags::RDONLY).ok()?;
    let page_bytes = procfs::page_bytes();
    let (mut page, end) = (start / page_bytes, (start + bytes).div_ceil(page_bytes));
    let mut buffer = [0; ENTRIES * ENTRY_BYTES];
    while page < end {
        let wanted = (end - page).min(ENTRIES) * ENTRY_BYTES;
        let read = file
            .read_at(&mut buffer[..wanted], (page * ENTRY_BYTES) as u64)
            .ok()
            .filter(|read| *read >= ENTRY_BYTES)?;
        let (entries, _) = buffer[..read].as_chunks();
        entries
            .iter()
            .for_each(|entry| each(u64::from_ne_bytes(*entry)));
        page += entries.len();
    }
    Some(())
}

fn advise(start: usize, bytes: usize, advice: Advice) -> bool {
    // SAFETY: no such advice changes what is in the range, whoever has it, in memory, swap or file; one that is not mapped is refused.
    unsafe { rustix::mm::madvise(start as *mut _, bytes, advice) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_over_gaps_that_are_small_enough_and_over_nothing_that_is_another_s() {
        // In, not there, out.
        for (pages, gap, expected) in [
            ("iiii", 0, vec![(0, 4)]),
            ("ii.ii", 0, vec![(0, 2), (3, 5)]),
            ("ii.ii", 1, vec![(0, 5)]),
            ("ii..ii", 1, vec![(0, 2), (4, 6)]),
            ("ii..ii", 2, vec![(0, 6)]),
            ("i.oi", 9, vec![(0, 1), (3, 4)]),
            ("ioi", usize::MAX, vec![(0, 1), (2, 3)]),
            (".i...", usize::MAX, vec![(1, 2)]),
            ("oo", 9, vec![]),
        ] {
            let mut runs = Runs {
                page_bytes: 1,
                gap_bytes: gap,
                at: 0,
                run: None,
                inside_bytes: 0,
            };
            let roles = pages.chars().map(|page| match page {
                'i' => Role::Inside,
                '.' => Role::Between,
                _ => Role::Outside,
            });
            let mut found: Vec<_> = roles.filter_map(|role| runs.next(role)).collect();
            found.extend(runs.run);
            assert_eq!(found, expected, "{pages}, {gap}");
            assert_eq!(runs.inside_bytes, pages.matches('i').count());
        }
    }

    #[test]
    fn touched_pages_are_present_and_untouched_ones_are_nowhere() {
        let page = procfs::page_bytes();
        let mut block = vec![0u8; 64 * page];
        let start = block.as_ptr() as usize;
        let start = start.next_multiple_of(page);
        let skip = start - block.as_ptr() as usize;
        block[skip..skip + 2 * page].fill(1);
        let found = pages(start, 2 * page).unwrap();
        assert_eq!(found.present_bytes + found.swapped_bytes, 2 * page as u64);
        assert_eq!(back(start, 2 * page), found.swapped_bytes);
    }
}
