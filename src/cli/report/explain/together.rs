//! Where the memory of all processes went, in a few sentences.

use super::listed;
use crate::report::analyse::{Group, ProcessReport, Together, Verdict};
use crate::report::calendar::time_of_day;
use crate::report::units::{signed_size, size};

/// A smaller part of the peak is not named.
const MIN_NAMED_SHARE: f64 = 0.1;

/// The peak with the largest part of it, then kills and growth.
pub fn together(all: &Together, reports: &[ProcessReport]) -> Vec<String> {
    let subject = match reports.len() {
        1 => "the process",
        _ => "all processes together",
    };
    let limit = match all.limit.is_nan() {
        true => String::new(),
        false => {
            let share = 100.0 * all.peak / all.limit;
            format!(" ({share:.0}\u{a0}% of the limit of {})", size(all.limit))
        }
    };
    let mut peak = format!(
        "By the markers, {subject} held at most {}{limit}, at {} UTC, and {} on average.",
        size(all.peak),
        time_of_day(all.peak_time),
        size(all.mean)
    );
    let largest = all
        .groups
        .iter()
        .max_by(|a, b| a.at_peak.total_cmp(&b.at_peak));
    let is_large = |group: &&Group| group.at_peak >= MIN_NAMED_SHARE * all.peak;
    if let Some(largest) = largest.filter(is_large).filter(|_| all.groups.len() > 1) {
        peak += &format!(
            " {} held the largest part of that peak: {} ({:.0}\u{a0}%).",
            largest.name,
            size(largest.at_peak),
            100.0 * largest.at_peak / all.peak
        );
    }
    let hidden = named("Between markers the peak was higher", reports, hidden_peak);
    let killed = named(
        "Killed, most likely for lack of memory",
        reports,
        |report| report.is_killed().then(|| report.full_name()),
    );
    let all = [Some(peak), hidden, killed, Some(growth(reports))];
    all.into_iter().flatten().collect()
}

/// `Growing: site-2 TR, pid 7 (+2.00 MB/round, live growth).`, with the processes that have a text.
fn named(
    title: &str,
    reports: &[ProcessReport],
    text: fn(&ProcessReport) -> Option<String>,
) -> Option<String> {
    let names: Vec<String> = reports.iter().filter_map(text).collect();
    Some(format!("{title}: {}.", listed(&names)?))
}

/// `site-2 TR, pid 7 (538.9 MB)`
fn hidden_peak(report: &ProcessReport) -> Option<String> {
    let peak = report.hidden_peak.as_ref()?;
    Some(format!("{} ({})", report.full_name(), size(peak.rss)))
}

fn growth(reports: &[ProcessReport]) -> String {
    let growing = named("Growing", reports, growing);
    let uncertain = || named("Growth is not certain yet", reports, undecided);
    let is_short = |report: &&ProcessReport| report.finding.verdict == Verdict::NotEnoughRounds;
    let none = || match reports.iter().filter(is_short).count() {
        0 if reports.len() == 1 => "It does not grow.".to_owned(),
        0 => "No process grows.".to_owned(),
        n if n == reports.len() => "Too few rounds to judge growth.".to_owned(),
        _ => "No process with enough rounds grows.".to_owned(),
    };
    growing.or_else(uncertain).unwrap_or_else(none)
}

/// `site-2 TR, pid 7 (+2.00 MB/round, live growth)`
fn growing(report: &ProcessReport) -> Option<String> {
    let finding = &report.finding;
    let rate = signed_size(report.growth()?.per_x);
    let (name, verdict) = (report.full_name(), finding.verdict.name());
    Some(format!("{name} ({rate}/{}, {verdict})", finding.unit))
}

/// `site-2 TR, pid 7 (warming up)`
fn undecided(report: &ProcessReport) -> Option<String> {
    let verdict = report.finding.verdict;
    let text = || format!("{} ({})", report.full_name(), verdict.name());
    verdict.is_undecided().then(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    /// Processes with this RSS in MB in each round.
    fn reports(all: &[&[f64]]) -> Vec<ProcessReport> {
        let markers = all.iter().zip(7..).flat_map(|(rss, pid)| {
            let marker = move |(round, mb): (usize, &f64)| Sample {
                pid: Some(pid),
                ..sample(round, sizes(&[(Size::Rss, *mb)]))
            };
            rss.iter().enumerate().map(marker)
        });
        analyse(processes(markers))
    }

    #[test]
    fn a_peak_that_no_marker_shows_is_named() {
        let marker = |round: usize| Sample {
            peak_rss: Some(539.0 * MB),
            ..sample(round, sizes(&[(Size::Rss, 59.0)]))
        };
        let reports = analyse(processes((0..12).map(marker)));
        assert_eq!(
            together(&Together::of(&reports).unwrap(), &reports),
            [
                "By the markers, the process held at most 59.0 MB, at 00:00:00 UTC, and 59.0 MB on average.",
                "Between markers the peak was higher: site-1 TR, pid 7 (539.0 MB).",
                "It does not grow."
            ]
        );
    }

    #[test]
    fn growth_is_denied_only_where_it_is_excluded() {
        let rising = [100.0, 110.0, 120.0, 130.0, 140.0, 150.0];
        let flat = [100.0; 12];
        for (all, text) in [
            (&[&flat[..]][..], "It does not grow."),
            (&[&flat, &flat], "No process grows."),
            (
                &[&rising],
                "Growth is not certain yet: site-1 TR, pid 7 (warming up).",
            ),
            (
                &[&flat, &rising],
                "Growth is not certain yet: site-1 TR, pid 8 (warming up).",
            ),
            (&[&rising[..2]], "Too few rounds to judge growth."),
            (
                &[&flat, &rising[..2]],
                "No process with enough rounds grows.",
            ),
        ] {
            assert_eq!(growth(&reports(all)), text);
        }
    }
}
