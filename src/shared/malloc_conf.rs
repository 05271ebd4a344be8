//! jemalloc's option string: the options of 5.3.1, the check of a user's `MALLOC_CONF`, and the
//! merge with the defaults, key by key. Nothing here allocates.
//!
//! jemalloc prints a line for each pair that it cannot use, in every process. Checking first allows
//! one message that names the options in use, and keeps children silent.

use std::fmt;

use crate::parse;

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Exactly `true` or `false`.
    Bool,
    /// A whole number, decimal, octal or hexadecimal.
    Unsigned,
    /// A whole number, or -1.
    Signed,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text without a comma.
    Text,
    /// Accepted only by a jemalloc with profiling; other builds print a line.
    Profiling,
}

use Kind::{Bool, Profiling, Signed, Text, Unsigned, Word};

/// The options of jemalloc 5.3.1, sorted by name.
pub const OPTIONS: &[(&str, Kind)] = &[
    ("abort", Bool),
    ("abort_conf", Bool),
    ("background_thread", Bool),
    ("bin_shards", Text),
    ("cache_oblivious", Bool),
    ("calloc_madvise_threshold", Unsigned),
    ("confirm_conf", Bool),
    ("debug_double_free_max_scan", Unsigned),
    ("dirty_decay_ms", Signed),
    ("disable_large_size_classes", Bool),
    ("dss", Word(&["disabled", "primary", "secondary"])),
    ("experimental_hpa_enforce_hugify", Bool),
    ("experimental_hpa_max_purge_nhp", Signed),
    ("experimental_hpa_start_huge_if_thp_always", Bool),
    ("experimental_infallible_new", Bool),
    ("experimental_tcache_gc", Bool),
    ("hpa", Bool),
    ("hpa_dirty_mult", Text),
    ("hpa_hugification_threshold", Unsigned),
    ("hpa_hugification_threshold_ratio", Text),
    ("hpa_hugify_delay_ms", Unsigned),
    ("hpa_hugify_style", Word(&["auto", "none", "eager", "lazy"])),
    ("hpa_hugify_sync", Bool),
    ("hpa_min_purge_delay_ms", Unsigned),
    ("hpa_min_purge_interval_ms", Unsigned),
    ("hpa_purge_threshold", Unsigned),
    ("hpa_purge_threshold_ratio", Text),
    ("hpa_sec_batch_fill_extra", Unsigned),
    ("hpa_sec_max_alloc", Unsigned),
    ("hpa_sec_max_bytes", Unsigned),
    ("hpa_sec_nshards", Unsigned),
    ("hpa_slab_max_alloc", Unsigned),
    ("huge_arena_pac_thp", Bool),
    ("junk", Word(&["true", "false", "alloc", "free"])),
    ("lg_extent_max_active_fit", Unsigned),
    ("lg_prof_interval", Profiling),
    ("lg_prof_sample", Profiling),
    ("lg_san_uaf_align", Signed),
    ("lg_tcache_flush_large_div", Unsigned),
    ("lg_tcache_flush_small_div", Unsigned),
    ("lg_tcache_max", Unsigned),
    ("lg_tcache_nslots_mul", Signed),
    ("max_background_threads", Unsigned),
    ("metadata_thp", Word(&["disabled", "auto", "always"])),
    ("mutex_max_spin", Signed),
    ("muzzy_decay_ms", Signed),
    ("narenas", Text),
    ("narenas_ratio", Text),
    ("oversize_threshold", Unsigned),
    ("percpu_arena", Word(&["disabled", "percpu", "phycpu"])),
    ("process_madvise_max_batch", Unsigned),
    ("prof", Profiling),
    ("prof_accum", Profiling),
    ("prof_active", Profiling),
    ("prof_bt_max", Profiling),
    ("prof_final", Profiling),
    ("prof_gdump", Profiling),
    ("prof_leak", Profiling),
    ("prof_leak_error", Profiling),
    ("prof_log", Profiling),
    ("prof_pid_namespace", Profiling),
    ("prof_prefix", Profiling),
    ("prof_recent_alloc_max", Profiling),
    ("prof_stats", Profiling),
    ("prof_sys_thread_name", Profiling),
    ("prof_thread_active_init", Profiling),
    ("prof_time_resolution", Profiling),
    ("prof_unbias", Profiling),
    ("retain", Bool),
    ("san_guard_large", Unsigned),
    ("san_guard_small", Unsigned),
    ("slab_sizes", Text),
    ("stats_interval", Signed),
    ("stats_interval_opts", Text),
    ("stats_print", Bool),
    ("stats_print_opts", Text),
    ("tcache", Bool),
    ("tcache_gc_delay_bytes", Unsigned),
    ("tcache_gc_incr_bytes", Unsigned),
    ("tcache_max", Unsigned),
    ("tcache_ncached_max", Text),
    ("tcache_nslots_large", Unsigned),
    ("tcache_nslots_small_max", Unsigned),
    ("tcache_nslots_small_min", Unsigned),
    ("thp", Word(&["default", "always", "never"])),
    ("trust_madvise", Bool),
    ("utrace", Bool),
    ("xmalloc", Bool),
    ("zero", Bool),
    ("zero_realloc", Word(&["alloc", "free", "abort"])),
];

/// This option may deadlock while jemalloc initializes. [`merge`] leaves it out, and the library
/// sets it later with mallctl.
pub const DEFERRED: &str = "background_thread";

/// Why a pair of the user's string is not used. The text follows the pair in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    UnknownKey,
    BadValue,
    /// No `:`, or nothing on one side of it.
    Malformed,
    NeedsProfiling,
    /// This pair and all after it do not fit into the buffer.
    TooLong,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::UnknownKey => "is not an option of jemalloc 5.3",
            Fault::BadValue => "has a value that this option does not accept",
            Fault::Malformed => "is not of the form key:value",
            Fault::NeedsProfiling => {
                "needs a jemalloc built with profiling, which flarena does not include"
            }
            Fault::TooLong => "does not fit into the buffer",
        })
    }
}

/// One pair of an option string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// The pairs of an option string that jemalloc would accept; `report` receives the others.
pub fn pairs<'a>(
    conf: &'a [u8],
    mut report: impl FnMut(&'a [u8], Fault),
) -> impl Iterator<Item = Pair<'a>> {
    conf.split(|&b| b == b',').filter_map(move |text| {
        let text = text.trim_ascii();
        if text.is_empty() {
            return None;
        }
        match check(text) {
            Ok(pair) => Some(pair),
            Err(fault) => {
                report(text, fault);
                None
            }
        }
    })
}

fn check(text: &[u8]) -> Result<Pair<'_>, Fault> {
    let colon = text
        .iter()
        .position(|&b| b == b':')
        .ok_or(Fault::Malformed)?;
    let (key, value) = (&text[..colon], &text[colon + 1..]);
    if key.is_empty() || value.is_empty() {
        return Err(Fault::Malformed);
    }
    match kind_of(key) {
        None => Err(Fault::UnknownKey),
        Some(Profiling) => Err(Fault::NeedsProfiling),
        Some(kind) if accepts(key, kind, value) => Ok(Pair { key, value }),
        Some(_) => Err(Fault::BadValue),
    }
}

fn kind_of(key: &[u8]) -> Option<Kind> {
    let index = OPTIONS
        .binary_search_by(|(name, _)| name.as_bytes().cmp(key))
        .ok()?;
    Some(OPTIONS[index].1)
}

fn accepts(key: &[u8], kind: Kind, value: &[u8]) -> bool {
    match kind {
        Bool => value == b"true" || value == b"false",
        Unsigned => is_unsigned(value),
        Signed => value == b"-1" || is_unsigned(value),
        Word(words) => words.iter().any(|word| word.as_bytes() == value),
        Text if key == b"narenas" => {
            value == b"default" || (is_unsigned(value) && value.iter().any(|&b| b != b'0'))
        }
        Text => value.iter().all(|b| b.is_ascii_graphic()),
        Profiling => false,
    }
}

fn is_unsigned(value: &[u8]) -> bool {
    match value {
        [b'0', b'x' | b'X', hex @ ..] => {
            !hex.is_empty() && hex.len() <= 16 && hex.iter().all(u8::is_ascii_hexdigit)
        }
        [b'0', octal @ ..] => octal.len() <= 21 && octal.iter().all(|b| (b'0'..=b'7').contains(b)),
        _ => parse::number(value).is_some_and(|n| n <= i64::MAX as u64),
    }
}

/// Writes the effective string into `out`, with a NUL at its end: the defaults whose key the user
/// did not set, then the user's valid pairs. Returns the length without the NUL.
pub fn merge<'a>(
    user: &'a [u8],
    defaults: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut [u8],
    mut report: impl FnMut(&'a [u8], Fault),
) -> usize {
    let mut len = 0;
    // Appends `key:value`. False, with nothing written, if it does not fit.
    let mut push = |key: &[u8], value: &[u8]| {
        let comma: &[u8] = if len == 0 { b"" } else { b"," };
        let parts = [comma, key, b":", value];
        let needed: usize = parts.iter().map(|part| part.len()).sum();
        let fits = len + needed < out.len();
        for part in parts.iter().filter(|_| fits) {
            out[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        fits
    };
    for (key, value) in defaults {
        if !pairs(user, |_, _| ()).any(|pair| pair.key == key) {
            push(key, value);
        }
    }
    let overflow = pairs(user, &mut report)
        .filter(|pair| pair.key != DEFERRED.as_bytes())
        .find(|pair| !push(pair.key, pair.value));
    if let Some(pair) = overflow {
        let rest = pair.key.as_ptr() as usize - user.as_ptr() as usize;
        report(&user[rest..], Fault::TooLong);
    }
    if let Some(end) = out.get_mut(len) {
        *end = 0;
    }
    len
}

#[cfg(test)]
mod tests;
