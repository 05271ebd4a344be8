//! A file for node_exporter's textfile collector: the last state of each process and its verdict.

use std::fmt::Write;

use crate::report::analyse::finding::Verdict;
use crate::report::analyse::{ProcessReport, StageReport};
use crate::report::model::Size;

type Label = (&'static str, String);

/// One series of a gauge: its extra label and its value.
type Sample = (Option<Label>, f64);

pub fn metrics(reports: &[ProcessReport]) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, of: &dyn Fn(&ProcessReport) -> Vec<Sample>| {
        let mut heading = format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
        for report in reports {
            for (label, value) in of(report).into_iter().filter(|(_, value)| !value.is_nan()) {
                text += &std::mem::take(&mut heading);
                let mut labels = labels(report);
                labels.extend(label);
                let _ = writeln!(text, "{name}{{{}}} {value}", label_list(&labels));
            }
        }
    };
    let one = |value: f64| vec![(None, value)];
    gauge("flarena_last_rss_bytes", "RSS at the last marker.", &|r| {
        one(r.last_rss)
    });
    gauge("flarena_peak_rss_bytes", "Highest RSS seen.", &|r| {
        one(r.process.hwm)
    });
    gauge(
        "flarena_typical_live_bytes",
        "Median of the bytes that malloc had handed out, after the warm-up.",
        &|r| one(r.finding.typical[Size::Live]),
    );
    gauge(
        "flarena_typical_retained_bytes",
        "Median of the resident bytes that the allocator held without use, after the warm-up.",
        &|r| one(r.finding.typical.held_back()),
    );
    gauge(
        "flarena_cgroup_limit_bytes",
        "Memory limit of the cgroup.",
        &|r| one(r.process.limit),
    );
    gauge(
        "flarena_limit_reached_seconds",
        "Seconds until the memory limit is reached, where the verdict is growth.",
        &|r| one(r.reach.as_ref().map_or(f64::NAN, |reach| reach.seconds)),
    );
    gauge(
        "flarena_last_marker_time_seconds",
        "Unix time of the last marker: what has ended, or marks no more, gets old.",
        &|r| one(r.process.last_time()),
    );
    gauge("flarena_rounds", "Rounds that were seen.", &|r| {
        one(r.finding.rounds as f64)
    });
    gauge(
        "flarena_growth_bytes_per_round",
        "Growth per round where the verdict is growth, else 0.",
        &|r| one(r.growth().map_or(0.0, |slope| slope.per_x)),
    );
    gauge(
        "flarena_verdict",
        "1 for the verdict on the process, 0 for the others.",
        &verdicts,
    );
    gauge(
        "flarena_stage_peak_rss_bytes",
        "Highest RSS at a stage.",
        &stages,
    );
    text
}

fn verdicts(report: &ProcessReport) -> Vec<Sample> {
    let one = |verdict: Verdict| {
        let name = verdict.name().replace([' ', '-'], "_");
        let is = f64::from(u8::from(report.finding.verdict == verdict));
        (Some(("verdict", name)), is)
    };
    Verdict::all().map(one).collect()
}

fn stages(report: &ProcessReport) -> Vec<Sample> {
    let one = |stage: &StageReport| (Some(("stage", stage.stage.clone())), stage.peak);
    report.stages.iter().map(one).collect()
}

/// What tells processes apart: two series with the same labels would spoil the whole file.
fn labels(report: &ProcessReport) -> Vec<Label> {
    let process = &report.process;
    let mut labels = vec![("site", process.site()), ("proc", report.proc())];
    labels.extend(process.pid.map(|pid| ("pid", pid.to_string())));
    labels.extend(process.start.map(|start| ("start", start.to_string())));
    labels.extend(process.log.clone().map(|log| ("log", log)));
    labels
}

fn label_list(labels: &[Label]) -> String {
    let one = |(name, value): &Label| format!("{name}=\"{}\"", escaped(value));
    labels.iter().map(one).collect::<Vec<_>>().join(",")
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_as_the_format_demands() {
        let labels = vec![("site", "a\"b\\c\nd".to_owned())];
        assert_eq!(label_list(&labels), r#"site="a\"b\\c\nd""#);
    }
}
