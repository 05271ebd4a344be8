//! Prints the report on a terminal, or as text for a pipe.

use super::{lines, narrow, request, ListLength, DETAILED_PROCESSES, OVERVIEW_ROWS};
use crate::output::{indented, table, table_of_stacks, terminal_width};
use crate::report::analyse::stats::Slope;
use crate::report::analyse::{count_verdicts, ProcessReport, Request, Verdict, KILLED};
use crate::report::explain;
use crate::report::model::SiteHistory;
use crate::report::sites::{self, SiteTrend, FRAMES};
use crate::report::units::{in_one_unit, or_dash, printable, signed_size, size, Amount};
use crate::who::phrases;

/// Rows of the table of allocation sites.
const SITE_ROWS: usize = 8;

pub fn report(reports: &[ProcessReport], requests: &[Request], length: ListLength) -> String {
    let mut text = String::new();
    if reports.len() > 1 {
        let (shown, more) = length.split(reports, OVERVIEW_ROWS);
        text += &overview(shown);
        if more > 0 {
            text += &format!("... and {more} more processes: use --all\n");
        }
        text += &summary(reports);
    }
    let (detailed, more) = length.split(reports, DETAILED_PROCESSES);
    for report in detailed {
        text += "\n";
        text += &process(report);
    }
    if more > 0 {
        text += &format!("\nStages of {more} more processes: use --all, --html or --json\n");
    }
    if let Some(line) = request::sentence(requests) {
        text += &format!("\n{}", lines(&line, "", "  "));
    }
    text
}

/// `4 processes: 3 flat, 1 live growth; 1 of them killed`
fn summary(reports: &[ProcessReport]) -> String {
    let count = |(verdict, n): (Verdict, usize)| format!("{n} {}", verdict.name());
    let counts: Vec<String> = count_verdicts(reports).into_iter().map(count).collect();
    let killed = match reports.iter().filter(|one| one.is_killed()).count() {
        0 => String::new(),
        n => format!("; {n} of them {KILLED}"),
    };
    let text = format!("{} processes: {}{killed}", reports.len(), counts.join(", "));
    "\n".to_owned() + &lines(&text, "", "  ")
}

fn overview(reports: &[ProcessReport]) -> String {
    let growth = "GROWTH/ROUND";
    let mut table = table(["VERDICT", "SITE", "PROCESS", "PID", "LAST", "PEAK", growth]);
    for report in reports {
        table.add_row([
            report.verdict_name().to_owned(),
            printable(&report.process.site_names()),
            printable(&report.process_name()),
            report.pid(),
            size(report.last_rss),
            size(report.process.peak_rss),
            or_dash(report.growth(), |slope| signed_size(slope.per_x)),
        ]);
    }
    narrow(table, 3..7)
}

fn process(report: &ProcessReport) -> String {
    let process = &report.process;
    let facts = [vec![report.full_name()], explain::facts(report)].concat();
    let verdict = format!("{}: {}", report.verdict_name(), explain::evidence(report));
    let mut text = lines(&printable(&facts.join(", ")), "", "  ");
    text += &lines(&verdict, "  ", "  ");
    if let Some(remedy) = explain::remedy(report) {
        text += &lines(&remedy, "  -> ", "     ");
    }
    let width = terminal_width().map(usize::from);
    text += &growing_site(report, width);
    text + &stages(report) + &site_table(&process.allocation_sites, width)
}

/// The site that explains the verdict, if it is known.
fn growing_site(report: &ProcessReport, width: Option<usize>) -> String {
    let history = &report.process.allocation_sites;
    let line = sites::explanation(history, report.finding.verdict);
    line.map_or(String::new(), |line| indented(&format!("  {line}"), width))
}

fn stages(report: &ProcessReport) -> String {
    let heading = format!(
        "GROWTH/{} (95 %)",
        report.finding.unit.name().to_uppercase()
    );
    let mut table = table(["STAGE", "ROUNDS", "FIRST", "LAST", "PEAK", &heading]);
    for stage in &report.stages {
        table.add_row([
            printable(&stage.stage),
            stage.rounds.to_string(),
            size(stage.first),
            size(stage.last),
            size(stage.peak),
            or_dash(stage.growth.as_ref(), with_bounds),
        ]);
    }
    narrow(table, 1..6)
}

/// `+10.0 (+9.10 .. +10.4) MB`
fn with_bounds(slope: &Slope) -> String {
    let all = [slope.per_x, slope.low, slope.high];
    match in_one_unit(all, Amount::Change) {
        Some(([middle, low, high], unit)) => format!("{middle} ({low} .. {high}) {unit}"),
        None => {
            let [middle, low, high] = all.map(signed_size);
            format!("{middle} ({low} .. {high})")
        }
    }
}

/// The sites that grow or hold most; empty without records.
fn site_table(history: &SiteHistory, width: Option<usize>) -> String {
    let trends = sites::trends(history);
    if trends.is_empty() {
        return String::new();
    }
    let headers = [
        "SITE",
        "FIRST",
        "LAST",
        "ERROR",
        "BLOCKS",
        "OLDEST AGE",
        "MEDIAN AGE",
        "GROWTH/ROUND",
        "ALLOCATED AT",
    ];
    let age = |rounds: Option<i64>| or_dash(rounds, |rounds| rounds.to_string());
    let row = |one: &SiteTrend| {
        [
            one.site.to_string(),
            size(one.first_bytes as f64),
            size(one.last_bytes as f64),
            phrases::standard_error(one.error),
            one.blocks.to_string(),
            age(one.oldest),
            age(one.median),
            or_dash(one.bytes_per_round(), signed_size),
            printable(&history.headline(one.site, FRAMES)),
        ]
    };
    let rows: Vec<_> = trends.iter().take(SITE_ROWS).map(row).collect();
    table_of_stacks(headers, &rows, width) + &lost_samples(history, width)
}

fn lost_samples(history: &SiteHistory, width: Option<usize>) -> String {
    match history.lost_samples() {
        0 => String::new(),
        lost => indented(&phrases::lost_samples(lost), width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::find_kills;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::site_history_tests::{
        growing as history, growing_with_error, in_two_sites,
    };
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    #[test]
    fn at_80_columns_the_line_of_code_of_a_site_is_readable() {
        let history = growing_with_error(&[1, 2, 3, 4, 5, 6].map(|n| (n * 150) << 20), 6 << 20);
        let marker = |round| sample(round, sizes(&[(Size::Rss, 100.0 + 150.0 * round as f64)]));
        let mut report = analyse(processes((0..20).map(marker))).remove(0);
        report.process.allocation_sites = history;
        let table = site_table(&report.process.allocation_sites, Some(80));
        let text = growing_site(&report, Some(80)) + &table;
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(text.starts_with("  +150.0 MB per round"), "{text}");
        assert!(table.contains(" fedavg.py:351 in\n"), "{text}");
        assert!(table.contains(" <- run.py:2 in\n"), "{text}");
    }

    #[test]
    fn the_summary_and_the_remedy_know_a_killed_process() {
        let near = |round: usize| Sample {
            stage: if round == 0 { "load" } else { "send" }.into(),
            cgroup_limit: Some(1000.0 * MB),
            ..sample(round, sizes(&[(Size::Rss, 960.0)]))
        };
        let other = Sample {
            pid: Some(8),
            ..near(1)
        };
        let mut reports = analyse(processes((0..3).map(near).chain([other])));
        find_kills(&mut reports, |_| false);
        let text = report(&reports, &[], ListLength::Short);
        assert!(
            text.contains("2 processes: 2 not enough rounds; 1 of them killed"),
            "{text}"
        );
        assert!(text.contains("-> give the job more memory"), "{text}");
        assert!(!text.contains("reaches its limit"), "{text}");
    }

    #[test]
    fn the_table_of_sites_has_a_row_for_each_line() {
        let text = site_table(&history(&[5 << 20; 6]), None);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("fedavg.py:351 in aggregate"), "{text}");
        let text = site_table(&in_two_sites(&[5 << 20; 6], 0), None);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(site_table(&SiteHistory::default(), None), "");
    }
}
