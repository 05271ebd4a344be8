//! Properties of the system and of the process, queried on first use and cached. Any thread may
//! query; threads that query at the same time store the same answer.

use crate::os::syscalls;
use flarena_sys::sync::racy_once::RacyOnceBool;
use flarena_sys::{proc::procfs, seccomp};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The kernel's default for `vm.max_map_count`, for systems where the file is not readable.
const DEFAULT_MAX_MAP_COUNT: u32 = 65_530;

pub struct Capabilities {
    /// `vm.max_map_count`; 0: unknown.
    max_map_count: AtomicU32,
    one_node: RacyOnceBool,
    guard_removal: RacyOnceBool,
    locks_new_mappings: PerTick,
}

impl Capabilities {
    pub const fn new() -> Self {
        Capabilities {
            max_map_count: AtomicU32::new(0),
            one_node: RacyOnceBool::new(),
            guard_removal: RacyOnceBool::new(),
            locks_new_mappings: PerTick::new(),
        }
    }

    /// Called with the first mapping.
    pub fn read_max_map_count(&self) {
        if seccomp::allows_common_calls() {
            let text = procfs::read_file(c"/proc/sys/vm/max_map_count", &mut [0; 32])
                .and_then(procfs::leading_number);
            let number = text.map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX));
            self.max_map_count.store(number, Relaxed);
        }
    }

    pub fn max_map_count(&self) -> u32 {
        match self.max_map_count.load(Relaxed) {
            0 => DEFAULT_MAX_MAP_COUNT,
            number => number,
        }
    }

    /// With a single memory node, a memory policy has no effect.
    pub fn has_one_node(&self) -> bool {
        self.one_node.get_or_try_init(|| {
            let online = c"/sys/devices/system/node/online";
            Some(procfs::read_file(online, &mut [0; 32]) == Some(b"0\n"))
        })
    }

    /// The kernel knows `MADV_GUARD_REMOVE` (Linux 6.13).
    pub fn can_remove_guards(&self, page_bytes: usize) -> bool {
        self.guard_removal
            .get_or_try_init(|| syscalls::can_remove_guards(page_bytes))
    }

    /// `mlockall(MCL_FUTURE)` is in force. The query maps and unmaps a page, and sleeps while other
    /// threads change the address space. So an answer is valid for one tick of the coarse clock (1
    /// to 10 ms).
    pub fn locks_new_mappings(&self, now_ms: u32, page_bytes: usize) -> bool {
        let query = || syscalls::locks_new_mappings(page_bytes);
        self.locks_new_mappings.get_or_query(now_ms, query)
    }
}

/// A boolean that is queried once per clock tick: the tick of the query and, in the lowest bit, the
/// answer.
struct PerTick(AtomicU64);

impl PerTick {
    const fn new() -> Self {
        PerTick(AtomicU64::new(u64::MAX))
    }

    fn get_or_query(&self, now_ms: u32, query: impl FnOnce() -> bool) -> bool {
        let cached = self.0.load(Relaxed);
        if cached >> 1 == u64::from(now_ms) {
            return cached & 1 == 1;
        }
        let answer = query();
        self.0
            .store(u64::from(now_ms) << 1 | u64::from(answer), Relaxed);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_tick_value_is_queried_once_per_tick() {
        let value = PerTick::new();
        assert!(value.get_or_query(0, || true));
        assert!(value.get_or_query(0, || unreachable!("second query in one tick")));
        assert!(!value.get_or_query(4, || false));
        assert!(!value.get_or_query(4, || unreachable!("second query in one tick")));
        assert!(value.get_or_query(u32::MAX, || true));
    }
}
