//! Where the memory of all processes went, in a few sentences.

use crate::report::analyse::{Group, ProcessReport, Together};
use crate::report::calendar::time_of_day;
use crate::report::units::{or_dash, signed_size, size};

/// More processes are counted.
const MAX_NAMED: usize = 3;
/// A smaller part of the peak is not named.
const MIN_NAMED_SHARE: f64 = 0.1;

/// The peak with the largest part of it, then growth and kills.
pub fn together(all: &Together, reports: &[ProcessReport]) -> Vec<String> {
    let subject = match reports.len() {
        1 => "The process",
        _ => "All processes together",
    };
    let mut peak = format!(
        "{subject} held at most {}, at {}",
        size(all.peak),
        time_of_day(all.peak_time)
    );
    if !all.limit.is_nan() {
        let share = 100.0 * all.peak / all.limit;
        peak += &format!(": {share:.0} % of the limit of {}", size(all.limit));
    }
    peak += &format!(". The mean was {}.", size(all.mean));
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
    let growing: Vec<String> = reports.iter().filter_map(growth).collect();
    let growth = match listed(&growing) {
        Some(names) => format!("Growing: {names}."),
        None if reports.len() == 1 => "It does not grow.".to_owned(),
        None => "No process grows.".to_owned(),
    };
    let killed = reports.iter().filter(|report| report.kill.is_some());
    let killed: Vec<String> = killed.map(ProcessReport::full_name).collect();
    let killed =
        listed(&killed).map(|names| format!("Killed, most likely for lack of memory: {names}."));
    [Some(peak), killed, Some(growth)]
        .into_iter()
        .flatten()
        .collect()
}

/// `site-2 TR, pid 7 (+2.00 MB/round, live growth)`
fn growth(report: &ProcessReport) -> Option<String> {
    let finding = &report.finding;
    let rate = or_dash(report.growth(), |slope| signed_size(slope.per_x));
    let is_growing = finding.verdict.is_growth();
    is_growing.then(|| {
        format!(
            "{} ({rate}/{}, {})",
            report.full_name(),
            finding.unit,
            finding.verdict.name()
        )
    })
}

fn listed(names: &[String]) -> Option<String> {
    let named = names
        .iter()
        .take(MAX_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    match names.len() {
        0 => None,
        n if n <= MAX_NAMED => Some(named),
        n => Some(format!("{named}; and {} more", n - MAX_NAMED)),
    }
}
