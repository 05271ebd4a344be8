//! Writes a file for node_exporter's textfile collector: the last state of each process, and its
//! verdict.

use std::fmt::Write;

use crate::report::analyse::{ProcessReport, StageReport, Verdict};
use crate::report::model::Size;

type Label = (&'static str, String);

/// One series of a gauge: a label beside those of the process, and the value.
type Sample = (Option<Label>, f64);

/// Name, help and series.
type Gauge = (
    &'static str,
    &'static str,
    fn(&ProcessReport) -> Vec<Sample>,
);

const GAUGES: [Gauge; 11] = [
    ("flarena_last_rss_bytes", "RSS at the last marker.", |r| {
        one(r.last_rss)
    }),
    ("flarena_peak_rss_bytes", "Highest RSS seen.", |r| {
        one(r.process.peak_rss)
    }),
    (
        "flarena_typical_live_bytes",
        "Median of the bytes allocated with malloc and not freed, after the warm-up.",
        |r| one(r.finding.typical[Size::Live]),
    ),
    (
        "flarena_typical_retained_bytes",
        "Median of the resident free bytes that the allocator kept, after the warm-up.",
        |r| one(r.finding.typical.kept_free()),
    ),
    (
        "flarena_cgroup_limit_bytes",
        "Memory limit of the cgroup.",
        |r| one(r.process.cgroup_limit),
    ),
    (
        "flarena_limit_reached_seconds",
        "Seconds until the memory limit is reached, for a process that grows.",
        |r| one(r.time_to_limit.as_ref().map_or(f64::NAN, |t| t.seconds)),
    ),
    (
        "flarena_last_marker_time_seconds",
        "Unix time of the last marker. It does not change after the process ends.",
        |r| one(r.process.last_time()),
    ),
    ("flarena_rounds", "Number of rounds seen.", |r| {
        one(r.finding.rounds as f64)
    }),
    (
        "flarena_growth_bytes_per_round",
        "Growth per round of a process that grows, else 0.",
        |r| one(r.growth().map_or(0.0, |slope| slope.per_x)),
    ),
    (
        "flarena_verdict",
        "1 for the verdict on the process, 0 for the others.",
        verdicts,
    ),
    (
        "flarena_stage_peak_rss_bytes",
        "Highest RSS at a stage.",
        stages,
    ),
];

pub fn metrics(reports: &[ProcessReport]) -> String {
    GAUGES.iter().map(|gauge| lines(gauge, reports)).collect()
}

/// The gauge with all known values; empty if there is none.
fn lines((name, help, samples): &Gauge, reports: &[ProcessReport]) -> String {
    let mut text = String::new();
    for report in reports {
        let known = samples(report)
            .into_iter()
            .filter(|(_, value)| !value.is_nan());
        for (label, value) in known {
            let mut labels = process_labels(report);
            labels.extend(label);
            let _ = writeln!(text, "{name}{{{}}} {value}", label_list(&labels));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("# HELP {name} {help}\n# TYPE {name} gauge\n{text}"),
    }
}

fn one(value: f64) -> Vec<Sample> {
    vec![(None, value)]
}

fn verdicts(report: &ProcessReport) -> Vec<Sample> {
    let sample = |verdict: Verdict| {
        let name = verdict.name().replace([' ', '-'], "_");
        let value = f64::from(u8::from(report.finding.verdict == verdict));
        (Some(("verdict", name)), value)
    };
    Verdict::all().map(sample).collect()
}

fn stages(report: &ProcessReport) -> Vec<Sample> {
    let sample = |stage: &StageReport| (Some(("stage", stage.stage.clone())), stage.peak);
    report.stages.iter().map(sample).collect()
}

/// The labels that identify a process. Two series with equal labels would make the file invalid.
fn process_labels(report: &ProcessReport) -> Vec<Label> {
    let process = &report.process;
    let mut labels = vec![
        ("site", process.site_names()),
        ("proc", report.process_name()),
    ];
    labels.extend(process.name.clone().map(|name| ("name", name)));
    labels.extend(process.host.clone().map(|host| ("host", host)));
    labels.extend(process.pid.map(|pid| ("pid", pid.to_string())));
    labels.extend(process.start.map(|start| ("start", start.to_string())));
    labels.extend(process.log.clone().map(|log| ("log", log)));
    labels
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
