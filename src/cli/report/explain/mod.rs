//! Explains a finding: the evidence in one or two sentences, and a remedy.
//!
//! `growth` covers the verdicts that are kinds of growth, `no_growth` all others. Parts of sentences
//! that both use are in `phrases`.

mod between_stages;
mod comparison;
mod gpu;
mod growth;
mod kill;
mod no_growth;
mod phrases;
mod together;

use flarena_shared::stages::Stage;

use super::analyse::{Finding, LimitOf, ProcessReport, TimeToLimit, Verdict};
use super::calendar::time_of_day;
use super::model::{Point, Process};
use super::units::{duration, printable, size};

pub use comparison::comparison;
pub use phrases::{live_suffix, rate_per};
pub use together::together;

/// A shorter time to the limit says only that it is near.
const SOON_SECONDS: f64 = 1.0;

/// The evidence for the verdict, with growth inside a stage, the time to the limit of a growing
/// process, models that the trainer keeps, and a kill.
pub fn evidence(report: &ProcessReport) -> String {
    let (process, finding) = (&report.process, &report.finding);
    let mut text = sentence(process, finding);
    if let Some(estimate) = report
        .time_to_limit
        .as_ref()
        .filter(|_| report.kill.is_none())
    {
        text += &format!(" {}", limit_sentence(estimate));
    }
    if let Some(growth) = &report.gpu_growth {
        text += &format!(" {}", gpu::sentence(growth));
    }
    if let Some(growth) = &report.growth_inside {
        text += &format!(" {}", between_stages::growth(growth));
    }
    if let Some(peak) = &report.hidden_peak {
        text += &format!(" {}", between_stages::hidden_peak(peak));
    }
    if process.series(Stage::CacheKept.name()).is_some() {
        text +=
            " Its send(clear_cache=False) keeps the received and the sent model after each round.";
    }
    match &report.kill {
        Some(kill) => format!("{} {text}", kill::sentence(kill)),
        None => text,
    }
}

/// The evidence for the verdict alone.
fn sentence(process: &Process, finding: &Finding) -> String {
    match finding.verdict {
        Verdict::LiveGrowth => growth::live(process, finding),
        Verdict::Retention => growth::retention(process, finding),
        Verdict::Growth => growth::of_unknown_kind(finding),
        Verdict::Swap => growth::swap(process, finding),
        Verdict::FileBacked => growth::file_backed(process, finding),
        Verdict::CyclicGarbage => no_growth::cyclic_garbage(process, finding),
        Verdict::Unclear => no_growth::unclear(finding),
        Verdict::WarmingUp => no_growth::warming_up(process, finding),
        Verdict::Falling => no_growth::falling(finding),
        Verdict::Flat => no_growth::flat(process, finding),
        Verdict::NotEnoughRounds => no_growth::not_enough_rounds(finding),
    }
}

/// The settings or the code to change; `None` if nothing needs a change.
pub fn remedy(report: &ProcessReport) -> Option<String> {
    let (process, finding) = (&report.process, &report.finding);
    let growth = match finding.verdict {
        Verdict::LiveGrowth
        | Verdict::Retention
        | Verdict::Growth
        | Verdict::Swap
        | Verdict::FileBacked => Some(growth::remedy(process, finding)),
        Verdict::CyclicGarbage => no_growth::cyclic_garbage_remedy(process).map(str::to_owned),
        Verdict::Unclear
        | Verdict::WarmingUp
        | Verdict::Falling
        | Verdict::Flat
        | Verdict::NotEnoughRounds => None,
    };
    let kill = || {
        report
            .kill
            .as_ref()
            .map(|_| kill::remedy(process).to_owned())
    };
    let gpu = report
        .gpu_growth
        .as_ref()
        .map(|growth| gpu::remedy(growth).to_owned());
    let both: Vec<String> = growth.or_else(kill).into_iter().chain(gpu).collect();
    (!both.is_empty()).then(|| both.join(". "))
}

/// `At this rate the process reaches its limit of 8.00 GB in about 9.0 h (7.5 h to 11.2 h).`
fn limit_sentence(estimate: &TimeToLimit) -> String {
    let earliest = duration(estimate.earliest);
    let range = match estimate.latest.is_finite() {
        true => match duration(estimate.latest) {
            latest if latest == earliest => String::new(),
            latest => format!(" ({earliest} to {latest})"),
        },
        false => format!(" ({earliest} at the earliest)"),
    };
    let range = if estimate.seconds < SOON_SECONDS {
        ""
    } else {
        &range
    };
    match estimate.left > 0.0 {
        true => format!(
            "At this rate the process {}{range}.",
            reaches_limit(estimate)
        ),
        false => format!("The process {}.", reaches_limit(estimate)),
    }
}

/// `reaches its limit of 8.00 GB in about 9.0 h`
pub fn reaches_limit(estimate: &TimeToLimit) -> String {
    let limit = match estimate.limit_of {
        LimitOf::Group => "its limit",
        LimitOf::Setting => "FLARENA_MEMORY_LIMIT",
        LimitOf::Option => "the limit",
        LimitOf::Machine => "the memory of the machine",
    };
    let limit = format!("{limit} of {}", size(estimate.limit));
    match estimate.seconds {
        _ if estimate.left <= 0.0 => format!("is at {limit}"),
        seconds if seconds < SOON_SECONDS => format!("reaches {limit} within seconds"),
        seconds => format!("reaches {limit} in about {}", duration(seconds)),
    }
}

/// The facts about a process, besides its name and verdict.
pub fn facts(report: &ProcessReport) -> Vec<String> {
    let process = &report.process;
    let limit = match process.cgroup_limit {
        limit if limit.is_nan() => String::new(),
        limit => format!(", limit {}", size(limit)),
    };
    let facts = [
        unfinished(process),
        process.job.as_ref().map(|job| format!("job {job}")),
        process.alloc.clone(),
        process.log.clone(),
        programs(process),
        observed_time(process),
        Some(format!("peak {}{limit}", size(process.peak_rss))),
        shared_memory(report),
        last_marker(process),
    ];
    facts.into_iter().flatten().collect()
}

/// The time from the first marker to the last, such as `3.5 h`.
fn observed_time(process: &Process) -> Option<String> {
    let times = process.points().map(|point| point.t);
    let first = times.clone().fold(f64::NAN, f64::min);
    let last = times.fold(f64::NAN, f64::max);
    (last > first).then(|| duration(last - first))
}

/// `last marker 14:02:11, round 12, send`; `None` for a process that wrote the marker `exit` or became another program.
fn last_marker(process: &Process) -> Option<String> {
    let (stage, point) = process.last_visit()?;
    if process.has_exited || process.became.is_some() {
        return None;
    }
    let time = (!point.t.is_nan()).then(|| time_of_day(point.t));
    let mut text = format!("last marker {}", place_of_marker(time, stage, point));
    if let Some((own, before)) = process.last_own_visit().filter(|(own, _)| *own != stage) {
        text += &format!(" after {}", place_of_marker(None, own, before));
    }
    Some(text)
}

/// `14:02:11, round 12, send`
fn place_of_marker(time: Option<String>, stage: &str, point: &Point) -> String {
    let round = point.known_round().map(|round| format!("round {round}"));
    let parts = time.into_iter().chain(round).chain([printable(stage)]);
    parts.collect::<Vec<_>>().join(", ")
}

/// The first names, and the number of the others.
pub fn listed(names: &[String]) -> Option<String> {
    /// More names are counted.
    const MAX_NAMED: usize = 3;
    let named = names.iter().take(MAX_NAMED).cloned();
    let named = named.collect::<Vec<_>>().join("; ");
    match names.len() {
        0 => None,
        n if n <= MAX_NAMED => Some(named),
        n => Some(format!("{named}; and {} more", n - MAX_NAMED)),
    }
}

/// `began as setup_worker.py`; `became eval.py by an exec`
fn programs(process: &Process) -> Option<String> {
    let began = (!process.began_as.is_empty())
        .then(|| format!("began as {}", process.began_as.join(", then ")));
    let became = process
        .became
        .as_ref()
        .map(|next| format!("became {next} by an exec"));
    let known: Vec<String> = began.into_iter().chain(became).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// `2 ended without the marker exit`, of the processes of a chain
fn unfinished(process: &Process) -> Option<String> {
    let count = process.ended_without_exit;
    (count > 0).then(|| format!("{count} ended without the marker exit"))
}

/// `PSS 64.0 MB (shares memory with a forked process)`; `None` for a process without a fork.
fn shared_memory(report: &ProcessReport) -> Option<String> {
    let pss = report.last_pss;
    (!pss.is_nan()).then(|| format!("PSS {} (shares memory with a forked process)", size(pss)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    #[test]
    fn process_that_shares_memory_shows_its_pss_at_the_last_marker_that_has_it() {
        let marker = |pss: f64| {
            move |round: usize| {
                let pss = if round == 9 { f64::NAN } else { pss };
                sample(round, sizes(&[(Size::Rss, 300.0), (Size::Pss, pss)]))
            }
        };
        let text = |pss| shared_memory(&analyse(processes((0..10).map(marker(pss))))[0]);
        let expected = "PSS 64.0 MB (shares memory with a forked process)";
        assert_eq!(text(64.0).as_deref(), Some(expected));
        assert_eq!(text(f64::NAN), None);
    }

    #[test]
    fn a_trainer_that_keeps_its_models_after_send_is_named() {
        let text = |stage: &'static str| {
            let marker = |round: usize| sample(round, sizes(&[(Size::Rss, 300.0)]));
            let kept = Sample {
                stage: stage.into(),
                ..marker(12)
            };
            let all = (0..12).map(marker).chain([kept]);
            evidence(&analyse(processes(all))[0])
        };
        assert!(
            text("cache_kept").contains("clear_cache=False"),
            "{}",
            text("cache_kept")
        );
        assert!(!text("other").contains("clear_cache"));
    }

    #[test]
    fn the_evidence_of_growth_ends_with_the_time_to_the_limit() {
        let marker = |round: usize| Sample {
            t: Some(600.0 * round as f64),
            cgroup_limit: Some(8192.0 * MB),
            ..sample(round, sizes(&[(Size::Rss, 3072.0 + 100.0 * round as f64)]))
        };
        let text = evidence(&analyse(processes((0..24).map(marker)))[0]);
        let end = " At this rate the process reaches its limit of 8.00 GB in about 4.7 h";
        assert!(text.contains(end), "{text}");
    }

    #[test]
    fn a_process_near_its_limit_reaches_it_within_seconds_and_one_at_the_limit_is_there() {
        let text = |limit: f64| {
            let marker = |round: usize| Sample {
                t: Some(round as f64),
                cgroup_limit: Some(limit * MB),
                ..sample(round, sizes(&[(Size::Rss, 1000.0 + 100.0 * round as f64)]))
            };
            evidence(&analyse(processes((0..24).map(marker)))[0])
        };
        let near = text(3350.0);
        assert!(
            near.contains("reaches its limit of 3350.0 MB within seconds."),
            "{near}"
        );
        let there = text(3300.0);
        assert!(
            there.contains(" The process is at its limit of 3300.0 MB."),
            "{there}"
        );
    }
}
