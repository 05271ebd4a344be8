//! The allocation sites of a process on the page: a stacked chart, and each stack to unfold.

use std::fmt::Write;

use flarena_shared::sites::Frame;

use crate::report::model::{RoundHoldings, SiteHistory};
use crate::report::output::chart::{escaped, stacked, Layer};
use crate::report::sites::{trends, SiteTrend};
use crate::report::units::{plural, signed_size, size};

/// Layers of the chart. All other sites form one more layer.
const LAYERS: usize = 6;
const FRAMES: usize = 2;

/// The section of one process; empty without records of allocation sites.
pub fn section(history: &SiteHistory, name: &str, id: &str) -> String {
    let trends = trends(history);
    if trends.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<section class=\"sites\" aria-labelledby=\"{id}\">\n<h3 id=\"{id}\">Allocation sites</h3>"
    );
    if history.rounds().len() > 1 {
        let rounds: Vec<f64> = history.rounds().keys().map(|round| *round as f64).collect();
        let title = format!("{name}: live blocks by the line that allocated them");
        let (id, layers) = (format!("{id}-chart"), layers(history, &trends));
        let chart = stacked(&id, &title, &rounds, &layers);
        let _ = write!(out, "<figure>\n{chart}</figure>\n");
    }
    for (place, one) in trends.iter().enumerate().take(2 * LAYERS) {
        row(&mut out, history, one, place);
    }
    out + "</section>\n"
}

fn layers(history: &SiteHistory, trends: &[SiteTrend]) -> Vec<Layer> {
    let mut drawn: Vec<&SiteTrend> = trends.iter().collect();
    drawn.sort_by_key(|one| std::cmp::Reverse(one.last_bytes.max(one.first_bytes)));
    let (own, others) = drawn.split_at(drawn.len().min(LAYERS));
    let per_round = |bytes: &dyn Fn(&RoundHoldings) -> u64| -> Vec<f64> {
        let rounds = history.rounds().values();
        rounds.map(|round| bytes(round) as f64).collect()
    };
    let layer = |one: &&SiteTrend| Layer {
        name: history.headline(one.site, 1),
        values: per_round(&|round| round.bytes(one.site)),
    };
    let mut layers: Vec<Layer> = own.iter().map(layer).collect();
    let rest = Layer {
        name: "others".to_owned(),
        values: per_round(&|round| {
            let bytes = others.iter().map(|one| round.bytes(one.site));
            bytes.fold(round.rest_bytes, u64::saturating_add)
        }),
    };
    if rest.values.iter().any(|bytes| *bytes > 0.0) {
        layers.push(rest);
    }
    layers
}

fn row(out: &mut String, history: &SiteHistory, one: &SiteTrend, place: usize) {
    let growth = one.bytes_per_round().map_or(String::new(), |bytes| {
        format!(", {} per round", signed_size(bytes))
    });
    let error = match one.error {
        0 => String::new(),
        error => format!(" ± {}", size(error as f64)),
    };
    let age = one.oldest.map_or(String::new(), |rounds| {
        format!(", the oldest held {}", plural(rounds, "round"))
    });
    let is_open = place == 0 && one.is_growing();
    let open = if is_open { " open" } else { "" };
    let _ = writeln!(
        out,
        "<details{open}><summary><b>{}</b>: {}{error}{growth}{age}</summary>\n<ol class=\"stack\">",
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
    use crate::report::model::site_history_tests::{growing as history, growing_with_error};

    #[test]
    fn the_section_has_a_chart_and_whole_stacks() {
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
        assert_eq!(super::section(&SiteHistory::default(), "x", "y"), "");
    }

    #[test]
    fn an_estimate_has_its_standard_error() {
        let history = growing_with_error(&[1, 2, 3, 4, 5, 6].map(|n| n << 26), 3 << 20);
        let section = section(&history, "TR", "p0-sites");
        assert!(section.contains(": 384.0 MB ± 3.00 MB, +"), "{section}");
    }
}
