//! The allocator keeps what the program has freed.

use crate::report::analyse::finding::Finding;
use crate::report::explain::phrases::{grows, shares};
use crate::report::model::Process;
use crate::report::units::size;

pub fn sentence(process: &Process, finding: &Finding) -> String {
    format!(
        "{}: {}. {} of free memory lie there, of use to nobody.",
        grows(finding),
        shares(process, finding),
        size(finding.typical.held_back()),
    )
}

pub fn remedy(process: &Process, finding: &Finding) -> &'static str {
    match process.alloc.as_deref() {
        _ if 2.0 * finding.parts.recycled > finding.parts.held_back => {
            "set `FLARENA_DECAY_MS=100`, or call `flarena.trim()` at the end of each round"
        }
        Some("jemalloc") => {
            "set `MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0`, or call `flarena.trim()` at the end \
             of each round"
        }
        _ => {
            "set `NVFLARE_ENABLE_JEMALLOC_PRELOAD=true`, or `MALLOC_ARENA_MAX=2` (client) or `4` \
             (server), or call `flarena.trim()` at the end of each round"
        }
    }
}
