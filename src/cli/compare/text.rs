//! The table, the sentences and the chart. Pure.

use super::model::{Comparison, Metric, Outcome, METRICS};
use crate::report::output::{chart, Grid, Summary};
use crate::report::ChangeVerdict;

/// Of each variant, the chart shows the typical run.
pub fn summary(comparison: &Comparison) -> Summary {
    let line = |outcome: &Outcome| {
        let points = outcome.typical_run()?.series.points();
        Some((outcome.name.clone(), points))
    };
    let lines = comparison.outcomes.iter().filter_map(line).collect();
    let note = "PSS of all processes, in the run of each variant with the median mean size";
    Summary {
        program: "flarena compare",
        heading: "Memory with and without flarena",
        sentence: comparison.title(),
        caption: "PSS of all processes, CPU and elapsed time: mean of the runs, and the change against plain",
        grid: grid(comparison),
        notes: sentences(comparison),
        chart: chart::lines(note.to_owned(), lines),
    }
}

/// The sentence, the table and the notes in Markdown.
pub fn markdown(summary: &Summary) -> String {
    let Grid {
        headings,
        words,
        rows,
    } = &summary.grid;
    let line = |cells: &str| format!("| {} |\n", cells.replace('\n', ", "));
    let numbers = headings.len() - words;
    let mut text = format!("{}\n\n{}", summary.sentence, line(&headings.join(" | ")));
    text += &format!("|{}{}\n", "---|".repeat(*words), "--:|".repeat(numbers));
    text.extend(rows.iter().map(|row| line(&row.join(" | "))));
    text += "\n";
    text.extend(summary.notes.iter().map(|note| format!("- {note}\n")));
    text
}

/// The name and the figures of each variant with a run.
fn grid(comparison: &Comparison) -> Grid {
    let row = |outcome: &Outcome| {
        let figures = METRICS
            .iter()
            .map(|metric| cell(comparison, outcome, metric));
        [outcome.name.clone()].into_iter().chain(figures).collect()
    };
    let measured = comparison
        .outcomes
        .iter()
        .filter(|outcome| !outcome.runs.is_empty());
    let headings = METRICS.iter().map(|metric| metric.heading);
    Grid {
        headings: ["PSS"]
            .into_iter()
            .chain(headings)
            .map(str::to_owned)
            .collect(),
        words: 1,
        rows: measured.map(row).collect(),
    }
}

/// The figure, then half the range of the runs of plain, or the change of another variant, and how certain it is: a part
/// on each line.
fn cell(comparison: &Comparison, outcome: &Outcome, metric: &Metric) -> String {
    let Some(spread) = outcome.spread(metric) else {
        return "-".to_owned();
    };
    let mut parts = vec![(metric.text)(spread.mean)];
    match comparison.change(outcome, metric) {
        Some(change) => {
            parts.push(change.amount());
            parts.extend(change.certainty());
        }
        None if outcome.runs.len() > 1 => parts.push(format!("±{:.0} %", spread.share() * 100.0)),
        None => {}
    }
    parts.join("\n")
}

/// `libjemalloc failed: exit status 1; its output is in logs/libjemalloc-1.log.`
fn failure(outcome: &Outcome) -> Option<String> {
    let failure = outcome.failure.as_ref()?;
    let log = failure.log.as_ref();
    let log = log.map_or_else(String::new, |log| {
        format!("; its output is in {}", log.display())
    });
    Some(format!("{} failed: {}{log}.", outcome.name, failure.status))
}

/// One sentence for each mode of flarena against plain and against each other allocator, and how to
/// read the table.
fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut sentences: Vec<String> = comparison.outcomes.iter().filter_map(failure).collect();
    let has_runs = |outcome: &&Outcome| !outcome.runs.is_empty();
    let flarena = comparison
        .outcomes
        .iter()
        .filter(|o| o.is_flarena())
        .filter(has_runs);
    for new in flarena {
        let others = comparison.outcomes.iter().filter(|o| !o.is_flarena());
        for base in others.filter(has_runs) {
            sentences.push(sentence(base, new));
        }
    }
    sentences.extend(comparison.disturbance());
    sentences.push(match comparison.runs {
        1 => "One run does not show which differences are noise: use --runs 3.".to_owned(),
        _ => {
            "Below plain: half the range of its runs. Below the others: the change against plain, \
             and its 95 % interval, unless that includes no change: then it is not certain."
                .to_owned()
        }
    });
    sentences
}

fn sentence(base: &Outcome, new: &Outcome) -> String {
    let (mut parts, mut uncertain, mut equal) = (Vec::new(), Vec::new(), Vec::new());
    for metric in &METRICS {
        let name = metric.name;
        let Some(change) = new.change_from(base, metric) else {
            continue;
        };
        let percent = change.percent().abs();
        match change.verdict {
            ChangeVerdict::WithinNoise if percent < 1.0 => equal.push(name),
            ChangeVerdict::WithinNoise => uncertain.push(format!("{name} {}", change)),
            _ if change.ratio < 1.0 => parts.push(format!("{percent:.0} % less {name}")),
            _ => parts.push(format!("{percent:.0} % more {name}")),
        }
    }
    let joined = |list: Vec<_>| (!list.is_empty()).then(|| list.join(", "));
    let equal =
        (!equal.is_empty()).then(|| format!("no difference beyond noise in {}", equal.join(", ")));
    let all = joined(parts).into_iter().chain(uncertain).chain(equal);
    let all: Vec<String> = all.collect();
    format!("{} against {}: {}.", new.name, base.name, all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::model::fixtures::{comparison, outcome};
    use super::super::model::{Failure, PLAIN};
    use super::*;

    fn example() -> Comparison {
        comparison(vec![
            outcome(PLAIN, &[800.0, 810.0, 790.0]),
            outcome("libjemalloc", &[805.0, 815.0, 795.0]),
            outcome("flarena glibc", &[400.0, 405.0, 395.0]),
        ])
    }

    #[test]
    fn each_variant_has_its_figures_and_the_change_below() {
        let text = grid(&example()).text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("plain") && lines[1].contains("800.0 MB"),
            "{text}"
        );
        assert!(lines[2].contains("±1 %"), "{text}");
        assert!(
            lines[4].contains("  +1 %") && lines[5].contains(" not certain"),
            "{text}"
        );
        assert!(
            lines[7].contains("  -50 %") && lines[8].contains("  ±1 %"),
            "{text}"
        );
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn the_sentences_name_differences_and_noise_against_each_other_variant() {
        let all = sentences(&example());
        assert!(all[0].starts_with("flarena glibc against plain: 50 % less memory at the peak"));
        assert!(
            all[0].contains("no difference beyond noise in CPU time"),
            "{all:?}"
        );
        assert!(all[1].starts_with("flarena glibc against libjemalloc: "));
        assert!(all[2].starts_with("Below plain: half the range of its runs. Below the others: "));
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn the_markdown_has_a_table_with_changes_and_the_sentences() {
        let text = markdown(&summary(&example()));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "| PSS | PEAK | MEAN | IDLE | CPU | TIME |");
        assert!(
            lines[4].starts_with("| plain | 800.0 MB, ±1 % | "),
            "{text}"
        );
        assert!(
            lines[6].starts_with("| flarena glibc | 400.0 MB, -50 %, ±1 % | "),
            "{text}"
        );
        assert!(lines[8].starts_with("- flarena glibc against plain: 50 % less"));
    }

    #[test]
    fn runs_beside_other_busy_programs_are_named() {
        let mut all = example();
        assert_eq!(all.disturbance(), None);
        all.outcomes[1].runs[2].load_of_others = Some(0.3);
        let text = sentences(&all).join("\n");
        assert!(
            text.contains("In 1 of 9 runs other programs used more than 20 % of the CPUs"),
            "{text}"
        );
        all.outcomes[1].runs[2].wall_s = 0.1;
        assert_eq!(all.disturbance(), None);
    }

    #[test]
    fn an_uncertain_change_is_called_so_in_table_and_sentence() {
        let all = comparison(vec![
            outcome(PLAIN, &[800.0, 300.0, 790.0]),
            outcome("flarena glibc", &[400.0, 205.0, 395.0]),
        ]);
        let text = grid(&all).text();
        let below: Vec<&str> = text.lines().skip(4).map(str::trim).collect();
        assert!(
            below[0].starts_with("-45 %") && below[1].starts_with("not certain"),
            "{text}"
        );
        let sentence = &sentences(&all)[0];
        let uncertain =
            "memory at the peak -45 %, not certain; memory on average -45 %, not certain; ";
        assert!(sentence.contains(uncertain), "{sentence}");
    }

    #[test]
    fn a_failed_variant_has_its_status_and_its_log() {
        let mut failed = outcome("libjemalloc", &[]);
        failed.failure = Some(Failure {
            status: "exit status 3".to_owned(),
            log: Some("logs/libjemalloc-1.log".into()),
        });
        assert_eq!(
            sentences(&comparison(vec![outcome(PLAIN, &[1.0]), failed]))[0],
            "libjemalloc failed: exit status 3; its output is in logs/libjemalloc-1.log."
        );
    }

    #[test]
    fn after_one_run_the_change_has_no_interval() {
        let mut one = comparison(vec![
            outcome(PLAIN, &[100.0]),
            outcome("flarena glibc", &[50.0]),
        ]);
        one.runs = 1;
        assert!(grid(&one).text().contains(" -50 %"));
        assert!(sentences(&one).last().unwrap().contains("--runs 3"));
    }

    #[test]
    fn the_page_escapes_names_and_has_table_and_chart() {
        let mut all = comparison(vec![outcome(PLAIN, &[100.0])]);
        all.command = "<b>.py".to_owned();
        let summary = summary(&all);
        let page = summary.page();
        assert!(
            page.contains("&lt;b&gt;.py") && !page.contains("<b>.py"),
            "{page}"
        );
        assert!(page.contains("<th scope=\"row\">plain</th>") && page.contains("</svg>"));
        assert!(summary.chart.picture("").starts_with("<svg "));
    }
}
