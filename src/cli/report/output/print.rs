//! Prints the report on a terminal, or as text for a pipe.

use super::{request, Column, Grid, ListLength, DETAILED_PROCESSES, OVERVIEW_ROWS};
use crate::output::{indented, table_of_stacks, terminal_width, wrapped};
use crate::report::analyse::stats::Estimate;
use crate::report::analyse::{Finding, Request, StageGrowth, Verdict, KILLED};
use crate::report::explain;
use crate::report::model::SiteHistory;
use crate::report::sites::{self, SiteTrend, FRAMES};
use crate::report::units::{plural, printable, signed_size, size, Amount};
use crate::units::or_dash;
use crate::who::phrases;

/// Rows of the table of allocation sites.
const SITE_ROWS: usize = 8;

pub fn report(findings: &[Finding], requests: &[Request], length: ListLength) -> String {
    let mut text = String::new();
    if findings.len() > 1 {
        let (shown, more) = length.split(findings, OVERVIEW_ROWS);
        text += &overview(shown).text();
        if more > 0 {
            let more = plural(more as u64, "more process");
            text += &format!("... and {more}: use --all\n");
        }
        text += &format!("\n{}", lines(&summary(findings)));
    }
    let (detailed, more) = length.split(findings, DETAILED_PROCESSES);
    for finding in detailed {
        text += &format!("\n{}", process(finding));
    }
    if more > 0 {
        let more = plural(more as u64, "more process");
        text += &format!("\nStages of {more}: use --all, --html or --json\n");
    }
    if let Some(line) = request::sentence(requests) {
        text += &format!("\n{}", lines(&line));
    }
    text
}

fn lines(text: &str) -> String {
    wrapped(text, "", "  ", terminal_width())
}

/// `4 processes: 3 flat, 1 live growth; 1 of them killed`
pub fn summary(findings: &[Finding]) -> String {
    let count = |verdict: Verdict| {
        let n = findings.iter().filter(|one| one.verdict == verdict).count();
        (n > 0).then(|| format!("{n} {}", verdict.name()))
    };
    let counts: Vec<String> = Verdict::all().filter_map(count).collect();
    let killed = match findings.iter().filter(|one| one.is_killed()).count() {
        0 => String::new(),
        n => format!("; {n} of them {KILLED}"),
    };
    let all = plural(findings.len() as u64, "process");
    format!("{all}: {}{killed}", counts.join(", "))
}

pub fn overview(findings: &[Finding]) -> Grid {
    let rate = |one: &Finding| Some(format!("{}/{}", signed_size(one.growth()?.value), one.unit));
    let growth = |one: &Finding| or_dash(rate(one));
    let columns: [Column<Finding>; 7] = [
        ("Verdict", &|one| one.verdict_name().to_owned()),
        ("Site", &|one| printable(&one.process.site_names())),
        ("Process", &|one| printable(&one.process.process_name())),
        ("Pid", &|one| one.process.pid_text()),
        ("Last", &|one| or_dash(one.process.last_rss().map(size))),
        ("Peak", &|one| size(one.process.peak_rss)),
        ("Growth", &growth),
    ];
    Grid::of(findings, 3, &columns)
}

fn process(finding: &Finding) -> String {
    let width = terminal_width();
    let facts = [vec![finding.process.full_name()], explain::facts(finding)].concat();
    let verdict = format!("{}: {}", finding.verdict_name(), explain::evidence(finding));
    let mut text = lines(&printable(&facts.join(", ")));
    text += &wrapped(&verdict, "  ", "  ", width);
    if let Some(remedy) = explain::remedy(finding) {
        text += &wrapped(&remedy, "  -> ", "     ", width);
    }
    let history = &finding.process.allocation_sites;
    if let Some(site) = sites::explanation(history, finding.verdict) {
        text += &wrapped(&site, "  ", "    ", width);
    }
    text + &stages(finding).text() + &site_table(history, width)
}

/// The rounds and sizes of each stage.
pub fn stages(finding: &Finding) -> Grid {
    let heading = format!("Growth/{} (95 %)", finding.unit);
    let growth = |one: &StageGrowth| or_dash(one.slope.as_ref().map(with_bounds));
    let columns: [Column<StageGrowth>; 6] = [
        ("Stage", &|one| printable(&one.series.stage)),
        ("Rounds", &|one| one.series.rounds.to_string()),
        ("First", &|one| size(one.series.first_rss())),
        ("Last", &|one| size(one.series.last_rss())),
        ("Peak", &|one| size(one.series.peak_rss())),
        (&heading, &growth),
    ];
    Grid::of(&finding.stages, 1, &columns)
}

/// `+10.0 (+9.10 .. +10.4) MB`
fn with_bounds(slope: &Estimate) -> String {
    let ([middle, low, high], unit) = explain::numbers(slope, Amount::Change);
    format!("{middle} ({low} .. {high}){unit}")
}

/// The sites that grow or hold most; empty without records.
fn site_table(history: &SiteHistory, width: Option<usize>) -> String {
    let trends = sites::trends(history);
    if trends.is_empty() {
        return String::new();
    }
    let growth = |one: &SiteTrend| or_dash(one.bytes_per_round().map(signed_size));
    let place = |one: &SiteTrend| printable(&history.headline(one.site, FRAMES));
    let columns: [Column<SiteTrend>; 7] = [
        ("SITE", &|one| one.site.to_string()),
        ("LAST", &|one| size(one.last_bytes as f64)),
        ("ERROR", &|one| phrases::standard_error(one.error)),
        ("BLOCKS", &|one| one.blocks.to_string()),
        ("OLDEST AGE", &|one| or_dash(one.oldest)),
        ("GROWTH/ROUND", &growth),
        ("ALLOCATED AT", &place),
    ];
    let row = |one: &SiteTrend| columns.map(|(_, cell)| cell(one));
    let rows: Vec<_> = trends.iter().take(SITE_ROWS).map(row).collect();
    let lost = match history.lost_samples {
        0 => String::new(),
        lost => indented(&phrases::lost_samples(lost), width),
    };
    table_of_stacks(columns.map(|(heading, _)| heading), &rows, width) + &lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{
        analyse, analyse_ended, bytes, processes, sample, sizes,
    };
    use crate::report::model::site_history_tests::{
        growing as history, growing_with_error, in_two_sites,
    };
    use crate::report::model::Size;
    use flarena_shared::marker::Marker;

    #[test]
    fn at_80_columns_the_line_of_code_of_a_site_is_readable() {
        let history = growing_with_error(&[1, 2, 3, 4, 5, 6].map(|n| (n * 150) << 20), 6 << 20);
        let marker = |round| sample(round, sizes(&[(Size::Rss, 100.0 + 150.0 * round as f64)]));
        let mut process = processes((0..20).map(marker)).remove(0);
        process.allocation_sites = history;
        let finding = analyse(vec![process]).remove(0);
        let table = site_table(&finding.process.allocation_sites, Some(80));
        assert!(
            table.lines().all(|line| line.chars().count() <= 80),
            "{table}"
        );
        assert!(super::process(&finding).contains("\n  +150.0 MB per round"));
        assert!(table.contains(" fedavg.py:351 in aggregate\n"), "{table}");
        assert!(table.contains(" <- run.py:2 in <module>\n"), "{table}");
    }

    #[test]
    fn the_summary_and_the_remedy_know_a_killed_process() {
        let near = |round: usize| Marker {
            stage: if round == 0 { "load" } else { "send" }.into(),
            cgroup_limit_bytes: bytes(1000.0),
            ..sample(round, sizes(&[(Size::Rss, 960.0)]))
        };
        let other = Marker {
            pid: Some(8),
            ..near(1)
        };
        let findings = analyse_ended(processes((0..3).map(near).chain([other])));
        let text = report(&findings, &[], ListLength::Short);
        assert!(
            text.contains("2 processes: 2 not enough rounds; 1 of them killed"),
            "{text}"
        );
        assert!(text.contains("-> give the job more memory"), "{text}");
        assert!(!text.contains("reaches its limit"), "{text}");
    }

    #[test]
    fn one_more_process_is_singular() {
        let marker = |pid: u32| Marker {
            pid: Some(pid),
            site: Some(format!("site-{pid}")),
            ..sample(0, sizes(&[(Size::Rss, 100.0)]))
        };
        let findings = analyse(processes((1..12).map(marker)));
        let text = report(&findings, &[], ListLength::Short);
        assert!(
            text.contains("\nStages of 1 more process: use --all"),
            "{text}"
        );
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
