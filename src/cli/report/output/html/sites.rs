//! The allocation sites of a process on the page, each with its stack to unfold.

use maud::{html, Markup};

use crate::report::model::SiteHistory;
use crate::report::sites::{trends, SiteTrend};
use crate::report::units::{plural, signed_size, size};

const MAX_SITES: usize = 12;
const FRAMES: usize = 2;

/// The section of one process; empty without records of allocation sites.
pub fn section(history: &SiteHistory) -> Markup {
    let trends = trends(history);
    html! {
        @if !trends.is_empty() {
            section.sites {
                h3 { "Allocation sites" }
                @for (place, one) in trends.iter().enumerate().take(MAX_SITES) {
                    details open[place == 0 && one.is_growing()] {
                        summary { b { (history.headline(one.site, FRAMES)) } ": " (amounts(one)) }
                        ol.stack {
                            @for frame in history.stack(one.site).iter().flat_map(|stack| &stack.frames) {
                                li { (frame.0) ":" (frame.1) " in " (frame.2) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `384.0 MB ± 3.00 MB, +64.0 MB per round, the oldest held 5 rounds`
fn amounts(one: &SiteTrend) -> String {
    let mut text = size(one.last_bytes as f64);
    if one.error > 0 {
        text += &format!(" ± {}", size(one.error as f64));
    }
    if let Some(bytes) = one.bytes_per_round() {
        text += &format!(", {} per round", signed_size(bytes));
    }
    if let Some(rounds) = one.oldest {
        text += &format!(", the oldest held {}", plural(rounds, "round"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::site_history_tests::{growing as history, growing_with_error};

    #[test]
    fn the_section_has_whole_stacks() {
        let history = history(&[1, 2, 3, 4, 5, 6].map(|n| n << 26));
        let section = section(&history).into_string();
        for part in ["<details open>", "/x/fedavg.py:351 in FedAvg.aggregate"] {
            assert!(section.contains(part), "{part}: {section}");
        }
        assert!(!section.contains("NaN"));
        assert_eq!(super::section(&SiteHistory::default()).into_string(), "");
    }

    #[test]
    fn an_estimate_has_its_standard_error() {
        let history = growing_with_error(&[1, 2, 3, 4, 5, 6].map(|n| n << 26), 3 << 20);
        let section = section(&history).into_string();
        assert!(section.contains(": 384.0 MB ± 3.00 MB, +"), "{section}");
    }
}
