//! Explains a finding: the evidence in one or two sentences, and a remedy.
//!
//! `sentence` has one sentence for each verdict, and `remedy` says what to do. Parts of sentences, and so the
//! wording of each number, are in `phrases`.

mod phrases;
mod remedy;
mod sentence;

use flarena_shared::stages::Stage;

use super::analyse::{
    growth_inside, Allocated, Candidates, Finding, GrowthInside, Kill, LimitOf, Quantity,
    TimeToLimit,
};
use super::model::{Point, Process, Refused, Size};
use super::units::{duration, printable, size, utc, Amount};
use phrases::{place, HIGHEST_RSS};

pub use phrases::{numbers, rate_per};

/// A shorter time to the limit says only that it is near, and a longer one that it is far.
const SOON_SECONDS: f64 = 1.0;
const FAR_SECONDS: f64 = 365.0 * 86400.0;

/// A trainer writes the marker `cache_kept` after a send that keeps the models.
const KEEPS_MODELS: &str =
    "Its send(clear_cache=False) keeps the received and the sent model after each round.";

/// A kill, the allocation without room, the evidence for the verdict, the time to the limit of a growing process, and
/// growth inside a stage.
pub fn evidence(finding: &Finding) -> String {
    let process = finding.process;
    let keeps_models = process.series(Stage::CacheKept.name()).is_some();
    let kill = finding.kill.as_ref();
    let is_of_use = |limit: &TimeToLimit| {
        kill.is_none() && !(limit.seconds > FAR_SECONDS && process.has_ended())
    };
    let limit = finding.time_to_limit().filter(is_of_use);
    let sentences = [
        kill.map(|kill| killed(kill, process)),
        process.refused.as_ref().map(refused),
        Some(sentence::sentence(finding)),
        peaks(finding),
        limit.map(|estimate| limit_sentence(finding, &estimate)),
        gpu(finding),
        growth_inside(finding).map(inside),
        keeps_models.then(|| KEEPS_MODELS.to_owned()),
    ];
    let sentences = sentences.into_iter().flatten();
    // The first one follows the name of a verdict and a colon, each other one a full stop.
    let all = sentences.reduce(|text, mut next| {
        next[..1].make_ascii_uppercase();
        text + " " + &next
    });
    all.unwrap_or_default()
}

/// The settings or the code to change; `None` if nothing needs a change.
pub fn remedy(finding: &Finding) -> Option<String> {
    let kill = finding.kill.as_ref();
    let verdict = remedy::of_verdict(finding);
    let verdict = verdict.or_else(|| kill.map(|_| remedy_of_kill(finding.process)));
    let gpu = finding.gpu_growth.as_ref().map(remedy::of_gpu);
    let both = verdict.into_iter().chain(gpu.map(str::to_owned));
    both.reduce(|one, other| format!("{one}. {other}"))
}

/// `The highest RSS between the markers grows faster: by 40.0 MB/round (95 % interval: ...).`
fn peaks(finding: &Finding) -> Option<String> {
    let peak = finding.peak_growth.as_ref();
    let peak = peak.filter(|_| finding.quantity != Quantity::Peak)?;
    let rate = rate_per(&peak.slope, finding.unit.name(), Amount::Size);
    Some(format!("{HIGHEST_RSS} grows faster: by {rate}."))
}

/// `GPU memory grows by 12.0 MB/round (95 % interval: ...) at stage send: PyTorch's cache has reserved more.`
fn gpu(finding: &Finding) -> Option<String> {
    let growth = finding.gpu_growth.as_ref()?;
    let rate = rate_per(&growth.slope, finding.unit.name(), Amount::Size);
    let part = match growth.allocated {
        Allocated::Grows => "the program holds more in tensors",
        Allocated::GrowsInside => {
            "the program holds more in tensors, for which PyTorch's cache still has room"
        }
        Allocated::DoesNotGrow => {
            "PyTorch's cache has reserved more, and the tensors in it do not grow as fast"
        }
        Allocated::Unclear => "PyTorch's cache has reserved more",
    };
    let stage = printable(&finding.series.stage);
    Some(format!(
        "GPU memory grows by {rate} at stage {stage}: {part}."
    ))
}

/// `Within 72 s after the marker train of round 12 it held 690.0 MB more.`
fn inside(growth: GrowthInside) -> String {
    let (place, bytes) = (place(&growth.stage, growth.round), size(growth.bytes));
    let seconds = growth.seconds.filter(|seconds| *seconds >= 1.0);
    let within = seconds.map(|time| format!("Within {} after", duration(time)));
    let after = within.unwrap_or("After".to_owned());
    format!("{after} {place} it held {bytes} more.")
}

/// `Its control group grows by 15.0 MB/round. At this rate the process reaches its limit of 8.00 GB in about
/// 9.0 h (7.5 h to 11.2 h).`
fn limit_sentence(finding: &Finding, estimate: &TimeToLimit) -> String {
    let group = estimate.growth_of_group.map_or(String::new(), |rate| {
        let (rate, unit) = (size(rate), finding.unit);
        format!("Its control group grows by {rate}/{unit}. ")
    });
    let reaches = reaches_limit(finding.process, estimate);
    match estimate.latest <= 0.0 {
        true => format!("{group}The process {reaches}."),
        false => format!("{group}At this rate the process {reaches}."),
    }
}

/// `reaches its limit of 8.00 GB in about 9.0 h (7.5 h to 11.2 h)`; `would have reached` for a process that has ended
pub fn reaches_limit(process: &Process, estimate: &TimeToLimit) -> String {
    // Of processes that follow each other, the next one may still start.
    let (is_at, reaches) = match process.processes == 1 && process.has_ended() {
        true => ("was at", "would have reached"),
        false => ("is at", "reaches"),
    };
    let limit = match estimate.limit_of {
        LimitOf::Group => "its limit",
        LimitOf::Setting => "FLARENA_MEMORY_LIMIT",
        LimitOf::Option => "the limit",
        LimitOf::Machine => "the memory of the machine",
    };
    let limit = format!("{limit} of {}", size(estimate.limit_bytes));
    let times = [estimate.seconds, estimate.earliest, estimate.latest];
    let [time, earliest, latest] = times.map(duration);
    let bounds = match estimate.latest.is_finite() {
        _ if earliest == latest => String::new(),
        true => format!(" ({earliest} to {latest})"),
        false => format!(" ({earliest} at the earliest)"),
    };
    match () {
        () if estimate.latest <= 0.0 => format!("{is_at} {limit}"),
        () if estimate.left_bytes <= 0.0 && estimate.latest.is_finite() => {
            format!(
                "{reaches} {limit} within {latest}, after the kernel has dropped pages of files"
            )
        }
        () if estimate.seconds < SOON_SECONDS => format!("{reaches} {limit} within seconds"),
        () if estimate.earliest > FAR_SECONDS => format!("{reaches} {limit} in more than a year"),
        () => format!("{reaches} {limit} in about {time}{bounds}"),
    }
}

/// Candidates that are named.
const MAX_NAMED: usize = 3;

/// `The kernel most likely killed it for lack of memory, after the marker train of round 12. It held 650.0 MB at its last
/// marker, and its control group 950.0 MB of 1000.0 MB.`
///
/// `The kernel may have killed it for lack of memory, ... It is one of 2 candidates; the largest: site-1 TR, pid 7; ...`
fn killed(kill: &Kill, process: &Process) -> String {
    let (rss, limit) = (size(kill.rss_bytes), size(kill.limit));
    let stage = kill.stage.as_ref();
    let after = stage.map_or(String::new(), |stage| {
        format!(", after {}", place(stage, kill.round))
    });
    let last = process.last_visit();
    let group = match last.and_then(|(_, point)| point.sizes.get(Size::Cgroup)) {
        Some(held) => format!("its control group {} of {limit}", size(held)),
        None => format!("the limit of its control group is {limit}"),
    };
    let evidence = match kill.counted_by_kernel {
        true => "The kernel counted a kill in its control group after its last marker.",
        false => "Its markers end near the limit, and none has the stage exit.",
    };
    let (killed, candidates) = match &kill.candidates {
        None => ("most likely killed", String::new()),
        Some(Candidates { count, largest }) => {
            let names = largest[..largest.len().min(MAX_NAMED)].join("; ");
            let one = format!(" It is one of {count} candidates; the largest: {names}.");
            ("may have killed", one)
        }
    };
    format!(
        "The kernel {killed} it for lack of memory{after}. It held {rss} at its last marker, and {group}. \
         {evidence}{candidates}"
    )
}

/// `An allocation of 24.0 MB at train.py:12 in step found too little room below the memory limit.`
fn refused(refused: &Refused) -> String {
    let at = refused.asked_at.as_ref();
    let at = at.map_or(String::new(), |at| format!(" at {}", printable(at)));
    let asked = size(refused.asked_bytes as f64);
    format!("An allocation of {asked}{at} found too little room below the memory limit.")
}

/// For a process that does not grow from round to round.
fn remedy_of_kill(process: &Process) -> String {
    let lines = match process.records_sites() {
        true => "",
        false => ": `flarena run --sites` and `flarena who PID` name the lines",
    };
    format!(
        "give the job more memory, or make the peak smaller{lines}. With FLARENA_AT_LIMIT=fail it ends with an error instead"
    )
}

/// The facts about a process, besides its name and verdict.
pub fn facts(finding: &Finding) -> Vec<String> {
    let process = finding.process;
    let known = |name: &str, bytes: Option<f64>| Some(format!("{name} {}", size(bytes?)));
    let (unfinished, began_as) = (process.ended_without_exit, &process.began_as);
    let (job, became) = (process.job.as_ref(), process.became.as_ref());
    let shared = known("PSS", process.last_pss());
    let facts = [
        (unfinished > 0).then(|| format!("{unfinished} ended without the marker exit")),
        job.map(|job| format!("job {job}")),
        process.alloc.clone(),
        process.log.clone(),
        (!began_as.is_empty()).then(|| format!("began as {}", began_as.join(", then "))),
        became.map(|next| format!("became {next} by an exec")),
        observed_time(process),
        Some(format!("peak {}", size(process.peak_rss))),
        known("limit", process.cgroup_limit),
        shared.map(|text| text + " (shares memory with a forked process)"),
        last_marker(process),
    ];
    facts.into_iter().flatten().collect()
}

/// The time from the first marker to the last, such as `3.5 h`.
fn observed_time(process: &Process) -> Option<String> {
    let times = process.points().filter_map(|point| point.t);
    let first = times.clone().reduce(f64::min)?;
    let last = times.reduce(f64::max)?;
    (last > first).then(|| duration(last - first))
}

/// `last marker 2026-11-28 14:02:11 UTC, round 12, send`; `None` for a process that wrote the marker `exit` or became
/// another program.
fn last_marker(process: &Process) -> Option<String> {
    let (stage, point) = process.last_visit().filter(|_| !process.has_ended())?;
    let place = |stage: &str, point: &Point| match point.round {
        Some(round) => format!("round {round}, {}", printable(stage)),
        None => printable(stage),
    };
    // The lines of a log have the time of an unknown zone.
    let format = if process.pid.is_some() {
        "%F %T UTC, "
    } else {
        "%F %T, "
    };
    let time = point.t.map_or(String::new(), |t| utc(t, format));
    let own = process.last_own_visit().filter(|(own, _)| *own != stage);
    let own = own.map(|(own, before)| format!(" after {}", place(own, before)));
    let own = own.unwrap_or_default();
    Some(format!("last marker {time}{}{own}", place(stage, point)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{analyse, analyse_ended, finding_of};
    use crate::report::analyse::fixtures::{bytes, processes, sample, sizes};
    use crate::report::analyse::stats::Estimate;
    use crate::report::analyse::GpuGrowth;
    use crate::report::units::MB;
    use flarena_shared::marker::Marker;

    #[test]
    fn process_that_shares_memory_shows_its_pss_at_the_last_marker_that_has_it() {
        let marker = |pss: f64| {
            move |round: usize| {
                let pss = if round == 9 { f64::NAN } else { pss };
                sample(round, sizes(&[(Size::Rss, 300.0), (Size::Pss, pss)]))
            }
        };
        let text = |pss| facts(&finding_of((0..10).map(marker(pss)))).join(", ");
        let expected = "PSS 64.0 MB (shares memory with a forked process)";
        assert!(text(64.0).contains(expected), "{}", text(64.0));
        assert!(!text(f64::NAN).contains("PSS"), "{}", text(f64::NAN));
    }

    #[test]
    fn the_last_marker_has_its_date_and_the_zone_of_a_marker_with_a_time() {
        let text = |pid: Option<u32>| {
            let marker = |round: usize| Marker {
                pid,
                t: Some(1_795_156_366.0 + round as f64),
                ..sample(round, sizes(&[(Size::Rss, 300.0)]))
            };
            facts(&finding_of((0..10).map(marker))).join(", ")
        };
        let marker = "last marker 2026-11-20 06:32:55 UTC, round 9, send";
        assert!(text(Some(7)).contains(marker), "{}", text(Some(7)));
        let log = "last marker 2026-11-20 06:32:55, round 9, send";
        assert!(text(None).contains(log), "{}", text(None));
    }

    #[test]
    fn a_trainer_that_keeps_its_models_after_send_is_named() {
        let text = |stage: &'static str| {
            let marker = |round: usize| sample(round, sizes(&[(Size::Rss, 300.0)]));
            let kept = Marker {
                stage: stage.into(),
                ..marker(12)
            };
            let all = (0..12).map(marker).chain([kept]);
            evidence(&finding_of(all))
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
        let marker = |round: usize| Marker {
            t: Some(600.0 * round as f64),
            cgroup_limit_bytes: bytes(8192.0),
            ..sample(round, sizes(&[(Size::Rss, 3072.0 + 100.0 * round as f64)]))
        };
        let text = evidence(&finding_of((0..24).map(marker)));
        let end = " At this rate the process reaches its limit of 8.00 GB in about 4.7 h";
        assert!(text.contains(end), "{text}");
    }

    #[test]
    fn a_process_that_has_exited_does_not_reach_its_limit_unless_others_follow_it() {
        let marker = |round: usize| Marker {
            t: Some(600.0 * round as f64),
            cgroup_limit_bytes: bytes(8192.0),
            stage: if round < 24 { "send" } else { "exit" }.into(),
            ..sample(round, sizes(&[(Size::Rss, 3072.0 + 100.0 * round as f64)]))
        };
        let text = evidence(&finding_of((0..25).map(marker)));
        let end =
            " At this rate the process would have reached its limit of 8.00 GB in about 4.5 h";
        assert!(text.contains(end), "{text}");
        let mut process = processes((0..25).map(marker)).remove(0);
        process.processes = 25;
        let text = evidence(&analyse(vec![process])[0]);
        let end = " At this rate the process reaches its limit of 8.00 GB in about 4.5 h";
        assert!(text.contains(end), "{text}");
    }

    #[test]
    fn a_limit_in_more_than_a_year_has_no_days_and_is_no_part_of_a_process_that_has_exited() {
        let text = |last: &'static str| {
            let marker = |round: usize| Marker {
                t: Some(600.0 * round as f64),
                cgroup_limit_bytes: bytes(9e6),
                stage: if round < 24 { "send" } else { last }.into(),
                ..sample(round, sizes(&[(Size::Rss, 3072.0 + 100.0 * round as f64)]))
            };
            evidence(&finding_of((0..25).map(marker)))
        };
        let runs = text("send");
        assert!(runs.ends_with(" in more than a year."), "{runs}");
        let exited = text("exit");
        assert!(!exited.contains("limit"), "{exited}");
    }

    #[test]
    fn a_process_near_its_limit_reaches_it_within_seconds_and_one_at_the_limit_is_there() {
        let text = |limit: f64| {
            let marker = |round: usize| Marker {
                t: Some(round as f64),
                cgroup_limit_bytes: bytes(limit),
                ..sample(round, sizes(&[(Size::Rss, 1000.0 + 100.0 * round as f64)]))
            };
            evidence(&finding_of((0..24).map(marker)))
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

    #[test]
    fn an_allocation_that_did_not_fit_is_named_with_its_line_also_if_the_process_lived() {
        let text = |stage: &str, asked_at: Option<&str>| {
            let at_limit = Marker {
                stage: "at_limit".into(),
                asked_bytes: bytes(24.0),
                asked_at: asked_at.map(str::to_owned),
                ..sample(1, sizes(&[(Size::Rss, 300.0)]))
            };
            let [first, last] = [("load", 0), (stage, 2)].map(|(stage, seq)| Marker {
                stage: stage.into(),
                cgroup_limit_bytes: bytes(1000.0),
                ..sample(seq, sizes(&[(Size::Rss, 990.0)]))
            });
            evidence(&analyse_ended(processes([first, at_limit, last]))[0])
        };
        let lived = text("exit", Some("train.py:12 in step"));
        let start = "An allocation of 24.0 MB at train.py:12 in step found too little room below the memory limit. 1 round.";
        assert!(lived.starts_with(start), "{lived}");
        let killed = text("send", None);
        let part = "none has the stage exit. An allocation of 24.0 MB found too little room below the memory limit. 1 round.";
        assert!(killed.contains(part), "{killed}");
    }

    #[test]
    fn a_verdict_behind_a_full_stop_begins_with_a_capital() {
        let marker = |round: usize| {
            let live = 20.0 + 10.0 * round as f64;
            let kinds = [(Size::Rss, 300.0), (Size::Live, live)];
            let has_failed = round == 23;
            Marker {
                stage: if has_failed { "at_limit" } else { "send" }.into(),
                asked_bytes: bytes(24.0).filter(|_| has_failed),
                ..sample(round, sizes(&kinds))
            }
        };
        let text = |rounds| evidence(&finding_of((0..rounds).map(marker)));
        let alone = text(23);
        assert!(alone.starts_with("live memory grows"), "{alone}");
        let behind = text(24);
        assert!(
            behind.contains(" memory limit. Live memory grows"),
            "{behind}"
        );
    }

    #[test]
    fn growth_of_the_cache_has_its_rate_and_its_setting() {
        let slope = Estimate {
            value: 12.0 * MB,
            low: 11.0 * MB,
            high: 13.0 * MB,
        };
        let growth = GpuGrowth {
            slope,
            reserved_grows: true,
            allocated: Allocated::DoesNotGrow,
        };
        let finding = Finding {
            gpu_growth: Some(growth.clone()),
            ..finding_of([sample(0, sizes(&[(Size::Rss, 300.0)]))])
        };
        assert_eq!(
            gpu(&finding).unwrap(),
            "GPU memory grows by 12.0 MB/round (95 % interval: 11.0 to 13.0 MB) at stage send: PyTorch's cache has \
             reserved more, and the tensors in it do not grow as fast."
        );
        assert!(remedy::of_gpu(&growth).contains("cuda_empty_cache=True"));
    }

    #[test]
    fn growth_has_its_stage_round_and_rate() {
        let growth = |seconds, round| {
            inside(GrowthInside {
                stage: "train".into(),
                round,
                bytes: 690.0 * MB,
                seconds,
            })
        };
        assert_eq!(
            growth(Some(60.0), Some(12)),
            "Within 60 s after the marker train of round 12 it held 690.0 MB more."
        );
        assert_eq!(
            growth(None, None),
            "After the marker train it held 690.0 MB more."
        );
    }

    fn text_of_kill(counted_by_kernel: bool, stage: Option<&str>, candidates: &[&str]) -> String {
        let group = if counted_by_kernel { 990.0 } else { f64::NAN };
        let known = sizes(&[(Size::Rss, 950.0), (Size::Cgroup, group)]);
        let kill = Kill {
            counted_by_kernel,
            stage: stage.map(str::to_owned),
            round: stage.map(|_| 3),
            rss_bytes: 950.0 * MB,
            limit: 1000.0 * MB,
            candidates: (!candidates.is_empty()).then(|| Candidates {
                count: candidates.len(),
                largest: candidates.iter().map(|name| (*name).to_owned()).collect(),
            }),
        };
        killed(&kill, &processes([sample(3, known)])[0])
    }

    #[test]
    fn a_kill_has_its_last_marker_and_the_size_of_the_process_apart_from_that_of_its_group() {
        assert_eq!(
            text_of_kill(true, Some("train"), &[]),
            "The kernel most likely killed it for lack of memory, after the marker train of round 3. It held 950.0 MB at \
             its last marker, and its control group 990.0 MB of 1000.0 MB. The kernel counted a kill in its control \
             group after its last marker."
        );
        assert_eq!(
            text_of_kill(false, None, &[]),
            "The kernel most likely killed it for lack of memory. It held 950.0 MB at its last marker, and the limit of \
             its control group is 1000.0 MB. Its markers end near the limit, and none has the stage exit."
        );
    }

    #[test]
    fn one_of_several_candidates_may_have_been_killed() {
        let text = text_of_kill(true, None, &["a", "b"]);
        assert!(text.starts_with("The kernel may have killed it"), "{text}");
        assert!(
            text.ends_with("It is one of 2 candidates; the largest: a; b."),
            "{text}"
        );
    }
}
