//! Writes a file for node_exporter's textfile collector: the last state of each process, and its
//! verdict.

use std::fmt::Write;

use crate::report::analyse::{ProcessReport, StageReport, Verdict};
use crate::report::model::Size;

type Label = (&'static str, String);

/// Name, help and value of a gauge with one series for each process. NaN is unknown.
type Gauge = (&'static str, &'static str, fn(&ProcessReport) -> f64);

const GAUGES: [Gauge; 9] = [
    ("flarena_last_rss_bytes", "RSS at the last marker.", |r| {
        r.last_rss
    }),
    ("flarena_peak_rss_bytes", "Highest RSS seen.", |r| {
        r.process.peak_rss
    }),
    (
        "flarena_typical_live_bytes",
        "Median of the bytes allocated with malloc and not freed, after the warm-up.",
        |r| r.finding.typical[Size::Live],
    ),
    (
        "flarena_typical_retained_bytes",
        "Median of the resident free bytes that the allocator kept, after the warm-up.",
        |r| r.finding.typical.kept_free(),
    ),
    (
        "flarena_cgroup_limit_bytes",
        "Memory limit of the cgroup.",
        |r| r.process.cgroup_limit,
    ),
    (
        "flarena_limit_reached_seconds",
        "Seconds until the memory limit is reached, for a process that grows.",
        |r| r.time_to_limit.as_ref().map_or(f64::NAN, |t| t.seconds),
    ),
    (
        "flarena_last_marker_time_seconds",
        "Unix time of the last marker. It does not change after the process ends.",
        |r| r.process.last_time(),
    ),
    ("flarena_rounds", "Number of rounds seen.", |r| {
        r.finding.rounds as f64
    }),
    (
        "flarena_growth_bytes_per_round",
        "Growth per round of a process that grows, else 0.",
        |r| r.growth().map_or(0.0, |slope| slope.per_x),
    ),
];

pub fn metrics(reports: &[ProcessReport]) -> String {
    let mut text = String::new();
    for (name, help, value) in GAUGES {
        text += &gauge(name, help, reports, |report| vec![(None, value(report))]);
    }
    let help = "1 for the verdict on the process, 0 for the others.";
    text += &gauge("flarena_verdict", help, reports, |report| {
        let value = |verdict| f64::from(u8::from(report.finding.verdict == verdict));
        let name = |verdict: Verdict| verdict.name().replace([' ', '-'], "_");
        let verdicts = Verdict::all();
        verdicts
            .map(|v| (Some(("verdict", name(v))), value(v)))
            .collect()
    });
    let help = "Highest RSS at a stage.";
    text += &gauge("flarena_stage_peak_rss_bytes", help, reports, |report| {
        let label = |stage: &StageReport| Some(("stage", stage.stage.clone()));
        let stages = report.stages.iter();
        stages.map(|stage| (label(stage), stage.peak)).collect()
    });
    text
}

/// A gauge with all known values; empty if there is none. A series has a label beside those of the process.
fn gauge(
    name: &str,
    help: &str,
    reports: &[ProcessReport],
    series: impl Fn(&ProcessReport) -> Vec<(Option<Label>, f64)>,
) -> String {
    let mut text = String::new();
    for report in reports {
        for (label, value) in series(report) {
            if !value.is_nan() {
                let labels = [process_labels(report), label.into_iter().collect()].concat();
                let _ = writeln!(text, "{name}{{{}}} {value}", label_list(&labels));
            }
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("# HELP {name} {help}\n# TYPE {name} gauge\n{text}"),
    }
}

/// The labels that identify a process. Two series with equal labels would make the file invalid.
fn process_labels(report: &ProcessReport) -> Vec<Label> {
    let process = &report.process;
    let known = [
        ("site", Some(process.site_names())),
        ("proc", Some(report.process_name())),
        ("name", process.name.clone()),
        ("host", process.host.clone()),
        ("pid", process.pid.map(|pid| pid.to_string())),
        ("start", process.start.map(|start| start.to_string())),
        ("log", process.log.clone()),
    ];
    let label = |(name, value): (&'static str, Option<String>)| Some((name, value?));
    known.into_iter().filter_map(label).collect()
}

fn label_list(labels: &[Label]) -> String {
    let label = |(name, value): &Label| format!("{name}=\"{}\"", escaped(value));
    labels.iter().map(label).collect::<Vec<_>>().join(",")
}

/// A control character becomes the text `\\x1b`, so that two names stay different.
fn escaped(value: &str) -> String {
    let escape = |c: char| match c {
        '\\' | '"' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        c if c.is_control() => format!("\\\\x{:02x}", u32::from(c)),
        c => c.to_string(),
    };
    value.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{analyse, processes, sample, sizes};
    use crate::report::model::Sample;

    #[test]
    fn quotes_backslashes_and_control_characters_in_labels_are_escaped() {
        let labels = vec![("site", "a\"b\\c\nd\x1b\u{9b}\0".to_owned())];
        assert_eq!(label_list(&labels), r#"site="a\"b\\c\nd\\x1b\\x9b\\x00""#);
    }

    #[test]
    fn labels_have_the_name_and_the_host_of_the_process() {
        let sample = Sample {
            name: Some("ray".into()),
            host: Some("node\u{1b}".into()),
            ..sample(0, sizes(&[(Size::Rss, 100.0)]))
        };
        let text = metrics(&analyse(processes([sample])));
        let line = text.lines().find(|line| line.contains("last_rss_bytes{"));
        let line = line.unwrap_or_default();
        assert!(
            line.contains(r#"proc="TR ray",name="ray",host="node\\x1b""#),
            "{text}"
        );
    }
}
