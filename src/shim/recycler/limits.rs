//! What the system allows and has, read from its files once.

use crate::process::{procfs, sandbox};
use std::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};

pub struct Limits {
    /// `vm.max_map_count`; 0: not yet read.
    mappings_allowed: AtomicU32,
    one_node: AtomicU8,
}

const UNKNOWN: u8 = 0;
const ONE: u8 = 1;
const MANY: u8 = 2;

impl Limits {
    pub const fn new() -> Self {
        Limits {
            mappings_allowed: AtomicU32::new(0),
            one_node: AtomicU8::new(UNKNOWN),
        }
    }

    /// Reads what is needed from the first mapping on.
    pub fn read(&self) {
        self.mappings_allowed.store(max_map_count(), Relaxed);
    }

    pub fn mappings_allowed(&self) -> u32 {
        match self.mappings_allowed.load(Relaxed) {
            0 => MAPPINGS_ALLOWED,
            number => number,
        }
    }

    /// With a single node a memory policy changes nothing.
    pub fn has_one_node(&self) -> bool {
        if self.one_node.load(Relaxed) == UNKNOWN {
            let online = c"/sys/devices/system/node/online";
            let one = procfs::read_file(online, &mut [0; 32]).is_some_and(|text| text == b"0\n");
            self.one_node.store(if one { ONE } else { MANY }, Relaxed);
        }
        self.one_node.load(Relaxed) == ONE
    }
}

/// The kernel's default, unless the system has another number.
const MAPPINGS_ALLOWED: u32 = 65_530;

fn max_map_count() -> u32 {
    let mut buffer = [0; 32];
    let file = c"/proc/sys/vm/max_map_count";
    let text = (!sandbox::is_closed()).then(|| procfs::read_file(file, &mut buffer));
    let number = text.flatten().and_then(procfs::leading_number);
    number.map_or(MAPPINGS_ALLOWED, |number| {
        u32::try_from(number).unwrap_or(u32::MAX)
    })
}
