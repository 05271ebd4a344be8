//! Statistics as JSON, and glibc's statistics functions in both modes.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr;

use flarena_shared::settings::{Key, Setting, TABLE};
use flarena_shared::VERSION;
use serde_json::{json, Map, Value};
use tikv_jemalloc_sys as je;

use crate::backend::{self, Usage};
use crate::glibc::{self, Mallinfo, Mallinfo2};
use crate::{
    dispatch, governor, identity::identity, jemalloc, mark, memory, procfs, recycler, start,
    symbols,
};

/// The body of `flarena_stats_json`: like snprintf, the bytes needed without the NUL.
///
/// # Safety
/// `buffer` is NULL or has room for `len` bytes.
pub unsafe fn stats_json(buffer: *mut c_char, len: usize) -> c_int {
    let text = document().to_string();
    if !buffer.is_null() && len > 0 {
        let copied = text.len().min(len - 1);
        // SAFETY: the caller vouches for `len` bytes, and copied + 1 are at most as many.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, copied);
            buffer.add(copied).write(0);
        }
    }
    c_int::try_from(text.len()).unwrap_or(c_int::MAX)
}

/// Everything that can be told of this process.
pub fn document() -> Value {
    let (identity, memory, last) = (identity(), memory::now(), mark::last());
    let last = last.as_ref();
    json!({
        "version": VERSION,
        "pid": std::process::id(),
        "allocator": backend::allocator_name(),
        "owner": start::owns_malloc(),
        "role": identity.role.map(|role| role.name()),
        "proc": identity.proc_name(),
        "site": last.and_then(|named| named.site.as_deref()).or(identity.site.as_deref()),
        "round": last.and_then(|named| named.round),
        "stage": last.map(|named| named.stage.as_str()),
        "settings": effective_settings(),
        "rss_bytes": memory.rss_bytes,
        "anon_bytes": memory.anon_bytes,
        "file_bytes": memory.file_bytes,
        "swap_bytes": memory.swap_bytes,
        "hwm_bytes": memory.hwm_bytes,
        "live_bytes": memory.live_bytes,
        "retained_bytes": memory.retained_bytes,
        "recycled_bytes": memory.recycled_bytes,
        "cgroup_bytes": memory.cgroup.current_bytes,
        "cgroup_limit_bytes": memory.cgroup.limit_bytes,
        "backend": backend_numbers(),
        "recycler": recycler_numbers(),
        "governor": governor::statistics(),
    })
}

/// The value in force of every setting of the table, as text.
pub fn effective_settings() -> Map<String, Value> {
    TABLE
        .iter()
        .map(|row| (row.name.to_owned(), effective(row).into()))
        .collect()
}

/// What was asked for, but where more than the user decides: there what came of it.
fn effective(row: &Setting) -> String {
    match row.key {
        Key::JemallocPreload => backend::is_jemalloc().to_string(),
        Key::Allocator => backend::allocator_name().to_owned(),
        Key::Role => identity()
            .role
            .map_or("(unknown)", |role| role.name())
            .to_owned(),
        Key::ArenaMax => start::arena_max().map_or("(glibc's)".to_owned(), |n| n.to_string()),
        Key::MallocConf if backend::is_jemalloc() => {
            String::from_utf8_lossy(jemalloc::options()).into_owned()
        }
        Key::MallocConf => "(glibc)".to_owned(),
        key => backend::settings().shown(key).unwrap_or_else(|| {
            let text = backend::environment().setting(key);
            let default = || format!("({})", row.default).into();
            text.map_or_else(default, String::from_utf8_lossy)
                .into_owned()
        }),
    }
}

/// The backend's own numbers, read back from it.
fn backend_numbers() -> Value {
    if !backend::is_jemalloc() {
        let info = glibc::recent_mallinfo2().unwrap_or_default();
        return json!({
            "arena_bytes": info.arena, "in_use_bytes": info.uordblks, "free_bytes": info.fordblks,
            "mmapped_bytes": info.hblkhd, "trimmable_bytes": info.keepcost,
        });
    }
    let number = |name| jemalloc::read::<usize>(name);
    let decay = |name| jemalloc::read::<isize>(name);
    json!({
        "allocated_bytes": number(c"stats.allocated"),
        "active_bytes": number(c"stats.active"),
        "metadata_bytes": number(c"stats.metadata"),
        "resident_bytes": number(c"stats.resident"),
        "mapped_bytes": number(c"stats.mapped"),
        "narenas": jemalloc::read::<u32>(c"opt.narenas"),
        "dirty_decay_ms": decay(c"opt.dirty_decay_ms"),
        "muzzy_decay_ms": decay(c"opt.muzzy_decay_ms"),
        "background_thread": jemalloc::read::<bool>(c"background_thread"),
        "thp": jemalloc::read_text(c"opt.thp"),
    })
}

fn recycler_numbers() -> Value {
    let stats = recycler::stats();
    let counts = recycler::FALLBACK_NAMES.iter().zip(stats.fallbacks);
    let fallbacks: Map<String, Value> = counts
        .map(|(name, count)| ((*name).to_owned(), count.into()))
        .collect();
    json!({
        "enabled": stats.enabled,
        "live_blocks": stats.live_blocks,
        "live_bytes": stats.live_bytes,
        "cached_bytes": stats.cached_bytes,
        "slack_bytes": stats.slack_bytes,
        "peak_live_bytes": stats.peak_live_bytes,
        "recycled_bytes_total": stats.recycled_bytes_total,
        "moved_bytes_total": stats.moved_bytes_total,
        "fresh_bytes_total": stats.fresh_bytes_total,
        "returned_bytes_total": stats.returned_bytes_total,
        "fallbacks": fallbacks,
    })
}

/// # Safety
/// None; C's mallinfo2.
pub unsafe fn mallinfo2() -> Mallinfo2 {
    let small = backend_mallinfo2();
    let large = recycler::stats();
    // Large blocks are mappings of their own, which is what these two fields count.
    Mallinfo2 {
        hblks: small.hblks + large.live_blocks as usize,
        hblkhd: small.hblkhd + large.live_bytes as usize,
        fordblks: small.fordblks + (large.cached_bytes + large.slack_bytes) as usize,
        ..small
    }
}

fn backend_mallinfo2() -> Mallinfo2 {
    if !backend::is_jemalloc() {
        return glibc::mallinfo2().unwrap_or_default();
    }
    let Usage {
        live_bytes,
        free_bytes,
    } = dispatch!(usage()).unwrap_or_default();
    Mallinfo2 {
        arena: (live_bytes + free_bytes) as usize,
        uordblks: live_bytes as usize,
        fordblks: free_bytes as usize,
        ..Mallinfo2::default()
    }
}

/// # Safety
/// None; C's mallinfo.
pub unsafe fn mallinfo() -> Mallinfo {
    // SAFETY: it has no precondition.
    Mallinfo::from(unsafe { mallinfo2() })
}

/// glibc's own settings stay reachable in both modes: its heap serves libraries that were
/// loaded with RTLD_DEEPBIND, and the answer is glibc's.
///
/// # Safety
/// None; C's mallopt.
pub unsafe fn mallopt(parameter: c_int, value: c_int) -> c_int {
    // SAFETY: the symbol has this signature and takes any numbers.
    symbols::glibc()
        .mallopt
        .map_or(0, |f| unsafe { f(parameter, value) })
}

/// # Safety
/// None; C's malloc_stats: to stderr.
pub unsafe fn malloc_stats() {
    if backend::is_jemalloc() {
        // SAFETY: without a callback jemalloc writes to stderr; NULL options mean all.
        unsafe { je::malloc_stats_print(None, ptr::null_mut(), ptr::null()) };
    } else if let Some(f) = symbols::glibc().malloc_stats {
        // SAFETY: the symbol has this signature.
        unsafe { f() };
    }
}

/// # Safety
/// `stream` is an open FILE; C's malloc_info: XML.
pub unsafe fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if !backend::is_jemalloc() {
        // SAFETY: the symbol has this signature and the caller vouches for the stream.
        return symbols::glibc()
            .malloc_info
            .map_or(-1, |f| unsafe { f(options, stream) });
    }
    if options != 0 {
        procfs::set_errno(libc::EINVAL);
        return -1;
    }
    let Usage {
        live_bytes,
        free_bytes,
    } = dispatch!(usage()).unwrap_or_default();
    let total = live_bytes + free_bytes;
    let xml = format!(
        "<malloc version=\"1\">\n<total type=\"rest\" count=\"0\" size=\"{free_bytes}\"/>\n\
         <system type=\"current\" size=\"{total}\"/>\n</malloc>\n"
    );
    let Ok(xml) = CString::new(xml) else {
        return -1;
    };
    // SAFETY: the text is NUL-terminated and the caller vouches for the stream.
    if unsafe { libc::fputs(xml.as_ptr(), stream) } < 0 {
        -1
    } else {
        0
    }
}

/// # Safety
/// As jemalloc's malloc_stats_print.
pub unsafe fn malloc_stats_print(
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    opaque: *mut c_void,
    options: *const c_char,
) {
    // SAFETY: same contract.
    unsafe { je::malloc_stats_print(write, opaque, options) }
}

/// `flarena_version`, `flarena_allocator`: static C strings.
pub fn version() -> *const c_char {
    const TEXT: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => c"",
        };
    TEXT.as_ptr()
}

pub fn allocator() -> *const c_char {
    if backend::is_jemalloc() {
        c"jemalloc"
    } else {
        c"glibc"
    }
    .as_ptr()
}
