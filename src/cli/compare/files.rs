//! The comparison as JSON, as a picture and as an HTML page. Pure.

use std::fmt::Write;

use serde_json::{json, Map, Value};

use super::model::{Comparison, Metric, Outcome};
use super::text;
use crate::report::output::chart::{self, escaped, Line};
use crate::report::output::html;

pub fn json(comparison: &Comparison) -> Value {
    let outcomes = comparison.outcomes.iter();
    let variants: Vec<Value> = outcomes
        .map(|outcome| variant(comparison, outcome))
        .collect();
    json!({
        "version": flarena_shared::VERSION,
        "command": comparison.command,
        "cpus": comparison.cpus,
        "variants": variants,
    })
}

fn variant(comparison: &Comparison, outcome: &Outcome) -> Value {
    let runs = outcome.runs.iter().map(|run| {
        let figures =
            Metric::ALL.map(|metric| (metric.key().to_owned(), run.figure(metric).into()));
        let mut figures: Map<String, Value> = figures.into_iter().collect();
        figures.insert("foreign_cpu_share".to_owned(), run.load_of_others.into());
        figures.insert("pss".to_owned(), json!(run.series.points()));
        Value::Object(figures)
    });
    let runs: Vec<Value> = runs.collect();
    let figures = Metric::ALL.map(|metric| {
        let change = outcome.change_from(comparison.plain(), metric);
        let figure = json!({"spread": outcome.spread(metric), "against_plain": change});
        (metric.key().to_owned(), figure)
    });
    let failure = outcome.failure.as_ref();
    json!({
        "name": outcome.name,
        "library": outcome.library,
        "failure": failure.map(|failure| json!({"status": failure.status, "log": failure.log})),
        "figures": Map::from_iter(figures),
        "runs": runs,
    })
}

fn lines(comparison: &Comparison) -> Vec<Line<'_>> {
    let line = |outcome: &'_ Outcome| outcome.typical_run().map(|run| run.series.points());
    let outcomes = comparison.outcomes.iter();
    outcomes
        .filter_map(|outcome| {
            Some(Line {
                name: &outcome.name,
                points: line(outcome)?,
            })
        })
        .collect()
}

pub fn picture(comparison: &Comparison) -> String {
    chart::lines_picture(&comparison.command, &lines(comparison))
}

pub fn page(comparison: &Comparison) -> String {
    let mut out = html::start("flarena compare");
    let _ = write!(
        out,
        "<header>\n<h1>Memory with and without flarena\
         </h1>\n<p>{}</p>\n</header>\n<main>\n<section>\n<div class=\"wide\" tabindex=\"0\">\n<table>\n<caption>PSS of all processes, CPU \
         and elapsed time: mean of the runs, their range, and the change against plain</caption>\n\
         <thead><tr><th scope=\"col\">Variant</th>",
        escaped(&comparison.title()),
    );
    for metric in Metric::ALL {
        let _ = write!(
            out,
            "<th scope=\"col\" class=\"n\">{}</th>",
            metric.heading()
        );
    }
    out += "</tr></thead>\n<tbody>\n";
    for outcome in &comparison.outcomes {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escaped(&outcome.name));
        match &outcome.failure {
            Some(failure) if outcome.runs.is_empty() => {
                let _ = write!(
                    out,
                    "<td colspan=\"5\">failed: {}</td>",
                    escaped(&failure.status)
                );
            }
            _ => out += &cells(comparison, outcome),
        }
        out += "</tr>\n";
    }
    out += "</tbody>\n</table>\n</div>\n</section>\n<section>\n";
    for sentence in text::sentences(comparison) {
        let _ = writeln!(out, "<p class=\"evidence\">{}</p>", escaped(&sentence));
    }
    let chart = chart::lines("memory", "Memory over time", &lines(comparison));
    let _ = write!(
        out,
        "<figure>\n{chart}</figure>\n<p>{}</p>\n</section>\n</main>\n</body>\n</html>\n",
        text::CHARTED_RUN
    );
    out
}

fn cells(comparison: &Comparison, outcome: &Outcome) -> String {
    let cell = |metric: Metric| {
        let Some(spread) = outcome.spread(metric) else {
            return "<td class=\"n\">-</td>".to_owned();
        };
        let mut text = metric.text(spread.mean);
        if outcome.runs.len() > 1 {
            let (min, max) = (metric.text(spread.min), metric.text(spread.max));
            let _ = write!(text, "<br>{min} to {max}");
        }
        if let Some(change) = comparison.change(outcome, metric) {
            let _ = write!(text, "<br>{}", text::change(&change));
        }
        format!("<td class=\"n\">{text}</td>")
    };
    Metric::ALL.map(cell).concat()
}

#[cfg(test)]
mod tests {
    use super::super::model::fixtures::{comparison, outcome};
    use super::super::model::PLAIN;
    use super::*;

    #[test]
    fn the_json_has_figures_ratios_and_samples_of_each_variant() {
        let all = comparison(vec![
            outcome(PLAIN, &[100.0, 102.0]),
            outcome("flarena glibc", &[50.0, 51.0]),
        ]);
        let json = json(&all);
        let flarena = &json["variants"][1];
        assert_eq!(flarena["runs"][0]["peak_pss_bytes"], 50.0 * 1_048_576.0);
        assert_eq!(
            flarena["figures"]["peak_pss_bytes"]["against_plain"]["verdict"],
            "less"
        );
        assert_eq!(flarena["runs"][0]["pss"].as_array().unwrap().len(), 21);
    }

    #[test]
    fn the_page_escapes_names_and_has_table_and_chart() {
        let mut all = comparison(vec![outcome(PLAIN, &[100.0])]);
        all.command = "<b>.py".to_owned();
        let page = page(&all);
        assert!(
            page.contains("&lt;b&gt;.py") && !page.contains("<b>.py"),
            "{page}"
        );
        assert!(page.contains("<th scope=\"row\">plain</th>") && page.contains("</svg>"));
        assert!(picture(&all).starts_with("<svg "));
    }
}
