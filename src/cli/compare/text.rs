//! The table, the sentences and the chart on a terminal. Pure.

use super::model::{Comparison, Metric, Outcome};
use crate::output::wrap;
use crate::report::ChangeVerdict;

const NAME_WIDTH: usize = 18;
const CELL_WIDTH: usize = 12;
/// Rows of one variant in the chart.
const BAND_ROWS: usize = 2;
pub const CHARTED_RUN: &str = "Of each variant: the run with the median mean size";
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The figures of each variant, and below them the change against plain.
pub fn table(comparison: &Comparison) -> String {
    let mut text = row("PSS", Metric::ALL.map(|metric| metric.heading().to_owned()));
    for outcome in &comparison.outcomes {
        if !outcome.runs.is_empty() {
            let figure = |metric: Metric| {
                let spread = outcome.spread(metric);
                spread.map_or("-".to_owned(), |spread| metric.text(spread.mean))
            };
            text += &row(&outcome.name, Metric::ALL.map(figure));
            text += &below(comparison, outcome);
        }
        if let Some(failure) = &outcome.failure {
            let log = failure.log.as_ref();
            let log = log.map_or_else(String::new, |log| format!("; {}", log.display()));
            text += &format!(
                "{:<NAME_WIDTH$}failed: {}{log}\n",
                outcome.name, failure.status
            );
        }
    }
    text
}

/// The spread of plain, or two lines: the change of another variant, and how certain it is.
fn below(comparison: &Comparison, outcome: &Outcome) -> String {
    let plain = comparison.plain();
    let line = |cell: &dyn Fn(Metric) -> Option<String>| {
        row(
            "",
            Metric::ALL.map(|metric| cell(metric).unwrap_or_default()),
        )
    };
    let changed = |metric| comparison.change(outcome, metric);
    match (outcome.name == plain.name, outcome.runs.len() < 2) {
        (true, true) => String::new(),
        (true, false) => line(&|metric| {
            let spread = outcome.spread(metric)?;
            Some(format!("±{:.0} %", spread.share() * 100.0))
        }),
        (false, true) => line(&|metric| changed(metric).map(|change| change.amount())),
        (false, false) => {
            line(&|metric| changed(metric).map(|change| change.amount()))
                + &line(&|metric| changed(metric).and_then(|change| change.certainty()))
        }
    }
}

fn row(name: &str, cells: [String; 5]) -> String {
    let cells: String = cells
        .iter()
        .map(|cell| format!("{cell:>CELL_WIDTH$}"))
        .collect();
    format!("{name:<NAME_WIDTH$}{cells}").trim_end().to_owned() + "\n"
}

/// One sentence for each mode of flarena against plain and against each other allocator, and how to
/// read the table.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut sentences = Vec::new();
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
    for (metric, name) in Metric::ALL.into_iter().zip([
        "memory at the peak",
        "memory on average",
        "memory when idle",
        "CPU time",
        "elapsed time",
    ]) {
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

/// A band of block characters for each variant, all with the same scales.
pub fn chart(comparison: &Comparison, width: usize) -> String {
    let columns = width.saturating_sub(NAME_WIDTH).max(10);
    let typical = comparison.outcomes.iter().filter_map(|outcome| {
        let run = outcome.typical_run()?;
        Some((outcome.name.as_str(), run.series.points()))
    });
    let typical: Vec<(&str, Vec<(f64, f64)>)> = typical.collect();
    let points = || typical.iter().flat_map(|(_, points)| points);
    let end = points().map(|point| point.0).fold(0.0, f64::max);
    let highest = points().map(|point| point.1).fold(1.0, f64::max);
    let mut text = String::new();
    for (name, points) in &typical {
        let heights = heights(points, end, highest, columns);
        for row in (0..BAND_ROWS).rev() {
            let label = if row == BAND_ROWS - 1 { *name } else { "" };
            let cell = |height: &usize| EIGHTHS[height.saturating_sub(row * 8).min(8)];
            let cells: String = heights.iter().map(cell).collect();
            text += format!("{label:<NAME_WIDTH$}{cells}").trim_end();
            text.push('\n');
        }
    }
    let (scale, end) = (Metric::Peak.text(highest), Metric::Time.text(end));
    text + &format!(
        "{:NAME_WIDTH$}0 s to {end}; a full band is {scale}\n{:NAME_WIDTH$}{CHARTED_RUN}\n",
        "", ""
    )
}

/// The highest value in each column, in eighths of a row.
fn heights(points: &[(f64, f64)], end: f64, highest: f64, columns: usize) -> Vec<usize> {
    let column = |at: f64| ((at / end.max(1e-9) * columns as f64) as usize).min(columns - 1);
    let mut heights = vec![None; columns];
    for (at, value) in points {
        let height = (value / highest * (8 * BAND_ROWS) as f64).round() as usize;
        let cell: &mut Option<usize> = &mut heights[column(*at)];
        *cell = Some(cell.unwrap_or(0).max(height));
    }
    // A column without a sample continues the one before, up to the last sample.
    let last = points.last().map_or(0, |point| column(point.0));
    let mut before = 0;
    let filled = heights.iter().enumerate().map(|(i, height)| {
        before = height.unwrap_or(if i <= last { before } else { 0 });
        before
    });
    filled.collect()
}

/// Title, table and sentences in Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let head = Metric::ALL.map(|metric| metric.heading().to_owned());
    let mut text = format!("{}\n\n", comparison.title());
    text += &line([vec!["PSS".to_owned()], head.to_vec()].concat());
    text += &format!("|---|{}\n", "--:|".repeat(Metric::ALL.len()));
    for outcome in &comparison.outcomes {
        let cell = |metric: Metric| {
            let Some(spread) = outcome.spread(metric) else {
                return "-".to_owned();
            };
            match comparison.change(outcome, metric) {
                Some(change) => format!("{} ({})", metric.text(spread.mean), change),
                None => metric.text(spread.mean),
            }
        };
        let cells = match &outcome.failure {
            Some(failure) if outcome.runs.is_empty() => {
                vec![format!("failed: {}", failure.status)]
            }
            _ => Metric::ALL.map(cell).to_vec(),
        };
        text += &line([vec![outcome.name.clone()], cells].concat());
    }
    text.push('\n');
    for sentence in sentences(comparison) {
        text += &format!("- {sentence}\n");
    }
    text
}

/// The whole page: title, table, sentences, chart.
pub fn page(comparison: &Comparison, width: usize) -> String {
    let mut page = comparison.title() + "\n" + &table(comparison) + "\n";
    for sentence in sentences(comparison) {
        page += &(wrap(&sentence, Some(width)).join("\n") + "\n");
    }
    page + "\n" + &chart(comparison, width)
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
        let text = table(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("plain") && lines[1].contains("800.0 MB"),
            "{text}"
        );
        assert!(lines[2].contains("±1 %"), "{text}");
        assert!(
            lines[4].contains("   +1 %") && lines[5].contains(" not certain"),
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
        let text = markdown(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "| PSS | PEAK | MEAN | IDLE | CPU | TIME |");
        assert!(lines[4].starts_with("| plain | 800.0 MB | "), "{text}");
        assert!(
            lines[6].starts_with("| flarena glibc | 400.0 MB (-50 %, ±1 %) | "),
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
        let text = table(&all);
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
        let text = table(&comparison(vec![outcome(PLAIN, &[1.0]), failed]));
        assert!(
            text.ends_with("failed: exit status 3; logs/libjemalloc-1.log\n"),
            "{text}"
        );
    }

    #[test]
    fn all_bands_have_the_same_scale() {
        let text = chart(&example(), 80);
        let rows: Vec<&str> = text.lines().collect();
        assert!(
            rows[0].starts_with("plain") && rows[0].ends_with('█'),
            "{text}"
        );
        // Half the size fills the lower row only.
        assert!(!rows[4].contains('█') && rows[5].ends_with('█'), "{text}");
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{text}");
    }

    #[test]
    fn after_one_run_the_change_has_no_interval() {
        let mut one = comparison(vec![
            outcome(PLAIN, &[100.0]),
            outcome("flarena glibc", &[50.0]),
        ]);
        one.runs = 1;
        assert!(table(&one).contains(" -50 %"));
        assert!(sentences(&one).last().unwrap().contains("--runs 3"));
    }
}
