//! Shows the comparison of two runs: a table on a terminal, or JSON.

use serde_json::{json, Value};

use super::{lines, narrow, ListLength, DETAILED_PROCESSES};
use crate::output::table;
use crate::report::analyse::stats::{Change, Interval, Slope};
use crate::report::analyse::{
    Comparison, Pair, ProcessComparison, SiteComparison, StageComparison, StageSizes, Sum, Verdict,
};
use crate::report::explain::{self, listed};
use crate::report::units::{or_dash, printable, signed_size, size, time_unit};

const JSON_VERSION: u32 = 1;

/// The sentence, a table of the sites and processes that changed, and the names of those that did not.
pub fn print(compared: &Comparison, length: ListLength) -> String {
    let (mut sites, mut equal): (Vec<(&SiteComparison, Vec<&ProcessComparison>)>, _) =
        (Vec::new(), Vec::new());
    for site in &compared.sites {
        let is_shown = |process: &&ProcessComparison| {
            matches!(length, ListLength::Full) || !process.is_equal()
        };
        let (shown, hidden): (Vec<_>, Vec<_>) = site.processes.iter().partition(is_shown);
        equal.extend(
            hidden
                .iter()
                .map(|process| printable(&format!("{} {}", site.site, process.name))),
        );
        sites.extend((!shown.is_empty()).then_some((site, shown)));
    }
    let (detailed, more) = length.split(&sites, DETAILED_PROCESSES);
    let mut text = lines(&printable(&explain::comparison(compared)), "", "");
    if !detailed.is_empty() {
        text += &format!("\n{}", changes(detailed));
    }
    if more > 0 {
        text += &format!("\n{more} more sites changed: use --all or --json\n");
    }
    if let Some(names) = listed(&equal) {
        text += &format!(
            "\n{}",
            lines(&format!("No difference beyond noise: {names}."), "", "")
        );
    }
    text
}

fn changes(sites: &[(&SiteComparison, Vec<&ProcessComparison>)]) -> String {
    let mut table = table(["SITE OR PROCESS", "FIGURE", "BEFORE", "AFTER", "CHANGE"]);
    for (site, processes) in sites {
        let sum = |of: fn(&Sum) -> f64| site.sum.each_ref().map(|sum| sum.as_ref().map(of));
        table.add_row(values(&site.site, "peak", sum(|sum| sum.peak), size));
        table.add_row(values("", "mean", sum(|sum| sum.mean), size));
        // Markers of older versions have no CPU time.
        let cpu = sum(|sum| sum.cpu_seconds);
        if cpu.iter().flatten().any(|seconds| !seconds.is_nan()) {
            table.add_row(values("", "CPU time", cpu, seconds));
        }
        for process in processes {
            let name = format!("{} {}", site.site, process.name);
            let verdict = |verdict: Verdict| verdict.name().to_owned();
            table.add_row(row(&name, "verdict", process.verdicts, verdict, None));
            for stage in &process.stages {
                stage_rows(stage).into_iter().for_each(|cells| {
                    table.add_row(cells);
                });
            }
        }
    }
    narrow(table, 2..5)
}

type Row = [String; 5];

fn row<T>(
    name: &str,
    figure: &str,
    [before, after]: Pair<T>,
    format: impl Fn(T) -> String,
    change: Option<Change>,
) -> Row {
    [
        printable(name),
        printable(figure),
        or_dash(before, &format),
        or_dash(after, &format),
        change.map_or(String::new(), |change| change.to_string()),
    ]
}

/// Two values without intervals.
fn values(name: &str, figure: &str, pair: Pair<f64>, format: fn(f64) -> String) -> Row {
    let pair = pair.map(|value| value.filter(|value| !value.is_nan()));
    let change = pair[0]
        .zip(pair[1])
        .and_then(|(before, after)| Change::of_values(before, after));
    row(name, figure, pair, format, change)
}

/// `64.2 s`, `12.5 min`
fn seconds(seconds: f64) -> String {
    let (length, unit) = time_unit(seconds);
    format!("{:.1} {unit}", seconds / length)
}

fn stage_rows(stage: &StageComparison) -> [Row; 3] {
    let name = &stage.stage;
    let sizes = || stage.sizes.each_ref().map(Option::as_ref);
    let peaks = sizes().map(|sizes| sizes.map(|sizes| sizes.peak));
    let unit = sizes()
        .iter()
        .flatten()
        .last()
        .map_or("round", |sizes| sizes.unit.name());
    let growths = sizes().map(|sizes| sizes?.growth.as_ref());
    [
        row(
            "",
            &format!("{name} mean"),
            sizes(),
            |sizes| interval(&sizes.mean),
            stage.change(),
        ),
        values("", &format!("{name} peak"), peaks, size),
        row("", &format!("{name} per {unit}"), growths, growth, None),
    ]
}

/// `733.1 MB ±2.10 MB`
fn interval(mean: &Interval) -> String {
    match mean.low.is_nan() {
        true => size(mean.value),
        false => format!("{} ±{}", size(mean.value), size(mean.high - mean.value)),
    }
}

/// `+2.00 MB ±0.10 MB`
fn growth(slope: &Slope) -> String {
    let half = (slope.high - slope.low) / 2.0;
    format!("{} ±{}", signed_size(slope.per_x), size(half))
}

/// The comparison with sizes in bytes, and null for unknown values.
pub fn json(compared: &Comparison) -> Value {
    let sites: Vec<Value> = compared.sites.iter().map(site).collect();
    json!({
        "version": JSON_VERSION,
        "sentence": explain::comparison(compared),
        "peak_bytes": pair(&compared.whole, |run| json!(run.sum.peak)),
        "mean_bytes": pair(&compared.whole, |run| json!(run.sum.mean)),
        "cpu_seconds": pair(&compared.whole, |run| json!(run.sum.cpu_seconds)),
        "rounds": pair(&compared.whole, |run| json!(run.rounds)),
        "growing": pair(&compared.whole, |run| json!(run.growing.iter().map(|(name, ..)| name).collect::<Vec<_>>())),
        "sites": sites,
    })
}

fn site(site: &SiteComparison) -> Value {
    let process = |process: &ProcessComparison| {
        let stage = |stage: &StageComparison| json!({ "stage": stage.stage, "sizes": pair(&stage.sizes, stage_sizes) });
        json!({
            "proc": process.name,
            "verdict": pair(&process.verdicts, |verdict| json!(verdict.name())),
            "stages": process.stages.iter().map(stage).collect::<Vec<_>>(),
        })
    };
    json!({
        "site": site.site,
        "peak_bytes": pair(&site.sum, |sum| json!(sum.peak)),
        "mean_bytes": pair(&site.sum, |sum| json!(sum.mean)),
        "cpu_seconds": pair(&site.sum, |sum| json!(sum.cpu_seconds)),
        "processes": site.processes.iter().map(process).collect::<Vec<_>>(),
    })
}

fn stage_sizes(sizes: &StageSizes) -> Value {
    let Interval { value, low, high } = sizes.mean;
    json!({
        "rounds": sizes.rounds,
        "mean_bytes": { "value": value, "low_95": low, "high_95": high },
        "peak_bytes": sizes.peak,
        "unit": sizes.unit.name(),
        "growth": sizes.growth.as_ref().map(|slope| json!({
            "bytes_per_unit": slope.per_x, "low_95": slope.low, "high_95": slope.high,
        })),
    })
}

fn pair<T>([before, after]: &Pair<T>, of: impl Fn(&T) -> Value) -> Value {
    json!({ "before": before.as_ref().map(&of), "after": after.as_ref().map(&of) })
}
