//! Shows the comparison of two runs: a table on a terminal or a page, or JSON.

use std::path::PathBuf;

use maud::html;
use serde_json::{json, Value};

use super::chart::{self, Line};
use super::grid::Grid;
use super::{html, lines, ListLength, DETAILED_PROCESSES};
use crate::report::analyse::stats::{Change, Interval, Slope};
use crate::report::analyse::{
    Comparison, Pair, ProcessReport, SiteComparison, StageComparison, Together,
};
use crate::report::explain;
use crate::report::units::{or_dash, printable, signed_size, size, time_unit};

/// The comparison with sizes in bytes, and null for unknown values.
pub fn json(compared: &Comparison) -> Value {
    let mut value = json!(compared);
    value["version"] = json!(1);
    value["sentence"] = json!(explain::comparison(compared));
    value
}

/// The sites and processes that changed, and the names of those that did not.
fn changes(compared: &Comparison, length: ListLength) -> (Grid, Vec<String>) {
    let (mut changed, mut equal) = (Vec::new(), Vec::new());
    for site in &compared.sites {
        let mut rows = Vec::new();
        for process in &site.processes {
            let name = format!("{} {}", site.site, process.name);
            if process.is_equal() && matches!(length, ListLength::Short) {
                equal.push(printable(&name));
                continue;
            }
            let verdicts = process.verdicts.clone();
            rows.push(row(&name, "verdict", verdicts, str::to_owned, None));
            rows.extend(
                process
                    .stages
                    .iter()
                    .flat_map(|stage| stage_rows(&name, stage)),
            );
        }
        changed.extend((!rows.is_empty()).then(|| [site_rows(site), rows].concat()));
    }
    let (shown, more) = length.split(&changed, DETAILED_PROCESSES);
    let more = (more > 0).then(|| format!("{more} more sites changed: use --all or --json"));
    let equal = listed(&equal).map(|names| format!("No difference beyond noise: {names}."));
    let grid = Grid {
        words: &["SITE OR PROCESS", "FIGURE"],
        numbers: vec!["BEFORE", "AFTER", "CHANGE"],
        rows: shown.concat(),
    };
    (grid, more.into_iter().chain(equal).collect())
}

/// The first names, and the number of the others.
fn listed(names: &[String]) -> Option<String> {
    /// More names are counted.
    const MAX_NAMED: usize = 3;
    let named = names[..names.len().min(MAX_NAMED)].join("; ");
    match names.len() {
        0 => None,
        n if n <= MAX_NAMED => Some(named),
        n => Some(format!("{named}; and {} more", n - MAX_NAMED)),
    }
}

/// The sentence, a table of the sites and processes that changed, and the names of those that did not.
pub fn print(compared: &Comparison, length: ListLength) -> String {
    let (grid, notes) = changes(compared, length);
    let mut text = lines(&printable(&explain::comparison(compared)), "", "");
    if !grid.rows.is_empty() {
        text += &format!("\n{}", grid.text());
    }
    let notes = notes
        .iter()
        .map(|note| format!("\n{}", lines(note, "", "")));
    text + &notes.collect::<String>()
}

/// The same, and both runs over time.
pub fn page(compared: &Comparison, [before, after]: [&PathBuf; 2], length: ListLength) -> String {
    let (grid, notes) = changes(compared, length);
    let line = |(name, reports): (&str, &[ProcessReport])| {
        let all = Together::of(reports)?;
        let moments = all.moments.iter();
        Some(Line {
            name: name.to_owned(),
            points: moments
                .map(|moment| (moment.t - all.start, moment.total))
                .collect(),
        })
    };
    let runs = ["before", "after"].into_iter().zip(compared.runs);
    let chart = chart::lines(
        "Memory over time",
        "all processes",
        runs.filter_map(line).collect(),
    );
    let caption = "Memory and CPU time before and after; the process that changed most comes first";
    let body = html! {
        header {
            h1 { "Memory before and after" }
            p { "before: " (before.display()) ", after: " (after.display()) }
        }
        main {
            section {
                p.evidence { (explain::comparison(compared)) }
                (chart.figure())
            }
            section {
                (grid.page("changes", caption))
                @for note in &notes { p.evidence { (note) } }
            }
        }
    };
    html::document("flarena report", &body)
}

/// Name, figure, before, after, change.
type Row = Vec<String>;

fn row<T>(
    name: &str,
    figure: &str,
    values: Pair<T>,
    format: impl Fn(T) -> String,
    change: Option<Change>,
) -> Row {
    vec![
        printable(name),
        printable(figure),
        or_dash(values.before, &format),
        or_dash(values.after, &format),
        change.map_or(String::new(), |change| change.to_string()),
    ]
}

/// Two values without intervals.
fn values(name: &str, figure: &str, pair: &Pair<f64>, format: fn(f64) -> String) -> Row {
    let change = pair.before.zip(pair.after);
    let change = change.and_then(|(before, after)| Change::of_values(before, after));
    row(name, figure, pair.clone(), format, change)
}

fn site_rows(site: &SiteComparison) -> Vec<Row> {
    let (name, sums) = (&site.site, &site.sums);
    let mut rows = vec![
        values(name, "peak", &sums.peak_bytes, size),
        values(name, "mean", &sums.mean_bytes, size),
    ];
    // Markers of older versions have no CPU time.
    let has_cpu = sums.cpu_seconds.known().next().is_some();
    rows.extend(has_cpu.then(|| values(name, "CPU time", &sums.cpu_seconds, seconds)));
    rows
}

/// `64.2 s`, `12.5 min`
fn seconds(seconds: f64) -> String {
    let (length, unit) = time_unit(seconds);
    format!("{:.1} {unit}", seconds / length)
}

fn stage_rows(process: &str, compared: &StageComparison) -> [Row; 3] {
    let StageComparison { stage, sizes } = compared;
    let unit = sizes.known().last().map_or("round", |sizes| sizes.unit);
    [
        row(
            process,
            &format!("{stage} mean"),
            sizes.map(|s| Some(s.mean)),
            interval,
            compared.change(),
        ),
        values(
            process,
            &format!("{stage} peak"),
            &sizes.map(|s| Some(s.peak)),
            size,
        ),
        row(
            process,
            &format!("{stage} per {unit}"),
            sizes.map(|s| s.growth),
            growth,
            None,
        ),
    ]
}

/// `733.1 MB ±2.10 MB`
fn interval(mean: Interval) -> String {
    match mean.low.is_nan() {
        true => size(mean.value),
        false => format!("{} ±{}", size(mean.value), size(mean.high - mean.value)),
    }
}

/// `+2.00 MB ±0.10 MB`
fn growth(slope: Slope) -> String {
    let half = (slope.high - slope.low) / 2.0;
    format!("{} ±{}", signed_size(slope.per_x), size(half))
}
