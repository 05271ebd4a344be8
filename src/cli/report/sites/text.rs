//! Sites in words, as a table, and for programs.

use serde_json::{json, Value};

use super::growth::{growing, swinging, trends, SiteTrend};
use crate::output::{self, align_right, render};
use crate::report::analyse::finding::Verdict;
use crate::report::explain::phrases::plural;
use crate::report::model::History;
use crate::report::units::{change, known, printable, size};

/// Sites of a table.
const MOST_ROWS: usize = 8;
const FRAMES: usize = 3;

/// `+128.0 MB per round, held 4 rounds: fedavg.py:351 in aggregate <- run.py:2 in <module>`, for the site
/// that grows most.
fn sentence(history: &History) -> Option<String> {
    let trend = growing(history)?;
    let bytes = change(trend.bytes_per_round()?);
    let place = held_at(history, &trend, "held");
    Some(format!("{bytes} per round{place}"))
}

/// `, held 4 rounds: fedavg.py:351 in aggregate <- ...`
fn held_at(history: &History, trend: &SiteTrend, held: &str) -> String {
    let age = trend.oldest.map_or(String::new(), |rounds| {
        format!(", {held} {}", plural(rounds, "round"))
    });
    let place = printable(&history.headline(trend.site, FRAMES));
    format!("{age}: {place}")
}

/// The line whose memory the verdict is about: what grows, or what waits for a collection.
pub fn guilty(history: &History, verdict: Verdict) -> Option<String> {
    match verdict {
        Verdict::CyclicGarbage => garbage(history).or_else(|| sentence(history)),
        _ => sentence(history),
    }
}

/// `falls by 256.0 MB, held up to 7 rounds: fedavg.py:351 in aggregate <- ...`, for the site whose blocks wait
/// for a garbage collection.
fn garbage(history: &History) -> Option<String> {
    let (trend, bytes) = swinging(history)?;
    let place = held_at(history, &trend, "held up to");
    Some(format!("falls by {}{place}", size(bytes as f64)))
}

/// The sites that grow or hold most; empty without records.
pub fn table(history: &History) -> String {
    let trends = trends(history);
    if trends.is_empty() {
        return String::new();
    }
    let (growth, place) = ("GROWTH/ROUND", "ALLOCATED AT");
    let mut rows = output::table([
        "SITE", "FIRST", "LAST", "BLOCKS", "OLDEST", "MEDIAN", growth, place,
    ]);
    let age = |rounds: Option<i64>| known(rounds, |rounds| rounds.to_string());
    for one in trends.iter().take(MOST_ROWS) {
        rows.add_row([
            one.site.to_string(),
            size(one.first_bytes as f64),
            size(one.last_bytes as f64),
            one.blocks.to_string(),
            age(one.oldest),
            age(one.median),
            known(one.bytes_per_round(), change),
            printable(&history.headline(one.site, FRAMES)),
        ]);
    }
    align_right(&mut rows, 0..7);
    render(&rows)
}

/// Every site, with its whole stack.
pub fn json(history: &History) -> Value {
    let told = |one: &SiteTrend| {
        let stack = history.stack(one.site);
        json!({
            "site": one.site,
            "first_bytes": one.first_bytes,
            "last_bytes": one.last_bytes,
            "bytes_per_round": one.bytes_per_round(),
            "bytes_per_round_low": one.slope.map(|slope| slope.low),
            "bytes_per_round_high": one.slope.map(|slope| slope.high),
            "blocks": one.blocks,
            "oldest_rounds": one.oldest,
            "median_rounds": one.median,
            "allocated_at": history.headline(one.site, FRAMES),
            "frames": stack.map(|stack| &stack.frames),
            "thread": stack.and_then(|stack| stack.thread.as_deref()),
            "library": stack.and_then(|stack| stack.library.as_deref()),
        })
    };
    trends(history).iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::held_tests::{growing as history, in_two_sites};

    #[test]
    fn the_sentence_names_the_line_that_grows() {
        let eight = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| (n * 128) << 20);
        assert_eq!(
            sentence(&history(&eight)).as_deref(),
            Some("+128.0 MB per round, held 7 rounds: fedavg.py:351 in aggregate <- run.py:2 in <module>")
        );
        assert_eq!(sentence(&history(&[1 << 20; 8])), None);
    }

    /// Seen: one line in two rows, each with half of its growth.
    #[test]
    fn a_line_with_two_sites_has_one_row_and_its_whole_growth() {
        let eight = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| (n * 128) << 20);
        let history = in_two_sites(&eight, false);
        assert_eq!(table(&history).lines().count(), 2, "{}", table(&history));
        let sentence = sentence(&history).unwrap();
        assert!(sentence.starts_with("+128.0 MB per round"), "{sentence}");
    }

    #[test]
    fn garbage_is_named_by_the_line_that_falls() {
        assert_eq!(
            garbage(&history(&[1, 2, 4, 6, 1, 3, 5].map(|n| n << 20))).as_deref(),
            Some("falls by 5.00 MB, held up to 6 rounds: fedavg.py:351 in aggregate <- run.py:2 in <module>")
        );
    }

    #[test]
    fn the_table_has_a_row_for_each_site() {
        let text = table(&history(&[5 << 20; 6]));
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("fedavg.py:351 in aggregate"), "{text}");
        assert_eq!(table(&History::default()), "");
    }
}
