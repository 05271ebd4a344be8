//! The memory of the process at one moment. The cost of reading it does not grow with its size, except for
//! the PSS, which is read seldom.

use crate::backends::choose::dispatch;
use crate::pools;
use flarena_recycler as recycler;
use flarena_sys::proc::sharing::{self, Sharing};
use flarena_sys::{proc::cgroup, proc::procfs};

/// Sizes in bytes; `None` if the system does not report one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    pub rss_bytes: Option<u64>,
    pub anon_bytes: Option<u64>,
    pub file_bytes: Option<u64>,
    pub shmem_bytes: Option<u64>,
    pub pss_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
    pub hwm_bytes: Option<u64>,
    pub live_bytes: Option<u64>,
    pub retained_bytes: Option<u64>,
    pub recycled_bytes: Option<u64>,
    pub pools: pools::Usage,
    pub cgroup: cgroup::Group,
}

pub fn now() -> Memory {
    let mut memory = without_allocator();
    memory.add_allocator();
    memory
}

/// Waits for no lock. So it does not ask the backend, and the recycler only if its lock is free.
pub fn without_locks() -> Memory {
    Memory {
        recycled_bytes: recycler::stats_unless_locked().as_ref().map(recycled_bytes),
        ..without_allocator()
    }
}

fn without_allocator() -> Memory {
    Memory {
        pools: pools::usage(),
        cgroup: cgroup::group(),
        ..status()
    }
}

fn recycled_bytes(large: &recycler::Stats) -> u64 {
    large.cached_bytes + large.slack_bytes
}

/// Not inlined: its buffer and that of `cgroup::group` together need half of the smallest stack that a
/// thread may have.
#[inline(never)]
fn status() -> Memory {
    let mut buffer = [0; 4096];
    let status = procfs::read_file(c"/proc/self/status", &mut buffer).unwrap_or_default();
    let kilobytes = |label: &[u8]| Some(procfs::labelled_number(status, label)? << 10);
    let rss_bytes = kilobytes(b"VmRSS:");
    Memory {
        rss_bytes,
        anon_bytes: kilobytes(b"RssAnon:"),
        file_bytes: kilobytes(b"RssFile:"),
        shmem_bytes: kilobytes(b"RssShmem:"),
        pss_bytes: pss_bytes(),
        swap_bytes: kilobytes(b"VmSwap:"),
        // The kernel notes a new maximum late.
        hwm_bytes: kilobytes(b"VmHWM:").max(rss_bytes),
        ..Memory::default()
    }
}

fn pss_bytes() -> Option<u64> {
    match sharing::read() {
        Sharing::Read(sizes) => Some(sizes.pss_bytes),
        Sharing::Unshared | Sharing::NotRead | Sharing::Estimated(_) => None,
    }
}

impl Memory {
    fn add_allocator(&mut self) {
        let Some(usage) = dispatch!(usage()) else {
            return;
        };
        let large = recycler::stats();
        let recycled_bytes = recycled_bytes(&large);
        let live_bytes = usage.live_bytes + large.live_bytes;
        self.live_bytes = Some(live_bytes);
        self.recycled_bytes = Some(recycled_bytes);
        // The system may already have the memory that the allocator counts as free. The part that
        // is resident is at most the anonymous memory that is not live.
        let bound = self.anon_bytes.map_or(u64::MAX, |anon| {
            anon.saturating_sub(live_bytes + recycled_bytes)
        });
        self.retained_bytes = Some(usage.free_bytes.min(bound));
    }
}
