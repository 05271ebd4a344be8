//! The comparison of two runs in one sentence.

use crate::report::analyse::stats::Change;
use crate::report::analyse::{Comparison, Pair, ProcessReport, Verdict};
use crate::report::units::{range, signed_size, time_unit, Amount};

/// `after: peak 31 % lower (1885.0 instead of 2733.0 MB), CPU time 5 % lower (61.0 instead of 64.2 s), no
/// growth in either; site-1 TR changed most: -40 %, ±1 % at stage send`
pub fn comparison(compared: &Comparison) -> String {
    let [before, after] = compared.runs;
    match (before, after) {
        ([], []) => return "neither run has a marker".to_owned(),
        ([], _) => return "the run before has no marker".to_owned(),
        (_, []) => return "the run after has no marker".to_owned(),
        ([..], [..]) => (),
    }
    let sizes = |low, high| range(low, "instead of", high, Amount::Size);
    let all = [
        changed("peak", &compared.sums.peak_bytes, sizes),
        changed("CPU time", &compared.sums.cpu_seconds, seconds),
        Some(growth(before, after)),
    ];
    let mut text = format!(
        "after: {}",
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    );
    let rounds = &compared.rounds;
    if let (Some(before), Some(after)) = (rounds.before, rounds.after)
        && before != after
    {
        text += &format!(" ({before} rounds before, {after} after)");
    }
    if let Some((name, stage, change)) = compared.most_changed() {
        text += &format!("; {name} changed most: {change} at stage {stage}");
    }
    text
}

/// `peak 31 % lower (1885.0 instead of 2733.0 MB)`; `None` if a value is unknown.
fn changed(name: &str, values: &Pair<f64>, text: fn(f64, f64) -> String) -> Option<String> {
    let (before, after) = (values.before?, values.after?);
    let percent = Change::of_values(before, after)?.percent();
    let way = match percent.abs() < 0.5 {
        true => return Some(format!("the same {name}")),
        false if percent < 0.0 => "lower",
        false => "higher",
    };
    let (percent, values) = (percent.abs(), text(after, before));
    Some(format!("{name} {percent:.0} % {way} ({values})"))
}

/// `61.0 instead of 64.2 s`
fn seconds(after: f64, before: f64) -> String {
    let (length, unit) = time_unit(before.max(after));
    format!(
        "{:.1} instead of {:.1} {unit}",
        after / length,
        before / length
    )
}

fn growth(before: &[ProcessReport], after: &[ProcessReport]) -> String {
    let runs = [before, after];
    let all = || {
        runs.into_iter()
            .flatten()
            .map(|report| report.finding.verdict)
    };
    let is_short = |run: &[ProcessReport]| {
        let mut run = run.iter();
        run.all(|report| report.finding.verdict == Verdict::NotEnoughRounds)
    };
    match runs.map(most) {
        _ if runs.into_iter().any(is_short) => "not enough rounds to judge growth".to_owned(),
        [None, None] if all().any(Verdict::is_undecided) => {
            "no certain growth in either".to_owned()
        }
        [None, None] => "no growth in either".to_owned(),
        [Some(old), None] => format!("no growth any more (before: {old})"),
        [None, Some(new)] => format!("growth only after: {new}"),
        [Some(old), Some(new)] => format!("growth in both (before: {old}; after: {new})"),
    }
}

/// The process that grows most: `site-1 TR by +3.00 MB/round and 1 more`.
fn most(run: &[ProcessReport]) -> Option<String> {
    let growing = || {
        run.iter()
            .filter_map(|report| Some((report, report.growth()?.per_x)))
    };
    let (report, per_x) = growing().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = match growing().count() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let (name, rate) = (report.full_name(), signed_size(per_x));
    Some(format!("{name} by {rate}/{}{others}", report.finding.unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{analyse, if_known, processes, sample, sizes};
    use crate::report::model::{Sample, Size};

    /// A process with each of these sizes in MB by round, and this CPU time in seconds.
    fn run(cpu: f64, all: &[fn(f64) -> f64]) -> Vec<ProcessReport> {
        let marker = |pid: usize, round: usize| Sample {
            pid: Some(pid as u32),
            cpu_ms: if_known(cpu * 1000.0 * round as f64 / 19.0),
            ..sample(round, sizes(&[(Size::Rss, all[pid](round as f64))]))
        };
        let pids = 0..all.len();
        analyse(processes(
            pids.flat_map(|pid| (0..20).map(move |round| marker(pid, round))),
        ))
    }

    fn sentence(before: &[ProcessReport], after: &[ProcessReport]) -> String {
        let text = comparison(&Comparison::of(before, after));
        text.split("; ").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_sentence_names_peak_and_growth_of_both_runs() {
        let unknown = f64::NAN;
        let flat = run(unknown, &[|_| 2733.0]);
        assert_eq!(
            sentence(&flat, &run(unknown, &[|_| 1885.0])),
            "after: peak 31 % lower (1885.0 instead of 2733.0 MB), no growth in either"
        );
        let grows = run(
            unknown,
            &[|round| 1000.0 + 20.0 * round, |round| 1000.0 + 30.0 * round],
        );
        assert_eq!(
            sentence(&flat, &grows),
            "after: peak 8 % higher (2950.0 instead of 2733.0 MB), \
             growth only after: site-1 TR, pid 1 by +30.0 MB/round and 1 more"
        );
        let unclear = run(
            unknown,
            &[|round| 220.0 + 0.95 * round + 8.0 * ((round * 2.39).sin() + (round * 1.13).cos())],
        );
        let text = sentence(&flat, &unclear);
        assert!(text.ends_with(", no certain growth in either"), "{text}");
        assert_eq!(sentence(&flat, &[]), "the run after has no marker");
        assert_eq!(
            sentence(&run(64.2, &[|_| 50.0]), &run(61.0, &[|_| 50.0])),
            "after: the same peak, CPU time 5 % lower (61.0 instead of 64.2 s), \
             no growth in either"
        );
    }
}
