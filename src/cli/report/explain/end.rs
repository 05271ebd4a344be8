//! Sentences about a process that ended without the marker `exit`, and what to do.

use super::between_stages::place;
use crate::report::analyse::{End, EndCause, Life};
use crate::report::calendar::{date, time_of_day};
use crate::report::model::Process;
use crate::report::units::size;

/// `The kernel most likely killed it for lack of memory, at 950.0 MB, with a limit of 1000.0 MB, in stage
/// train of round 12.`
///
/// `Its markers stop at 12:30:05 UTC on 2026-11-20, in stage train of round 12, at 812.4 MB, without the
/// marker exit, while other processes went on.`
pub fn sentence(end: &End) -> String {
    let stage = end.stage.as_ref().map_or(String::new(), |stage| {
        format!(", in {}", place(stage, end.round))
    });
    let rss = size(end.rss);
    if let EndCause::Unknown(life) = end.cause {
        let (time, day) = (time_of_day(end.t), date(end.t));
        if end.is_alone {
            return format!(
                "Its markers stop at {time} UTC on {day}{stage}, at {rss}, without the marker exit. It does not run \
                 any more, so a signal or _exit ended it, or its file is not complete."
            );
        }
        let ended = match life {
            Life::Unknown => "Either a signal or _exit ended it, or it hangs.",
            _ => "It does not run any more: a signal or _exit ended it.",
        };
        return format!(
            "Its markers stop at {time} UTC on {day}{stage}, at {rss}, without the marker exit, while \
             other processes went on. {ended}"
        );
    }
    let limit = match end.limit.is_nan() {
        true => String::new(),
        false => format!(", with a limit of {}", size(end.limit)),
    };
    let evidence = match end.cause {
        EndCause::CountedKill => "The kernel has counted a kill in its control group.",
        _ => "Its markers end near the limit, and none has the stage exit.",
    };
    format!(
        "The kernel most likely killed it for lack of memory, at {rss}{limit}{stage}. {evidence}"
    )
}

/// For a process that does not grow from round to round.
pub fn remedy(end: &End, process: &Process) -> &'static str {
    match (end.is_kill(), process.records_sites()) {
        (false, _) => {
            "look for the cause at this time: in the kernel's log (`journalctl -k` or `dmesg -T`), in \
             the process's own log, and in the log of the process that started it, which may show the exit \
             status or the signal"
        }
        (true, true) => "give the job more memory, or make the peak smaller",
        (true, false) => {
            "give the job more memory, or make the peak smaller: `flarena run --sites` and \
             `flarena who PID` name the lines"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::units::MB;

    fn text(cause: EndCause, stage: Option<&str>, limit: f64) -> String {
        sentence(&End {
            cause,
            t: 1_795_156_366.0,
            stage: stage.map(str::to_owned),
            round: stage.map(|_| 3),
            rss: 950.0 * MB,
            is_alone: false,
            limit,
        })
    }

    #[test]
    fn a_kill_has_the_size_the_limit_and_the_stage() {
        assert_eq!(
            text(EndCause::CountedKill, Some("train"), 1000.0 * MB),
            "The kernel most likely killed it for lack of memory, at 950.0 MB, with a limit of \
             1000.0 MB, in stage train of round 3. The kernel has counted a kill in its control \
             group."
        );
        assert_eq!(
            text(EndCause::NearLimit, None, f64::NAN),
            "The kernel most likely killed it for lack of memory, at 950.0 MB. Its markers end near \
             the limit, and none has the stage exit."
        );
    }

    #[test]
    fn an_end_of_unknown_cause_has_the_time_and_no_word_of_memory() {
        let stops =
            "Its markers stop at 06:32:46 UTC on 2026-11-20, in stage train of round 3, at \
                     950.0 MB, without the marker exit, while other processes went on. ";
        let with = |life| text(EndCause::Unknown(life), Some("train"), 1000.0 * MB);
        assert_eq!(
            with(Life::Ended),
            format!("{stops}It does not run any more: a signal or _exit ended it.")
        );
        assert_eq!(
            with(Life::Unknown),
            format!("{stops}Either a signal or _exit ended it, or it hangs.")
        );
    }
}
