//! The resident set at the last marker of each stage, and the highest one. `flarena top` shows them.

use serde::Serialize;
use serde_json::{json, Value};

use flarena_shared::marker::Marker;
use flarena_sys::sync::lock::Lock;

/// Further stages are not listed. A program has so many if it puts a step number into their names.
const MAX_STAGES: usize = 24;

#[derive(Serialize)]
struct StageSize {
    stage: String,
    round: Option<i64>,
    rss_bytes: u64,
    highest_rss_bytes: u64,
}

struct Stages {
    /// A forked child has those of its parent until its first marker.
    pid: u32,
    /// In the order of their first markers.
    list: Vec<StageSize>,
}

static STAGES: Lock<Stages> = Lock::new(Stages {
    pid: 0,
    list: Vec::new(),
});

pub fn note(marker: &Marker, rss_bytes: u64) {
    let mut stages = STAGES.lock();
    if stages.pid != marker.pid {
        stages.list.clear();
        stages.pid = marker.pid;
    }
    let stages = &mut stages.list;
    if let Some(known) = stages.iter_mut().find(|known| known.stage == marker.stage) {
        known.round = marker.round;
        known.rss_bytes = rss_bytes;
        known.highest_rss_bytes = known.highest_rss_bytes.max(rss_bytes);
    } else if stages.len() < MAX_STAGES {
        stages.push(StageSize {
            stage: marker.stage.clone(),
            round: marker.round,
            rss_bytes,
            highest_rss_bytes: rss_bytes,
        });
    }
}

pub fn list() -> Vec<Value> {
    let stages = STAGES.lock();
    let is_own = stages.pid == std::process::id();
    let own = stages.list.iter().filter(|_| is_own);
    own.map(|stage| json!(stage)).collect()
}

/// Frees the lock if a thread of the parent held it.
///
/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    // SAFETY: the child's only thread is in its fork handler, so no other thread uses STAGES.
    if let Some(mut stages) = unsafe { STAGES.take_over_after_fork() } {
        // The parent may have been writing it, so it must not be dropped.
        std::mem::forget(std::mem::take(&mut stages.list));
    }
}
