//! Sites on the HTML page: what they hold over the rounds, stacked, and each stack on demand.

use std::fmt::Write;

use flarena_shared::sites::Frame;

use super::growth::{trends, SiteTrend};
use crate::report::explain::phrases::plural;
use crate::report::model::{History, Round};
use crate::report::output::chart::{escaped, stacked, Layer};
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
        let (id, layers) = (format!("{id}-chart"), layers(history, &trends));
        let chart = stacked(&id, &title, &rounds, &layers);
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
            let rest = if rest { round.rest_bytes } else { 0 };
            let own = sites.iter().map(|one| round.bytes(one.site));
            own.fold(rest, u64::saturating_add) as f64
        };
        history.rounds().values().map(held).collect()
    };
    let layer = |one: &&SiteTrend| Layer {
        name: history.headline(one.site, 1),
        values: sum(&[one], false),
    };
    let mut layers: Vec<Layer> = own.iter().map(layer).collect();
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
        format!(", the oldest held {}", plural(rounds, "round"))
    });
    let is_open = place == 0 && one.grows();
    let open = if is_open { " open" } else { "" };
    let _ = writeln!(
        out,
        "<details{open}><summary><b>{}</b>: {}{growth}{age}</summary>\n<ol class=\"stack\">",
        escaped(&history.headline(one.site, FRAMES)),
        size(one.last_bytes as f64),
    );
    let stack = history.stack(one.site).into_iter();
    for Frame(file, line, function) in stack.flat_map(|stack| &stack.frames) {
        let text = format!("{file}:{line} in {function}");
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
        let history = history(&[1, 2, 3, 4, 5, 6].map(|n| n << 26));
        let section = section(&history, "TR <1>", "p0-sites");
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
