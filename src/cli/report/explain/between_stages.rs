//! The sentence about growth after a stage of the program.

use crate::report::analyse::GrowthInside;
use crate::report::units::{duration, printable, size};

/// Shorter growth gives no rate per minute.
const MIN_SECONDS_FOR_RATE: f64 = 10.0;

/// `It grew by 690.0 MB in 1.2 min inside stage train of round 12, at 591 MB/min.`
/// `Inside stage train of round 12 it held 690.0 MB more for a time.`
pub fn growth(growth: &GrowthInside) -> String {
    let (place, bytes) = (place(&growth.stage, growth.round), size(growth.bytes));
    match () {
        () if growth.has_fallen => format!("Inside {place} it held {bytes} more for a time."),
        () if growth.seconds >= MIN_SECONDS_FOR_RATE => {
            let seconds = duration(growth.seconds);
            let rate = size(growth.bytes / growth.seconds * 60.0);
            format!("It grew by {bytes} in {seconds} inside {place}, at {rate}/min.")
        }
        () => format!("It grew by {bytes} inside {place}."),
    }
}

/// `stage train of round 12`
pub fn place(stage: &str, round: Option<i64>) -> String {
    let stage = printable(stage);
    match round {
        Some(round) => format!("stage {stage} of round {round}"),
        None => format!("stage {stage}"),
    }
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
}
