//! Shows the comparison of two runs: a sentence and a table, or JSON.

use std::path::PathBuf;

use serde_json::{json, Value};

use super::{chart, listed, Grid, ListLength, Summary, DETAILED_PROCESSES};
use crate::report::analyse::stats::{Change, Estimate};
use crate::report::analyse::{Comparison, Finding, Pair, StageComparison, Together, Verdict};
use crate::report::units::{printable, signed_size, size, time_unit};
use crate::units::or_dash;

/// In place of a name in the rows of the sums.
const ALL: &str = "all processes";

/// The comparison with sizes in bytes, and null for unknown values.
pub fn json(compared: &Comparison) -> Value {
    let mut value = json!(compared);
    value["version"] = json!(1);
    value["sentence"] = json!(sentence(compared));
    value
}

/// The sentence, a table of the sums and of the processes that changed, the names of those that did not, and both runs over
/// time.
pub fn summary(compared: &Comparison, inputs: [&PathBuf; 2], length: ListLength) -> Summary {
    let is_short = matches!(length, ListLength::Short);
    let all = compared.processes().into_iter();
    let (equal, changed): (Vec<_>, Vec<_>) = all.partition(|(_, one)| is_short && one.is_equal());
    let (shown, more) = length.split(&changed, DETAILED_PROCESSES);
    let more = (more > 0).then(|| format!("{more} more processes changed: use --all or --json"));
    let equal: Vec<String> = equal.iter().map(|(name, _)| printable(name)).collect();
    let names = listed(&equal);
    let equal = (!equal.is_empty()).then(|| format!("No difference beyond noise: {names}."));
    let sums = &compared.sums;
    // Without times the sum is unknown.
    let has_times = sums.mean_bytes.known().count() == sums.peak_bytes.known().count();
    let peak = if has_times { "peak" } else { "largest peak" };
    let mut rows = vec![
        values(ALL, peak, &sums.peak_bytes, size),
        values(ALL, "mean", &sums.mean_bytes, size),
    ];
    if sums.cpu_seconds.known().next().is_some() {
        rows.push(values(ALL, "CPU time", &sums.cpu_seconds, seconds));
    }
    for (name, one) in shown {
        rows.extend(process_rows(name, &one.verdict, &one.stages));
    }
    let line = |(name, findings): (&str, &[Finding])| {
        let all = Together::of(findings)?;
        let moments = all.moments.iter();
        let points = moments.map(|(t, parts)| (t - all.start, parts.iter().sum()));
        Some((name.to_owned(), points.collect()))
    };
    let runs = ["before", "after"].into_iter().zip(compared.runs);
    let [before, after] = inputs.map(|path| path.display());
    let note = format!("all processes; before: {before}, after: {after}");
    Summary {
        program: "flarena report",
        heading: "Memory before and after",
        sentence: printable(&sentence(compared)),
        caption: "Memory and CPU time before and after; the process that changed most comes first",
        grid: Grid {
            headings: ["PROCESS", "FIGURE", "BEFORE", "AFTER", "CHANGE"]
                .map(str::to_owned)
                .to_vec(),
            words: 2,
            rows,
        },
        notes: more.into_iter().chain(equal).collect(),
        chart: chart::lines(note, runs.filter_map(line).collect()),
    }
}

/// Name, figure, before, after, change.
type Row = Vec<String>;

fn row(name: &str, figure: &str, texts: &Pair<String>, change: Option<Change>) -> Row {
    let [before, after] = [&texts.before, &texts.after].map(|text| or_dash(text.as_ref()));
    let change = change.map_or(String::new(), |change| change.to_string());
    vec![printable(name), printable(figure), before, after, change]
}

/// Two values without intervals.
fn values(name: &str, figure: &str, pair: &Pair<f64>, format: fn(f64) -> String) -> Row {
    let texts = pair.map(|value| Some(format(*value)));
    row(name, figure, &texts, pair.change())
}

/// `64.2 s`, `12.5 min`
fn seconds(seconds: f64) -> String {
    let (length, unit) = time_unit(seconds);
    format!("{:.1} {unit}", seconds / length)
}

fn process_rows(name: &str, verdict: &Pair<&str>, stages: &[StageComparison]) -> Vec<Row> {
    let verdicts = verdict.map(|verdict| Some((*verdict).to_owned()));
    let mut rows = vec![row(name, "verdict", &verdicts, None)];
    for compared in stages {
        let StageComparison { stage, sizes } = compared;
        let means = sizes.map(|sizes| Some(interval(&sizes.mean_bytes)));
        let peaks = sizes.map(|sizes| Some(sizes.peak_bytes));
        let [mean, peak] = ["mean", "peak"].map(|figure| format!("{stage} {figure}"));
        rows.push(row(name, &mean, &means, compared.change()));
        rows.push(values(name, &peak, &peaks, size));
    }
    rows
}

/// `733.1 MB ±2.10 MB`
fn interval(mean: &Estimate) -> String {
    match mean.low.is_nan() {
        true => size(mean.value),
        false => format!("{} ±{}", size(mean.value), size(mean.high - mean.value)),
    }
}

/// `after: peak 31 % lower (1885.0 MB instead of 2733.0 MB), CPU time 5 % lower (61.0 s instead of 64.2 s), no
/// growth, as before; site-1 TR changed most: -40 %, ±1 % at stage send`
fn sentence(compared: &Comparison) -> String {
    match compared.runs {
        [[], _] => return "the run before has no marker".to_owned(),
        [[..], []] => return "the run after has no marker".to_owned(),
        [[..], [..]] => (),
    }
    let all = [
        changed("peak", &compared.sums.peak_bytes, size),
        changed("CPU time", &compared.sums.cpu_seconds, seconds),
        Some(match compared.runs.map(growth) {
            [before, after] if before == after => format!("{after}, as before"),
            [before, after] => format!("{after} (before: {before})"),
        }),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    let rounds = compared.rounds.both();
    let rounds = rounds.filter(|(before, after)| before != after);
    let rounds = rounds.map_or(String::new(), |(before, after)| {
        format!(" ({after} rounds, {before} before)")
    });
    let processes = compared.processes();
    let (name, most) = &processes[0];
    let mut verdicts = processes.iter().map(|(_, one)| &one.verdict);
    let sites = match most.largest_change() {
        Some((StageComparison { stage, .. }, change)) => {
            format!("; {name} changed most: {change} at stage {stage}")
        }
        None if verdicts.any(|verdict| verdict.both().is_some()) => String::new(),
        None => "; the runs have no process in common".to_owned(),
    };
    format!("after{rounds}: {}{sites}", all.join(", "))
}

/// `peak 31 % lower (1885.0 MB instead of 2733.0 MB)`; `None` if a value is unknown.
fn changed(name: &str, values: &Pair<f64>, text: fn(f64) -> String) -> Option<String> {
    let (before, after) = values.both()?;
    let percent = values.change()?.percent();
    let way = match percent.abs() < 0.5 {
        true => return Some(format!("the same {name}")),
        false if percent < 0.0 => "lower",
        false => "higher",
    };
    let (percent, [before, after]) = (percent.abs(), [before, after].map(|value| text(*value)));
    Some(format!(
        "{name} {percent:.0} % {way} ({after} instead of {before})"
    ))
}

/// `growth of site-1 TR by +3.00 MB/round and 1 more`, of the process that grows most; `no growth`
fn growth(run: &[Finding]) -> String {
    let mut verdicts = run.iter().map(|finding| finding.verdict);
    let run = run.iter();
    let growing = run.filter_map(|one| Some((one, one.growth()?.value)));
    let more = match growing.clone().count() {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    match growing.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        Some((one, value)) => {
            let (name, unit) = (one.process.full_name(), one.unit);
            format!("growth of {name} by {}/{unit}{more}", signed_size(value))
        }
        None if verdicts.clone().all(|one| one == Verdict::NotEnoughRounds) => {
            "not enough rounds to judge growth".to_owned()
        }
        None if verdicts.any(Verdict::is_undecided) => "no certain growth".to_owned(),
        None => "no growth".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{analyse, if_known, processes, sample, sizes};
    use crate::report::model::Size;
    use flarena_shared::marker::Marker;

    /// A process with each of these sizes in MB by round, and this CPU time in seconds.
    fn run(cpu: f64, all: &[fn(f64) -> f64]) -> Vec<Finding<'static>> {
        let marker = |pid: usize, round: usize| Marker {
            pid: Some(pid as u32),
            cpu_ms: if_known(cpu * 1000.0 * round as f64 / 19.0).map(|ms| ms as u64),
            ..sample(round, sizes(&[(Size::Rss, all[pid](round as f64))]))
        };
        let pids = 0..all.len();
        analyse(processes(
            pids.flat_map(|pid| (0..20).map(move |round| marker(pid, round))),
        ))
    }

    fn first_part(before: &[Finding], after: &[Finding]) -> String {
        let text = sentence(&Comparison::of([before, after]));
        text.split("; ").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn runs_without_a_common_process_say_so() {
        let run = |site: Option<&str>, proc: &str| {
            let marker = |round| Marker {
                site: site.map(str::to_owned),
                proc: proc.to_owned(),
                ..sample(round, sizes(&[(Size::Rss, 50.0)]))
            };
            analyse(processes((0..20).map(marker)))
        };
        for site in [Some("site-1"), None] {
            let before = run(site, "TR");
            let text = |site, proc| sentence(&Comparison::of([&before, &run(site, proc)]));
            let equal = "after: the same peak, no growth, as before";
            let other = format!("{equal}; the runs have no process in common");
            assert_eq!(text(site, "TR"), equal);
            assert_eq!(text(site, "app"), other);
            assert_eq!(text(Some("hospital-1"), "TR"), other);
        }
    }

    #[test]
    fn the_sentence_names_peak_and_growth_of_both_runs() {
        let unknown = f64::NAN;
        let flat = run(unknown, &[|_| 2733.0]);
        assert_eq!(
            first_part(&flat, &run(unknown, &[|_| 1885.0])),
            "after: peak 31 % lower (1885.0 MB instead of 2733.0 MB), no growth, as before"
        );
        let grows = run(
            unknown,
            &[|round| 1000.0 + 20.0 * round, |round| 1000.0 + 30.0 * round],
        );
        assert_eq!(
            first_part(&flat, &grows),
            "after: peak 8 % higher (2950.0 MB instead of 2733.0 MB), \
             growth of site-1 TR, pid 1 by +30.0 MB/round and 1 more (before: no growth)"
        );
        let unclear = run(
            unknown,
            &[|round| 220.0 + 0.95 * round + 8.0 * ((round * 2.39).sin() + (round * 1.13).cos())],
        );
        let text = first_part(&flat, &unclear);
        assert!(
            text.ends_with(", no certain growth (before: no growth)"),
            "{text}"
        );
        assert_eq!(first_part(&flat, &[]), "the run after has no marker");
        assert_eq!(
            first_part(&run(64.2, &[|_| 50.0]), &run(61.0, &[|_| 50.0])),
            "after: the same peak, CPU time 5 % lower (61.0 s instead of 64.2 s), no growth, as before"
        );
    }
}
