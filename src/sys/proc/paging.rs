//! Moves pages of this process to swap and back. The contents of the pages never change.

use rustix::fs::OFlags;
use rustix::mm::Advice;

use crate::io::file::File;
use crate::proc::procfs;

/// Entries of `/proc/self/pagemap` that one call reads.
const ENTRIES: usize = 1024;
const ENTRY_BYTES: usize = size_of::<u64>();
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// The page belongs to a file or to shared memory.
const SHARED: u64 = 1 << 61;
/// The page is in a guard region of the program (Linux 6.13). Its entry also has the `SWAPPED` bit.
const GUARD: u64 = 1 << 58;

/// Bytes of a range by page state. Each page counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    pub present_bytes: u64,
    pub swapped_bytes: u64,
    pub shared_bytes: u64,
}

/// True if the kernel can page out (Linux 5.4) and page in (5.14), and `/proc/self/pagemap` is readable.
pub fn is_possible() -> bool {
    [Advice::LinuxPageOut, Advice::LinuxPopulateRead]
        .into_iter()
        .all(|advice| advise(0, 0, advice))
        && pages(0, 0).is_some()
}

/// Pages a range out, and returns the bytes that went to swap. The kernel keeps locked and pinned
/// pages, pages that a forked child shares, and all pages while swap is full. A range that contains
/// pages of a file or of shared memory is not paged out.
pub fn page_out(start: usize, bytes: usize) -> u64 {
    let Some(before) =
        pages(start, bytes).filter(|pages| pages.present_bytes > 0 && pages.shared_bytes == 0)
    else {
        return 0;
    };
    advise(start, bytes, Advice::LinuxPageOut);
    let after = pages(start, bytes).unwrap_or(before);
    after.swapped_bytes.saturating_sub(before.swapped_bytes)
}

/// Starts to read the swapped pages of a range, and does not wait. Page faults read eight pages at a
/// time, and the program waits for each fault.
pub fn prefetch(start: usize, bytes: usize) {
    each_swapped(start, bytes, |from, to| {
        advise(from, to - from, Advice::WillNeed);
    });
}

/// Reads the swapped pages of a range, and returns their bytes. Pages that were never faulted in
/// are not created.
pub fn page_in(start: usize, bytes: usize) -> u64 {
    each_swapped(start, bytes, |from, to| {
        // A failure is harmless: the program's page faults read the pages later.
        advise(from, to - from, Advice::LinuxPopulateRead);
    })
}

/// Calls `each` for each run of swapped pages, and returns the bytes in swap. A run continues across
/// present pages, which saves calls.
fn each_swapped(start: usize, bytes: usize, mut each: impl FnMut(usize, usize)) -> u64 {
    let mut runs = Runs::new(start, procfs::page_bytes());
    let _ = each_page(start, bytes, |entry| {
        if let Some((from, to)) = runs.next(Place::of(entry)) {
            each(from, to);
        }
    });
    if let Some((from, to)) = runs.run {
        each(from, to);
    }
    runs.swapped_bytes as u64
}

/// Where a page is.
#[derive(Clone, Copy)]
enum Place {
    Swap,
    Memory,
    /// Never faulted in, or in a guard region of the program.
    Nowhere,
}

impl Place {
    fn of(entry: u64) -> Place {
        if is_swapped(entry) {
            Place::Swap
        } else if entry & PRESENT != 0 {
            Place::Memory
        } else {
            Place::Nowhere
        }
    }
}

/// Joins consecutive pages into runs.
struct Runs {
    page_bytes: usize,
    next_page: usize,
    /// The run that the next page may continue.
    run: Option<(usize, usize)>,
    swapped_bytes: usize,
}

impl Runs {
    fn new(start: usize, page_bytes: usize) -> Runs {
        Runs {
            page_bytes,
            next_page: start,
            run: None,
            swapped_bytes: 0,
        }
    }

    /// Takes the next page, and returns the run that ended before it.
    fn next(&mut self, place: Place) -> Option<(usize, usize)> {
        let page = self.next_page;
        self.next_page += self.page_bytes;
        match place {
            Place::Memory => None,
            Place::Nowhere => self.run.take(),
            Place::Swap => {
                self.swapped_bytes += self.page_bytes;
                let start = self.run.map_or(page, |(start, _)| start);
                self.run = Some((start, self.next_page));
                None
            }
        }
    }
}

/// Counts the bytes of a range by page state; `None` if `/proc/self/pagemap` cannot be read.
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

/// Calls `each` with the pagemap entry of each page; `None` if the file cannot be read.
/// Opens the file on each call, so that no descriptor stays open.
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
    // SAFETY: the advice used here never changes the contents of a page, even if another thread has
    // remapped the range. The kernel returns an error for an unmapped range.
    unsafe { rustix::mm::madvise(start as *mut _, bytes, advice) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_continues_across_present_pages_and_ends_at_absent_pages() {
        for (pages, expected) in [
            ("ssss", vec![(0, 4)]),
            ("ss.ss", vec![(0, 5)]),
            ("s.-s", vec![(0, 1), (3, 4)]),
            ("s-s", vec![(0, 1), (2, 3)]),
            (".s...", vec![(1, 2)]),
            ("--", vec![]),
        ] {
            let mut runs = Runs::new(0, 1);
            let places = pages.chars().map(|page| match page {
                's' => Place::Swap,
                '.' => Place::Memory,
                _ => Place::Nowhere,
            });
            let mut found: Vec<_> = places.filter_map(|place| runs.next(place)).collect();
            found.extend(runs.run);
            assert_eq!(found, expected, "{pages}");
            assert_eq!(runs.swapped_bytes, pages.matches('s').count());
        }
    }

    #[test]
    fn touched_pages_are_present_or_swapped_and_page_in_reads_the_swapped_ones() {
        let page = procfs::page_bytes();
        let mut block = vec![0u8; 64 * page];
        let start = block.as_ptr() as usize;
        let start = start.next_multiple_of(page);
        let skip = start - block.as_ptr() as usize;
        block[skip..skip + 2 * page].fill(1);
        let found = pages(start, 2 * page).unwrap();
        assert_eq!(found.present_bytes + found.swapped_bytes, 2 * page as u64);
        assert_eq!(page_in(start, 2 * page), found.swapped_bytes);
    }
}
