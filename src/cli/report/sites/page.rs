//! Sites on the HTML page: what they hold over the rounds, stacked, and each stack on demand.

use std::fmt::Write;

use super::growth::{trends, SiteTrend};
use crate::report::chart::{escaped, stacked, Layer};
use crate::report::model::{History, Round};
use crate::report::units::{change, size};

/// Layers of the chart; the others are one.
const LAYERS: usize = 6;
const FRAMES: usize = 2;

/// The section of one process; empty without records.
pub fn section(history: &History, name: &str, id: &str) -> String {
    let trends = trends(history);
    if trends.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<section class=\"sites\" aria-labelledby=\"{id}\">\n<h3 id=\"{id}\">Which lines hold it</h3>"
    );
    if history.rounds().len() > 1 {
        let rounds: Vec<f64> = history.rounds().keys().map(|round| *round as f64).collect();
        let title = format!("{name}: live large blocks by the line that allocated them");
        let chart = stacked(
            &format!("{id}-chart"),
            &title,
            &rounds,
            &layers(history, &trends),
        );
        let _ = write!(out, "<figure>\n{chart}</figure>\n");
    }
    for (place, one) in trends.iter().enumerate().take(2 * LAYERS) {
        row(&mut out, history, one, place);
    }
    out + "</section>\n"
}

fn layers(history: &History, trends: &[SiteTrend]) -> Vec<Layer> {
    let mut drawn: Vec<&SiteTrend> = trends.iter().collect();
    drawn.sort_by_key(|one| std::cmp::Reverse(one.last_bytes.max(one.first_bytes)));
    let (own, others) = drawn.split_at(drawn.len().min(LAYERS));
    let sum = |sites: &[&SiteTrend], rest: bool| -> Vec<f64> {
        let held = |round: &Round| {
            let bytes = |one: &&SiteTrend| round.sites.get(&one.site).map_or(0, |held| held.bytes);
            sites.iter().map(bytes).sum::<u64>() + if rest { round.rest_bytes } else { 0 }
        };
        history
            .rounds()
            .values()
            .map(|round| held(round) as f64)
            .collect()
    };
    let mut layers: Vec<Layer> = own
        .iter()
        .map(|one| Layer {
            name: history.headline(one.site, 1),
            values: sum(&[one], false),
        })
        .collect();
    let rest = Layer {
        name: "others".to_owned(),
        values: sum(others, true),
    };
    if rest.values.iter().any(|bytes| *bytes > 0.0) {
        layers.push(rest);
    }
    layers
}

fn row(out: &mut String, history: &History, one: &SiteTrend, place: usize) {
    let growth = one.bytes_per_round().map_or(String::new(), |bytes| {
        format!(", {} per round", change(bytes))
    });
    let age = one.oldest.map_or(String::new(), |rounds| {
        format!(", the oldest held {rounds} rounds")
    });
    let open = if place == 0 && one.grows() {
        " open"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "<details{open}><summary><b>{}</b>: {}{growth}{age}</summary>\n<ol class=\"stack\">",
        escaped(&history.headline(one.site, FRAMES)),
        size(one.last_bytes as f64),
    );
    for frame in history
        .stack(one.site)
        .into_iter()
        .flat_map(|stack| &stack.frames)
    {
        let text = format!("{}:{} in {}", frame.0, frame.1, frame.2);
        let _ = writeln!(out, "<li>{}</li>", escaped(&text));
    }
    *out += "</ol></details>\n";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::held_tests::growing as history;

    #[test]
    fn the_section_has_a_chart_and_the_whole_stack() {
        let section = section(
            &history(&[1, 2, 3, 4, 5, 6].map(|n| n << 26)),
            "TR <1>",
            "p0-sites",
        );
        for part in [
            "<svg",
            "</svg>",
            "<details open>",
            "/x/fedavg.py:351 in FedAvg.aggregate",
            "TR &lt;1&gt;",
        ] {
            assert!(section.contains(part), "{part}: {section}");
        }
        assert!(!section.contains("NaN"));
        assert_eq!(super::section(&History::default(), "x", "y"), "");
    }
}
