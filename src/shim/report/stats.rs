//! The statistics of the process as one JSON object, and the effective settings.

use std::ffi::{c_char, c_int};
use std::sync::atomic::Ordering::Relaxed;

use flarena_shared::settings::{Key, Setting, TABLE};
use flarena_shared::VERSION;
use serde_json::{json, Map, Value};

use crate::backends::jemalloc::{self, ctl};
use crate::backends::{choose, glibc};
use crate::garbage;
use crate::launch;
use crate::memory_limit;
use crate::python::text;
use crate::report::panic::contain_call;
use crate::report::{buffer, history, mark, memory};
use flarena_recycler as recycler;
use flarena_sites as sites;
use flarena_sys::identity::identity;
use flarena_sys::{config, owner, unmap_hooks};

/// The body of `flarena_stats_json`. Returns the length of the whole text, like snprintf.
///
/// # Safety
/// `buffer` is NULL or has room for `len` bytes.
pub unsafe fn stats_json(buffer: *mut c_char, len: usize) -> c_int {
    contain_call(-1, || {
        // SAFETY: the program passes NULL or a buffer of `len` bytes.
        unsafe { buffer::copy_text(buffer, len, &document().to_string()) }
    })
}

/// All statistics of the process.
pub fn document() -> Value {
    let (identity, memory, last) = (identity(), memory::now(), mark::last());
    let (last, collected) = (last.as_ref(), garbage::total());
    let (marked_rss_bytes, stages) = history::document();
    json!({
        "version": VERSION,
        "pid": std::process::id(),
        "allocator": choose::allocator_name(),
        "owner": owner::owns_malloc(),
        "role": identity.role().map(|role| role.name()),
        "proc": identity.proc_name(),
        "name": identity.name(),
        "site": last.and_then(|last| last.site.as_deref()).or(identity.site.as_deref()),
        "round": last.and_then(|last| last.round),
        "stage": last.map(|last| last.stage.as_str()),
        "settings": effective_settings(),
        "rss_bytes": memory.rss_bytes,
        "anon_bytes": memory.anon_bytes,
        "file_bytes": memory.file_bytes,
        "swap_bytes": memory.swap_bytes,
        "hwm_bytes": memory.hwm_bytes,
        "marked_rss_bytes": marked_rss_bytes,
        "stages": stages,
        "live_bytes": memory.live_bytes,
        "retained_bytes": memory.retained_bytes,
        "recycled_bytes": memory.recycled_bytes,
        "pymalloc_bytes": memory.pools.pymalloc_bytes,
        "arrow_bytes": memory.pools.arrow_bytes,
        "pinned_bytes": memory.pools.pinned_bytes,
        "gpu_allocated_bytes": memory.pools.gpu_allocated_bytes,
        "gpu_reserved_bytes": memory.pools.gpu_reserved_bytes,
        "cgroup_bytes": memory.cgroup.memory.used_bytes,
        "cgroup_limit_bytes": memory.cgroup.memory.limit_bytes,
        "backend": backend_numbers(),
        "recycler": recycler_numbers(),
        "governor": governor_numbers(),
        "garbage": {
            "collections": collected.collections,
            "released_bytes_total": collected.released_bytes,
            "ms_total": collected.ms,
            "live_after_last_bytes": collected.live_after_bytes,
        },
    })
}

/// The effective value of each setting, as text.
pub fn effective_settings() -> Map<String, Value> {
    TABLE
        .iter()
        .map(|row| (row.name.to_owned(), effective(row).into()))
        .collect()
}

/// The value of the setting. If the library decides too, the result of that decision.
fn effective(row: &Setting) -> String {
    match row.key {
        Key::JemallocPreload => choose::is_jemalloc().to_string(),
        Key::Allocator => choose::allocator_name().to_owned(),
        Key::Role => identity()
            .role()
            .map_or("(unknown)", |role| role.name())
            .to_owned(),
        Key::ArenaMax => owner::arena_max().map_or("(glibc's)".to_owned(), |n| n.to_string()),
        Key::MallocConf if choose::is_jemalloc() => jemalloc::effective(),
        Key::MallocConf => "(glibc)".to_owned(),
        // `flarena who --start` turns them on later.
        Key::Sites => if sites::is_on() { "on" } else { "off" }.to_owned(),
        key => config::settings().shown(key).unwrap_or_else(|| {
            // Empty counts as not set.
            let text = config::environment().setting(key);
            let text = text.filter(|text| !text.trim_ascii().is_empty());
            let default = || format!("({})", row.default).into();
            text.map_or_else(default, String::from_utf8_lossy)
                .into_owned()
        }),
    }
}

/// The statistics of the backend, read from it.
fn backend_numbers() -> Value {
    if !choose::is_jemalloc() {
        let info = glibc::recent_mallinfo2().unwrap_or_default();
        return json!({
            "arena_bytes": info.arena, "in_use_bytes": info.uordblks, "free_bytes": info.fordblks,
            "mmapped_bytes": info.hblkhd, "trimmable_bytes": info.keepcost,
        });
    }
    json!({
        "allocated_bytes": ctl::ALLOCATED.read(),
        "active_bytes": ctl::ACTIVE.read(),
        "metadata_bytes": ctl::METADATA.read(),
        "resident_bytes": ctl::RESIDENT.read(),
        "mapped_bytes": ctl::MAPPED.read(),
        "narenas": ctl::NARENAS.read(),
        "dirty_decay_ms": ctl::DIRTY_DECAY_MS.read(),
        "muzzy_decay_ms": ctl::MUZZY_DECAY_MS.read(),
        "background_thread": ctl::BACKGROUND_THREAD.read(),
        "thp": ctl::THP.read(),
    })
}

fn recycler_numbers() -> Value {
    let stats = recycler::stats();
    json!({
        "enabled": stats.enabled,
        "asks_for_huge_pages": stats.asks_for_huge_pages,
        "unmap_hooks": unmap_hooks::are_installed(),
        "decay_ms": stats.decay_ms,
        "live_blocks": stats.live_blocks,
        "live_bytes": stats.live_bytes,
        "cached_bytes": stats.cached_bytes,
        "slack_bytes": stats.slack_bytes,
        "peak_live_bytes": stats.peak_live_bytes,
        "recycled_bytes_total": stats.recycled_bytes_total,
        "moved_bytes_total": stats.moved_bytes_total,
        "fresh_bytes_total": stats.fresh_bytes_total,
        "returned_bytes_total": stats.returned_bytes_total,
        "fallbacks": fallbacks(stats.fallbacks),
    })
}

fn fallbacks(counts: [u64; recycler::FALLBACK_NAMES.len()]) -> Value {
    let counts = recycler::FALLBACK_NAMES.into_iter().zip(counts);
    let mut fallbacks: Map<String, Value> = counts
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    // The former name, for one more release.
    let unmapped = fallbacks["multi_vma_unmapped"].clone();
    fallbacks.insert("patched_ended".to_owned(), unmapped);
    fallbacks.into()
}

fn governor_numbers() -> Value {
    json!({
        "running": launch::is_running(),
        "ticks": launch::TICKS.load(Relaxed),
        "near_limit": launch::NEAR_LIMIT.load(Relaxed),
        "pressure_events": launch::PRESSURE_EVENTS.load(Relaxed),
        "reclaims": memory_limit::RECLAIMS.load(Relaxed),
        "reclaimed_bytes_total": memory_limit::RECLAIMED_BYTES.load(Relaxed),
    })
}

/// The body of `flarena_version`: a static string.
pub fn version() -> *const c_char {
    text(concat!(env!("CARGO_PKG_VERSION"), "\0")).as_ptr()
}

/// The body of `flarena_allocator`: a static string.
pub fn allocator() -> *const c_char {
    if choose::is_jemalloc() {
        c"jemalloc"
    } else {
        c"glibc"
    }
    .as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fallback_has_its_count_and_a_former_name_that_of_the_new_one() {
        let counts = std::array::from_fn(|index| index as u64 + 10);
        let json = fallbacks(counts);
        for (name, count) in recycler::FALLBACK_NAMES.iter().zip(counts) {
            assert_eq!(json[name], count, "{name}");
        }
        assert!(json["patched_ended"].is_u64());
        assert_eq!(json["patched_ended"], json["multi_vma_unmapped"]);
    }
}
