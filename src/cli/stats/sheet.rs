//! The page that `flarena stats PID` prints.

use std::fmt::Write;

use serde_json::Value;

use crate::control::Stats;
use crate::output::plain;
use crate::units::{bytes, bytes_or_dash};

/// Smaller amounts are those of any interpreter.
const MIN_OTHER_BYTES: u64 = 16 << 20;

/// The sizes of a process; with `all` also the internals and the settings.
pub fn render(name: &str, pid: i32, stats: &Stats, all: bool) -> String {
    let mut page = sizes(name, pid, stats);
    if all {
        for name in ["recycler", "governor", "garbage", "backend", "settings"] {
            group(&mut page, name, stats);
        }
    } else {
        let _ = writeln!(page, "\nMore: flarena stats {pid} --all");
    }
    page
}

/// The name of the process and its sizes.
pub fn sizes(name: &str, pid: i32, stats: &Stats) -> String {
    let mut page = heading(name, pid, stats) + "\n";
    memory(&mut page, stats);
    page
}

fn heading(name: &str, pid: i32, stats: &Stats) -> String {
    let text = |field| stats.text(field).map(plain);
    let words = [
        Some(format!("{pid} {}", plain(name))),
        text("name"),
        text("allocator"),
        text("version").map(|version| format!("flarena {version}")),
        text("proc"),
        text("site"),
        stats
            .value::<i64>("round")
            .map(|round| format!("round {round}")),
        text("stage"),
        (stats.value("owner") == Some(false)).then(|| "another allocator serves malloc".to_owned()),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    words.join(", ") + "\n"
}

fn line(page: &mut String, name: &str, value: &str, comment: &str) {
    let text = format!("  {name:<12} {value:>10}  {comment}");
    let _ = writeln!(page, "{}", text.trim_end());
}

/// A line of a size that most processes do not have.
fn optional(page: &mut String, name: &str, size: Option<u64>, comment: &str) {
    if let Some(size) = size.filter(|size| *size > 0) {
        line(page, name, &bytes(size), comment);
    }
}

fn memory(page: &mut String, stats: &Stats) {
    let number = |field| stats.number(field);
    let size = |field| bytes_or_dash(stats.number(field));
    let peak = number("hwm_bytes").map(|peak| format!("resident; highest {}", bytes(peak)));
    line(page, "rss", &size("rss_bytes"), &peak.unwrap_or_default());
    line(page, "live", &size("live_bytes"), "in use by the program");
    let cached = "pages of freed large blocks, kept for reuse";
    line(page, "cached", &size("recycled_bytes"), cached);
    let retained = "free in the allocator";
    line(page, "retained", &size("retained_bytes"), retained);
    let python = "outside malloc: Python's small objects";
    optional(page, "python", number("pymalloc_bytes"), python);
    let arrow = "outside malloc: in use in Arrow's own pool";
    optional(page, "arrow", number("arrow_bytes"), arrow);
    let anonymous = number("anon_bytes").and_then(|all| stats.divide(all));
    let pools: u64 = stats.pools().map(|(_, size)| size).sum();
    let other = anonymous.map(|parts| parts.outside.saturating_sub(pools));
    let other = other.filter(|other| *other >= MIN_OTHER_BYTES);
    let libraries = "outside malloc: stacks, mappings of libraries";
    optional(page, "other", other, libraries);
    let files = "part of rss: mapped files";
    line(page, "file-backed", &size("file_bytes"), files);
    let shared = "part of rss: shared memory";
    optional(page, "shared", stats.shmem_bytes(), shared);
    let pinned = match stats.pinned_shared_bytes() {
        Some(_) => "part of shared: pinned for a GPU by PyTorch",
        None => "pinned for a GPU by PyTorch",
    };
    optional(page, "pinned", number("pinned_bytes"), pinned);
    line(page, "swapped out", &size("swap_bytes"), "");
    if let Some(used) = number("cgroup_bytes") {
        let limit = number("cgroup_limit_bytes").filter(|limit| *limit > 0);
        let comment = limit.map_or("no limit".to_owned(), |limit| {
            let percent = used as f64 * 100.0 / limit as f64;
            format!("{percent:.0} % of its limit, {}", bytes(limit))
        });
        line(page, "cgroup", &bytes(used), &comment);
    }
}

/// Whether a setting belongs to the allocator that is not in use.
fn is_of_other_allocator(name: &str, stats: &Stats) -> bool {
    match stats.text("allocator") {
        Some("jemalloc") => name == "MALLOC_ARENA_MAX",
        Some("glibc") => name == "MALLOC_CONF",
        _ => false,
    }
}

/// Adds a group of fields. Fields named `..._bytes` are sizes; other values are printed unchanged.
pub fn group(page: &mut String, name: &str, stats: &Stats) {
    let fields = stats.group(name);
    let mut fields = fields
        .filter(|(key, _)| !is_of_other_allocator(key, stats))
        .peekable();
    if fields.peek().is_none() {
        return;
    }
    let mut title = name.to_owned();
    title[..1].make_ascii_uppercase();
    let _ = writeln!(page, "\n{title}");
    for (key, value) in fields {
        let (key, value) = (plain(key), field(key, value));
        let name = key.strip_suffix("_bytes").unwrap_or(&key);
        let _ = writeln!(page, "  {name:<31} {value}");
    }
}

fn field(key: &str, value: &Value) -> String {
    match value {
        Value::Number(number) if key.contains("_bytes") => {
            number.as_u64().map_or_else(|| number.to_string(), bytes)
        }
        Value::String(text) => plain(text),
        Value::Null => "-".to_owned(),
        Value::Object(counts) => {
            let nonzero = counts.iter().filter(|(_, count)| **count != 0);
            let parts = nonzero.map(|(name, count)| format!("{} {count}", plain(name)));
            let parts: Vec<_> = parts.collect();
            match parts.is_empty() {
                true => "none".to_owned(),
                false => parts.join(", "),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"version":"0.1.0","allocator":"jemalloc","owner":true,"proc":"TR",
        "pymalloc_bytes":3145728,"arrow_bytes":null,
        "site":"site-1","round":3,"stage":"send","rss_bytes":1073741824,"hwm_bytes":2147483648,
        "live_bytes":536870912,"retained_bytes":1048576,"recycled_bytes":0,
        "cgroup_bytes":4294967296,"cgroup_limit_bytes":8589934592,
        "recycler":{"enabled":true,"cached_bytes":0,"fallbacks":{"map_failed":0,"mremap_refused":2}},
        "settings":{"FLARENA_DECAY_MS":"300"}}"#;

    #[test]
    fn pinned_memory_is_not_outside_malloc_but_shared() {
        let page = |shared_mb: u64| {
            let stats = format!(
                r#"{{"rss_bytes":{},"anon_bytes":104857600,"file_bytes":0,"live_bytes":52428800,
                "retained_bytes":0,"pinned_bytes":33554432}}"#,
                (100 + shared_mb) << 20
            );
            sizes("python3", 42, &Stats::parse(&stats).unwrap())
        };
        let with_cuda_host_alloc = page(40);
        assert!(
            with_cuda_host_alloc.contains("32.0 MB  part of shared: pinned for a GPU by PyTorch")
                && with_cuda_host_alloc.contains("50.0 MB  outside malloc: stacks"),
            "{with_cuda_host_alloc}"
        );
        let with_registered_blocks = page(8);
        assert!(
            with_registered_blocks.contains("32.0 MB  pinned for a GPU by PyTorch"),
            "{with_registered_blocks}"
        );
    }

    #[test]
    fn the_page_names_the_process_and_its_sizes() {
        let page = render("python3", 42, &Stats::parse(LINE).unwrap(), true);
        let first = page.lines().next().unwrap();
        assert_eq!(
            first,
            "42 python3, jemalloc, flarena 0.1.0, TR, site-1, round 3, send"
        );
        for words in [
            "1024.0 MB  resident; highest 2048.0 MB",
            "512.0 MB  in use by the program",
            "3.00 MB  outside malloc: Python's small objects",
            "50 % of its limit, 8.00 GB",
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
        assert!(!page.contains("Arrow"), "{page}");
        assert!(
            page.contains(" mremap_refused 2\n") && page.contains("FLARENA_DECAY_MS"),
            "{page}"
        );
    }

    #[test]
    fn shared_memory_and_mappings_of_libraries_have_their_lines() {
        let page = |anon: u64, file: u64| {
            let stats = format!(
                r#"{{"rss_bytes":{},"anon_bytes":{},"file_bytes":{},"live_bytes":{},
                    "recycled_bytes":0,"retained_bytes":0,"pymalloc_bytes":{}}}"#,
                200 << 20,
                anon << 20,
                file << 20,
                5 << 20,
                9 << 20
            );
            render("x", 1, &Stats::parse(&stats).unwrap(), false)
        };
        let native = page(182, 18);
        assert!(
            native.contains("  other          168.0 MB  outside malloc: stacks"),
            "{native}"
        );
        assert!(!native.contains("shared"), "{native}");
        let shared = page(20, 20);
        assert!(
            shared.contains("  shared         160.0 MB  part of rss"),
            "{shared}"
        );
        assert!(!shared.contains("other"), "{shared}");
    }

    #[test]
    fn internals_are_shown_only_with_all_and_without_the_other_allocators_settings() {
        let stats = Stats::parse(
            r#"{"allocator":"jemalloc","recycler":{"cached_bytes":0},
                "settings":{"MALLOC_ARENA_MAX":"2","MALLOC_CONF":"narenas:2"}}"#,
        );
        let stats = stats.unwrap();
        let page = render("x", 1, &stats, false);
        assert!(
            !page.contains("Recycler") && page.ends_with("--all\n"),
            "{page}"
        );
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        let page = render("x", 1, &stats, true);
        assert!(
            page.contains("MALLOC_CONF") && !page.contains("MALLOC_ARENA_MAX"),
            "{page}"
        );
    }

    #[test]
    fn counts_that_are_all_zero_are_shown_as_none() {
        let stats = Stats::parse(r#"{"recycler":{"fallbacks":{"a":0,"b":0}}}"#);
        let page = render("x", 1, &stats.unwrap(), true);
        assert!(page.contains(" none\n"), "{page}");
    }

    #[test]
    fn an_empty_answer_is_shown_as_dashes() {
        let page = render("x\u{1b}", 1, &Stats::parse("{}").unwrap(), false);
        assert!(page.starts_with("1 x?\n") && page.contains('-'), "{page}");
    }
}
