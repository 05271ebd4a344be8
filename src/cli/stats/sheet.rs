//! The page that `flarena stats PID` prints.

use std::fmt::Write;

use serde_json::Value;

use crate::control::Stats;
use crate::output::plain;
use crate::units::{bytes, bytes_or_dash};

pub fn render(comm: &str, pid: i32, stats: &Stats) -> String {
    let mut page = heading(comm, pid, stats);
    resident(&mut page, stats);
    allocator(&mut page, stats);
    for name in ["recycler", "governor", "garbage", "backend", "settings"] {
        group(&mut page, name, stats);
    }
    page
}

fn heading(comm: &str, pid: i32, stats: &Stats) -> String {
    let mut words = vec![format!("{pid} {}", plain(comm))];
    words.extend(stats.text("allocator").map(plain));
    words.extend(
        stats
            .text("version")
            .map(|version| format!("flarena {}", plain(version))),
    );
    words.extend(stats.text("proc").map(plain));
    words.extend(stats.text("site").map(plain));
    words.extend(stats.signed("round").map(|round| format!("round {round}")));
    words.extend(stats.text("stage").map(plain));
    if stats.flag("owner") == Some(false) {
        words.push("another allocator owns malloc".to_owned());
    }
    words.join(", ") + "\n"
}

fn line(page: &mut String, name: &str, value: &str, comment: &str) {
    let text = format!("  {name:<24} {value:>12}  {comment}");
    let _ = writeln!(page, "{}", text.trim_end());
}

fn resident(page: &mut String, stats: &Stats) {
    let size = |name| bytes_or_dash(stats.number(name));
    page.push_str("\nResident\n");
    let peak = stats
        .number("hwm_bytes")
        .map(|peak| format!("highest {}", bytes(peak)));
    line(page, "all", &size("rss_bytes"), &peak.unwrap_or_default());
    line(page, "anonymous", &size("anon_bytes"), "");
    line(page, "file-backed", &size("file_bytes"), "");
    line(page, "swapped out", &size("swap_bytes"), "");
    if let Some(used) = stats.number("cgroup_bytes") {
        let limit = stats
            .number("cgroup_limit_bytes")
            .filter(|limit| *limit > 0);
        let comment = limit.map_or("no limit".to_owned(), |limit| {
            format!(
                "{:.0} % of {}",
                used as f64 * 100.0 / limit as f64,
                bytes(limit)
            )
        });
        line(page, "cgroup", &bytes(used), &comment);
    }
}

fn allocator(page: &mut String, stats: &Stats) {
    let size = |name| bytes_or_dash(stats.number(name));
    page.push_str("\nAllocator\n");
    line(page, "live", &size("live_bytes"), "held by the program");
    line(
        page,
        "retained",
        &size("retained_bytes"),
        "free, still resident",
    );
    line(
        page,
        "recycled",
        &size("recycled_bytes"),
        "free, kept for the next large block",
    );
}

/// Sizes are named `..._bytes`; what else there is stands as it came.
fn group(page: &mut String, name: &str, stats: &Stats) {
    let mut fields = stats.group(name).peekable();
    if fields.peek().is_none() {
        return;
    }
    let mut title = name.to_owned();
    title[..1].make_ascii_uppercase();
    let _ = writeln!(page, "\n{title}");
    for (key, value) in fields {
        let (key, value) = (plain(key), field(key, value));
        line(page, key.strip_suffix("_bytes").unwrap_or(&key), &value, "");
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
            let parts = counts
                .iter()
                .map(|(name, count)| format!("{} {count}", plain(name)));
            parts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"version":"0.1.0","allocator":"jemalloc","owner":true,"proc":"TR",
        "site":"site-1","round":3,"stage":"send","rss_bytes":1073741824,"hwm_bytes":2147483648,
        "live_bytes":536870912,"retained_bytes":1048576,"recycled_bytes":0,
        "cgroup_bytes":4294967296,"cgroup_limit_bytes":8589934592,
        "recycler":{"enabled":true,"cached_bytes":0,"fallbacks":{"mremap_refused":2}},
        "settings":{"FLARENA_DECAY_MS":"300"}}"#;

    #[test]
    fn the_page_says_who_it_is_and_what_it_holds() {
        let page = render("python3", 42, &Stats::parse(LINE).unwrap());
        let first = page.lines().next().unwrap();
        assert_eq!(
            first,
            "42 python3, jemalloc, flarena 0.1.0, TR, site-1, round 3, send"
        );
        for words in [
            "1.0 GB  highest 2.0 GB",
            "512.0 MB  held by",
            "50 % of 8.0 GB",
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
        assert!(
            page.contains("mremap_refused 2") && page.contains("FLARENA_DECAY_MS"),
            "{page}"
        );
    }

    #[test]
    fn an_empty_answer_makes_a_page_of_dashes() {
        let page = render("x\u{1b}", 1, &Stats::parse("{}").unwrap());
        assert!(page.starts_with("1 x?\n") && page.contains('-'), "{page}");
    }
}
