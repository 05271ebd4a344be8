//! Explains a finding: the evidence in one or two sentences, and a remedy.
//!
//! `sentence` has one sentence for each verdict, and `remedy` says what to do. Parts of sentences, and so the wording of each
//! number, are in `phrases`.

mod between_stages;
mod comparison;
mod gpu;
mod kill;
mod phrases;
mod remedy;
mod sentence;
mod together;

use flarena_shared::stages::Stage;

use super::analyse::{LimitOf, ProcessReport, TimeToLimit};
use super::calendar::time_of_day;
use super::model::{Point, Process};
use super::units::{duration, printable, size};

pub use comparison::comparison;
pub use phrases::{live_suffix, rate_per};
pub use together::together;

/// A shorter time to the limit says only that it is near.
const SOON_SECONDS: f64 = 1.0;

/// A trainer writes the marker `cache_kept` after a send that keeps the models.
const KEEPS_MODELS: &str =
    "Its send(clear_cache=False) keeps the received and the sent model after each round.";

/// A kill, the evidence for the verdict, the time to the limit of a growing process, and growth inside a stage.
pub fn evidence(report: &ProcessReport) -> String {
    let (process, finding) = (&report.process, &report.finding);
    let limit = report.time_to_limit.as_ref();
    let keeps_models = process.series(Stage::CacheKept.name()).is_some();
    let sentences = [
        report.kill.as_ref().map(kill::sentence),
        Some(sentence::sentence(process, finding)),
        limit.filter(|_| report.kill.is_none()).map(limit_sentence),
        report.gpu_growth.as_ref().map(gpu::sentence),
        report.growth_inside.as_ref().map(between_stages::growth),
        keeps_models.then(|| KEEPS_MODELS.to_owned()),
    ];
    sentences
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The settings or the code to change; `None` if nothing needs a change.
pub fn remedy(report: &ProcessReport) -> Option<String> {
    let kill = |_| kill::remedy(&report.process).to_owned();
    let verdict = remedy::of_verdict(&report.process, &report.finding);
    let verdict = verdict.or_else(|| report.kill.as_ref().map(kill));
    let gpu = report.gpu_growth.as_ref().map(gpu::remedy);
    let both: Vec<String> = verdict.into_iter().chain(gpu.map(str::to_owned)).collect();
    (!both.is_empty()).then(|| both.join(". "))
}

/// `At this rate the process reaches its limit of 8.00 GB in about 9.0 h (7.5 h to 11.2 h).`
fn limit_sentence(estimate: &TimeToLimit) -> String {
    let reaches = reaches_limit(estimate);
    let [earliest, latest] = [estimate.earliest, estimate.latest].map(duration);
    match () {
        () if estimate.left <= 0.0 => format!("The process {reaches}."),
        () if estimate.seconds < SOON_SECONDS || earliest == latest => {
            format!("At this rate the process {reaches}.")
        }
        () if estimate.latest.is_finite() => {
            format!("At this rate the process {reaches} ({earliest} to {latest}).")
        }
        () => format!("At this rate the process {reaches} ({earliest} at the earliest)."),
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
    let (unfinished, pss) = (process.ended_without_exit, report.last_pss);
    let unfinished = format!("{unfinished} ended without the marker exit");
    let began = format!("began as {}", process.began_as.join(", then "));
    let became = process.became.as_ref();
    let became = became.map(|next| format!("became {next} by an exec"));
    let peak = match process.cgroup_limit {
        limit if limit.is_nan() => format!("peak {}", size(process.peak_rss)),
        limit => format!("peak {}, limit {}", size(process.peak_rss), size(limit)),
    };
    let shared = format!("PSS {} (shares memory with a forked process)", size(pss));
    let facts = [
        Some(unfinished).filter(|_| process.ended_without_exit > 0),
        process.job.as_ref().map(|job| format!("job {job}")),
        process.alloc.clone(),
        process.log.clone(),
        Some(began).filter(|_| !process.began_as.is_empty()),
        became,
        observed_time(process),
        Some(peak),
        Some(shared).filter(|_| !pss.is_nan()),
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
        let text = |pss| facts(&analyse(processes((0..10).map(marker(pss))))[0]).join(", ");
        let expected = "PSS 64.0 MB (shares memory with a forked process)";
        assert!(text(64.0).contains(expected), "{}", text(64.0));
        assert!(!text(f64::NAN).contains("PSS"), "{}", text(f64::NAN));
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
