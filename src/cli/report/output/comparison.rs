//! Shows the comparison of two runs: a table on a terminal, or JSON.

use comfy_table::Table;
use serde_json::{json, Value};

use super::{ListLength, DETAILED_PROCESSES};
use crate::output::{align_right, fill, render, table, terminal_width};
use crate::report::analyse::stats::{Interval, Slope};
use crate::report::analyse::{
    Comparison, Pair, ProcessComparison, SiteComparison, SiteSum, StageSizes,
};
use crate::report::explain::{self, percent};
use crate::report::model::Unit;
use crate::report::units::{or_dash, printable, signed_size, size, time_unit};

const JSON_VERSION: u32 = 1;

pub fn print(compared: &Comparison, length: ListLength) -> String {
    let width = terminal_width().map_or(usize::MAX, usize::from);
    let sentence = printable(&explain::comparison(compared));
    let mut text = fill(sentence.split(' '), width).join("\n") + "\n\n";
    text += &sites(&compared.sites);
    let (detailed, more) = length.split(&compared.sites, DETAILED_PROCESSES);
    for site in detailed {
        for process in &site.processes {
            text += &format!("\n{}\n", heading(site, process));
            text += &stages(process);
        }
    }
    if more > 0 {
        text += &format!("\nStages of {more} more sites: use --all or --json\n");
    }
    text
}

/// `site-1 TR: retention before, flat after`
fn heading(site: &SiteComparison, process: &ProcessComparison) -> String {
    let verdict = |verdict: Option<crate::report::analyse::Verdict>| {
        verdict.map_or("not there", |verdict| verdict.name())
    };
    let Pair { before, after } = &process.verdicts;
    let name = printable(&format!("{} {}", site.site, process.name));
    format!(
        "{name}: {} before, {} after",
        verdict(*before),
        verdict(*after)
    )
}

fn narrow(mut table: Table) -> String {
    align_right(&mut table, 2..5);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 1));
    });
    render(&table)
}

fn sites(sites: &[SiteComparison]) -> String {
    let mut table = table(["SITE", "SUM", "BEFORE", "AFTER", "CHANGE"]);
    for site in sites {
        let Pair { before, after } = site.sum;
        type Row = (&'static str, fn(SiteSum) -> f64, fn(f64) -> String);
        let rows: [Row; 3] = [
            ("peak", |sum| sum.peak, size),
            ("mean", |sum| sum.mean, size),
            ("CPU time", |sum| sum.cpu_seconds, seconds),
        ];
        for (i, (name, of, format)) in rows.into_iter().enumerate() {
            let known = |sum: Option<SiteSum>| sum.map(of).filter(|value| !value.is_nan());
            let [before, after] = [known(before), known(after)];
            // Markers of older versions have no CPU time.
            if i == 2 && before.or(after).is_none() {
                continue;
            }
            let site = if i == 0 {
                printable(&site.site)
            } else {
                String::new()
            };
            let change = or_dash(before.zip(after), |(b, a)| {
                format!("{:+.1} %", percent(b, a))
            });
            table.add_row([
                site,
                name.to_owned(),
                or_dash(before, format),
                or_dash(after, format),
                change,
            ]);
        }
    }
    narrow(table)
}

/// `64.2 s`, `12.5 min`
fn seconds(seconds: f64) -> String {
    let (length, unit) = time_unit(seconds);
    format!("{:.1} {unit}", seconds / length)
}

fn stages(process: &ProcessComparison) -> String {
    let mut table = table([
        "  STAGE",
        "RSS",
        "BEFORE (95 %)",
        "AFTER (95 %)",
        "CHANGE (95 %)",
    ]);
    for stage in &process.stages {
        let Pair { before, after } = &stage.sizes;
        let (before, after) = (before.as_ref(), after.as_ref());
        let cell = |of: fn(&StageSizes) -> String| [before, after].map(|side| or_dash(side, of));
        let both = before.zip(after);
        let unit = both
            .or(before.zip(before))
            .or(after.zip(after))
            .map_or(Unit::Round, |(_, b)| b.unit);
        let rows = [
            (
                "mean".to_owned(),
                cell(|s| interval(&s.mean)),
                or_dash(both, |(b, a)| change(&b.mean, &a.mean)),
            ),
            (
                "peak".to_owned(),
                cell(|s| size(s.peak)),
                or_dash(both, |(b, a)| format!("{:+.1} %", percent(b.peak, a.peak))),
            ),
            (
                format!("per {unit}"),
                cell(|s| or_dash(s.growth.as_ref(), growth)),
                String::new(),
            ),
        ];
        for (i, (name, [before, after], change)) in rows.into_iter().enumerate() {
            let stage = if i == 0 {
                format!("  {}", printable(&stage.stage))
            } else {
                String::new()
            };
            table.add_row([stage, name, before, after, change]);
        }
    }
    narrow(table)
}

/// `733.1 MB ±2.10 MB`
fn interval(mean: &Interval) -> String {
    match mean.low.is_nan() {
        true => size(mean.value),
        false => format!(
            "{} \u{b1}{}",
            size(mean.value),
            size(mean.high - mean.value)
        ),
    }
}

/// `+2.00 MB ±0.10 MB`
fn growth(slope: &Slope) -> String {
    let half = (slope.high - slope.low) / 2.0;
    format!("{} \u{b1}{}", signed_size(slope.per_x), size(half))
}

/// `-16.5 % ±0.6`: the difference of the means, in per cent of the mean before.
fn change(before: &Interval, after: &Interval) -> String {
    let change = format!("{:+.1} %", percent(before.value, after.value));
    let half = f64::hypot(before.high - before.value, after.high - after.value);
    match half.is_nan() {
        true => change,
        false => format!("{change} \u{b1}{:.1}", 100.0 * half / before.value),
    }
}

/// The comparison with sizes in bytes, and null for unknown values.
pub fn json(compared: &Comparison) -> Value {
    let sites: Vec<Value> = compared.sites.iter().map(site).collect();
    json!({
        "version": JSON_VERSION,
        "sentence": explain::comparison(compared),
        "peak_bytes": pair(&compared.whole, |run| json!(run.peak)),
        "mean_bytes": pair(&compared.whole, |run| json!(run.mean)),
        "cpu_seconds": pair(&compared.whole, |run| json!(run.cpu_seconds)),
        "rounds": pair(&compared.whole, |run| json!(run.rounds)),
        "growing": pair(&compared.whole, |run| json!(run.growing.iter().map(|(name, ..)| name).collect::<Vec<_>>())),
        "sites": sites,
    })
}

fn site(site: &SiteComparison) -> Value {
    let process = |process: &ProcessComparison| {
        let stage = |stage: &crate::report::analyse::StageComparison| json!({ "stage": stage.stage, "sizes": pair(&stage.sizes, stage_sizes) });
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

fn pair<T>(pair: &Pair<T>, of: impl Fn(&T) -> Value) -> Value {
    json!({ "before": pair.before.as_ref().map(&of), "after": pair.after.as_ref().map(&of) })
}
