//! What the system allows and has, asked once.

use crate::os::syscalls;
use flarena_sys::racy_once::Known;
use flarena_sys::{proc::procfs, seccomp};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub struct Limits {
    /// `vm.max_map_count`; 0: not yet read.
    mappings_allowed: AtomicU32,
    one_node: Known,
    guards: Known,
    strict_commit: Known,
}

impl Limits {
    pub const fn new() -> Self {
        Limits {
            mappings_allowed: AtomicU32::new(0),
            one_node: Known::not_yet(),
            guards: Known::not_yet(),
            strict_commit: Known::not_yet(),
        }
    }

    /// Reads what is needed from the first mapping on.
    pub fn read(&self) {
        self.mappings_allowed.store(max_map_count(), Relaxed);
    }

    pub fn max_map_count(&self) -> u32 {
        match self.mappings_allowed.load(Relaxed) {
            0 => MAPPINGS_ALLOWED,
            number => number,
        }
    }

    /// With a single node a memory policy changes nothing.
    pub fn has_one_node(&self) -> bool {
        self.one_node.or_ask(|| {
            let online = c"/sys/devices/system/node/online";
            let text = procfs::read_file(online, &mut [0; 32]).map(|text| text == b"0\n");
            Some(text.unwrap_or(false))
        })
    }

    /// No more memory is promised than there is (`vm.overcommit_memory=2`): any mapping may be refused.
    pub fn overcommit_is_off(&self) -> bool {
        self.strict_commit.or_ask(|| {
            let file = c"/proc/sys/vm/overcommit_memory";
            let mut buffer = [0; 8];
            let text = (!seccomp::is_closed()).then(|| procfs::read_file(file, &mut buffer));
            Some(text.flatten().and_then(procfs::leading_number) == Some(2))
        })
    }

    /// `MADV_GUARD_REMOVE` (Linux 6.13) is known. What it answers of a program's memory depends on what is there.
    pub fn has_guards(&self, page_bytes: usize) -> bool {
        self.guards.or_ask(|| syscalls::supports_guards(page_bytes))
    }
}

/// The kernel's default, unless the system has another number.
const MAPPINGS_ALLOWED: u32 = 65_530;

fn max_map_count() -> u32 {
    let mut buffer = [0; 32];
    let file = c"/proc/sys/vm/max_map_count";
    let text = (!seccomp::is_closed()).then(|| procfs::read_file(file, &mut buffer));
    let number = text.flatten().and_then(procfs::leading_number);
    number.map_or(MAPPINGS_ALLOWED, |number| {
        u32::try_from(number).unwrap_or(u32::MAX)
    })
}
