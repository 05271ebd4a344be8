//! Sentences about a process that the kernel most likely killed, and what to do.

use super::phrases::place;
use crate::report::analyse::{Candidates, Kill};
use crate::report::model::{Process, Refused, Size};
use crate::report::units::{printable, size};

/// Candidates that are named.
const MAX_NAMED: usize = 3;

/// `The kernel most likely killed it for lack of memory, after the marker train of round 12. It held 650.0 MB at its last
/// marker, and its control group 950.0 MB of 1000.0 MB.`
///
/// `The kernel may have killed it for lack of memory, ... It is one of 2 candidates; the largest: site-1 TR, pid 7; ...`
pub fn sentence(kill: &Kill, process: &Process) -> String {
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
pub fn refused(refused: &Refused) -> String {
    let at = refused.asked_at.as_ref();
    let at = at.map_or(String::new(), |at| format!(" at {}", printable(at)));
    let asked = size(refused.asked_bytes as f64);
    format!("An allocation of {asked}{at} found too little room below the memory limit.")
}

/// For a process that does not grow from round to round.
pub fn remedy(process: &Process) -> String {
    let lines = match process.records_sites() {
        true => "",
        false => ": `flarena run --sites` and `flarena who PID` name the lines",
    };
    format!(
        "give the job more memory, or make the peak smaller{lines}. With FLARENA_AT_LIMIT=fail it ends with an error instead"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::units::MB;

    fn text(counted_by_kernel: bool, stage: Option<&str>, candidates: &[&str]) -> String {
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
        sentence(&kill, &processes([sample(3, known)])[0])
    }

    #[test]
    fn a_kill_has_its_last_marker_and_the_size_of_the_process_apart_from_that_of_its_group() {
        assert_eq!(
            text(true, Some("train"), &[]),
            "The kernel most likely killed it for lack of memory, after the marker train of round 3. It held 950.0 MB at \
             its last marker, and its control group 990.0 MB of 1000.0 MB. The kernel counted a kill in its control \
             group after its last marker."
        );
        assert_eq!(
            text(false, None, &[]),
            "The kernel most likely killed it for lack of memory. It held 950.0 MB at its last marker, and the limit of \
             its control group is 1000.0 MB. Its markers end near the limit, and none has the stage exit."
        );
    }

    #[test]
    fn one_of_several_candidates_may_have_been_killed() {
        let text = text(true, None, &["a", "b"]);
        assert!(text.starts_with("The kernel may have killed it"), "{text}");
        assert!(
            text.ends_with("It is one of 2 candidates; the largest: a; b."),
            "{text}"
        );
    }
}
