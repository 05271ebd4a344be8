//! Writes a file for node_exporter's textfile collector: the last state of each process, and its
//! verdict.

use std::fmt::Write;

use crate::report::analyse::{Finding, Verdict};
use crate::report::model::{Size, Unit};

type Label = (&'static str, String);

/// The values of a gauge for one process, each with a label beside those of the process.
type Series = Vec<(Option<Label>, f64)>;

/// A gauge from each row: its name, its help, and its values.
macro_rules! gauges {
    ($($name:ident: $help:literal, $series:expr;)*) => {
        [$((stringify!($name), $help, $series)),*]
    };
}

type Gauge = (&'static str, &'static str, fn(&Finding) -> Series);

const GAUGES: [Gauge; 11] = gauges! {
    flarena_last_rss_bytes: "RSS at the last marker.", |r| one(r.process.last_rss());
    flarena_peak_rss_bytes: "Highest RSS seen.", |r| one(Some(r.process.peak_rss));
    flarena_typical_live_bytes: "Median of the bytes allocated with malloc and not freed, after the warm-up.",
        |r| one(r.typical.get(Size::Live));
    flarena_typical_retained_bytes: "Median of the resident free bytes that the allocator kept, after the warm-up.",
        |r| one(r.typical.kept_free());
    flarena_cgroup_limit_bytes: "Memory limit of the cgroup.", |r| one(r.process.cgroup_limit);
    flarena_limit_reached_seconds: "Seconds until the memory limit is reached, if the process or its control group grows.",
        |r| one(r.time_to_limit().map(|t| t.seconds));
    flarena_last_marker_time_seconds: "Unix time of the last marker. It does not change after the process ends.",
        |r| one(r.process.last_time());
    flarena_rounds: "Number of rounds seen.", |r| one(Some(r.series.rounds as f64));
    flarena_growth_bytes_per_round: "Growth per round of a process with rounds that grows, else 0.",
        |r| one((r.unit == Unit::Round).then(|| r.growth().map_or(0.0, |slope| slope.value)));
    flarena_verdict: "1 for the verdict on the process, 0 for the others.", verdicts;
    flarena_stage_peak_rss_bytes: "Highest RSS at a stage.", stages;
};

fn one(value: Option<f64>) -> Series {
    value.map(|value| (None, value)).into_iter().collect()
}

fn verdicts(finding: &Finding) -> Series {
    let value = |verdict: Verdict| {
        let name = verdict.name().replace([' ', '-'], "_");
        let is_given = finding.verdict == verdict;
        (Some(("verdict", name)), f64::from(u8::from(is_given)))
    };
    Verdict::all().map(value).collect()
}

fn stages(finding: &Finding) -> Series {
    let stages = finding.process.stages.iter();
    let peaks = stages.map(|one| (Some(("stage", one.stage.to_string())), one.peak_rss()));
    peaks.collect()
}

/// The gauges that have a value.
pub fn metrics(findings: &[Finding]) -> String {
    let mut text = String::new();
    for (name, help, series) in GAUGES {
        let mut head = format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
        for finding in findings {
            for (label, value) in series(finding) {
                let (head, labels) = (std::mem::take(&mut head), labels(finding, label));
                let _ = writeln!(text, "{head}{name}{{{labels}}} {value}");
            }
        }
    }
    text
}

/// The labels that identify a process, and one more. Two series with equal labels would make the file invalid.
fn labels(finding: &Finding, more: Option<Label>) -> String {
    let process = finding.process;
    let known = [
        ("site", Some(process.site_names())),
        ("proc", Some(process.process_name())),
        ("name", process.name.clone()),
        ("host", process.host.clone()),
        ("pid", process.pid.map(|pid| pid.to_string())),
        ("start", process.start.map(|start| start.to_string())),
        // Micro-VMs of one image may have equal names, pids and starts; an exec keeps them.
        ("boot", process.boot.map(String::from)),
        ("program", process.program.clone()),
        ("log", process.log.clone()),
    ];
    let more = more.map(|(name, value)| (name, Some(value)));
    let label =
        |(name, value): (&str, Option<String>)| Some(format!("{name}=\"{}\"", escaped(&value?)));
    let labels = known.into_iter().chain(more).filter_map(label);
    labels.collect::<Vec<String>>().join(",")
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
    use flarena_shared::marker::{Marker, ShortHash};
    use std::collections::HashSet;

    #[test]
    fn quotes_backslashes_and_control_characters_in_labels_are_escaped() {
        let value = escaped("a\"b\\c\nd\x1b\u{9b}\0");
        assert_eq!(value, r#"a\"b\\c\nd\\x1b\\x9b\\x00"#);
    }

    #[test]
    fn no_two_series_have_equal_labels() {
        let marker = |boot: u32, program: &str, t: f64, stage: &str| Marker {
            boot: Some(ShortHash(boot)),
            program: Some(program.into()),
            t: Some(t),
            stage: stage.to_owned(),
            ..sample(usize::from(stage == "send"), sizes(&[(Size::Rss, 100.0)]))
        };
        let of_boot = |boot| {
            let rows = [
                ("a.py", 0.0, "load"),
                ("a.py", 1.0, "send"),
                ("b.py", 2.0, "load"),
            ];
            rows.map(|(program, t, stage)| marker(boot, program, t, stage))
        };
        let processes = processes([1, 2].into_iter().flat_map(of_boot));
        assert_eq!(processes.len(), 4);
        let text = metrics(&analyse(processes));
        let series = text
            .lines()
            .filter_map(|line| Some(line.rsplit_once(' ')?.0));
        let mut seen = HashSet::new();
        assert!(
            series
                .filter(|one| !one.starts_with('#'))
                .all(|one| seen.insert(one)),
            "{text}"
        );
    }

    #[test]
    fn labels_have_the_name_and_the_host_of_the_process() {
        let sample = Marker {
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
