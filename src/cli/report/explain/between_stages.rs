//! Sentences about what happened after a stage of the program: growth, and the end of the process.

use crate::report::analyse::{GrowthInside, HiddenPeak, Kill};
use crate::report::model::Process;
use crate::report::units::{duration, printable, size};

/// Shorter growth gives no rate per minute.
const MIN_SECONDS_FOR_RATE: f64 = 10.0;

/// `It grew by 690.0 MB in 1.2 min inside stage train of round 12, at 591 MB/min.`
/// `Inside stage train of round 12 it held 690.0 MB more for a time.`
pub fn growth(growth: &GrowthInside) -> String {
    if growth.has_fallen {
        let place = place(&growth.stage, growth.round);
        return format!(
            "Inside {place} it held {} more for a time.",
            size(growth.bytes)
        );
    }
    let mut text = format!("It grew by {}", size(growth.bytes));
    // False for NaN, too.
    let is_long = growth.seconds >= MIN_SECONDS_FOR_RATE;
    if is_long {
        text += &format!(" in {}", duration(growth.seconds));
    }
    text += &format!(" inside {}", place(&growth.stage, growth.round));
    if is_long {
        text += &format!(", at {}/min", size(growth.bytes / growth.seconds * 60.0));
    }
    text + "."
}

/// `Before the marker train of round 12 it held 538.9 MB for a time.`
pub fn hidden_peak(peak: &HiddenPeak) -> String {
    let (marker, held) = (in_round(&peak.stage, peak.round), size(peak.rss));
    format!("Before the marker {marker} it held {held} for a time.")
}

/// `The kernel most likely killed it for lack of memory, at 950.0 MB, with a limit of 1000.0 MB, in stage
/// train of round 12.`
pub fn kill(kill: &Kill) -> String {
    let mut text = "The kernel most likely killed it for lack of memory,".to_owned();
    text += &match kill.limit.is_nan() {
        true => format!(" at {}", size(kill.rss)),
        false => format!(
            " at {}, with a limit of {}",
            size(kill.rss),
            size(kill.limit)
        ),
    };
    if let Some(stage) = &kill.stage {
        text += &format!(", in {}", place(stage, kill.round));
    }
    text += match kill.is_counted {
        true => ". The kernel has counted a kill in its control group.",
        false => ". Its markers end near the limit, and none has the stage exit.",
    };
    text
}

/// For a process that was killed and does not grow from round to round.
pub fn kill_remedy(process: &Process) -> &'static str {
    match process.records_sites() {
        true => "give the job more memory, or make the peak smaller",
        false => {
            "give the job more memory, or make the peak smaller: `flarena run --sites` and \
             `flarena who PID` name the lines"
        }
    }
}

/// `train of round 12`
fn in_round(stage: &str, round: Option<i64>) -> String {
    let stage = printable(stage);
    match round {
        Some(round) => format!("{stage} of round {round}"),
        None => stage.to_string(),
    }
}

/// `stage train of round 12`
fn place(stage: &str, round: Option<i64>) -> String {
    format!("stage {}", in_round(stage, round))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::units::MB;

    #[test]
    fn growth_has_its_stage_round_and_rate() {
        let growth_of = |seconds, round, has_fallen| {
            growth(&GrowthInside {
                stage: "train".into(),
                round,
                bytes: 690.0 * MB,
                seconds,
                has_fallen,
            })
        };
        let grown = |seconds, round| growth_of(seconds, round, false);
        assert_eq!(
            growth_of(60.0, Some(12), true),
            "Inside stage train of round 12 it held 690.0 MB more for a time."
        );
        assert_eq!(
            grown(60.0, Some(12)),
            "It grew by 690.0 MB in 60 s inside stage train of round 12, at 690.0 MB/min."
        );
        assert_eq!(
            grown(f64::NAN, None),
            "It grew by 690.0 MB inside stage train."
        );
    }

    #[test]
    fn a_kill_has_the_size_the_limit_and_the_stage() {
        let killed = |stage: Option<&str>, limit, is_counted| {
            kill(&Kill {
                stage: stage.map(str::to_owned),
                round: stage.map(|_| 3),
                rss: 950.0 * MB,
                limit,
                is_counted,
            })
        };
        assert_eq!(
            killed(Some("train"), 1000.0 * MB, true),
            "The kernel most likely killed it for lack of memory, at 950.0 MB, with a limit of \
             1000.0 MB, in stage train of round 3. The kernel has counted a kill in its control \
             group."
        );
        assert_eq!(
            killed(None, f64::NAN, false),
            "The kernel most likely killed it for lack of memory, at 950.0 MB. Its markers end near \
             the limit, and none has the stage exit."
        );
    }
}
