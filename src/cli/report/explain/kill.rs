//! Sentences about a process that the kernel most likely killed, and what to do.

use super::between_stages::place;
use crate::report::analyse::Kill;
use crate::report::model::Process;
use crate::report::units::size;

/// Candidates that are named.
const MAX_NAMED: usize = 3;

/// `The kernel most likely killed it for lack of memory, at 950.0 MB, with a limit of 1000.0 MB, in stage
/// train of round 12.`
///
/// `The kernel may have killed it for lack of memory, ... It is one of 2 candidates; the largest: site-1 TR, pid 7; ...`
pub fn sentence(kill: &Kill) -> String {
    let (rss, limit) = (size(kill.rss), size(kill.limit));
    let stage = kill.stage.as_ref();
    let stage = stage.map_or(String::new(), |stage| {
        format!(", in {}", place(stage, kill.round))
    });
    let evidence = match kill.is_counted {
        true => "The kernel counted a kill in its control group after its last marker.",
        false => "Its markers end near the limit, and none has the stage exit.",
    };
    let (killed, candidates) = match kill.candidate_count {
        1 => ("most likely killed", String::new()),
        n => {
            let named = &kill.candidates[..kill.candidates.len().min(MAX_NAMED)];
            let names = named.join("; ");
            let text = format!(" It is one of {n} candidates; the largest: {names}.");
            ("may have killed", text)
        }
    };
    format!(
        "The kernel {killed} it for lack of memory, at {rss}, with a limit of {limit}{stage}. {evidence}{candidates}"
    )
}

/// For a process that does not grow from round to round.
pub fn remedy(process: &Process) -> &'static str {
    match process.records_sites() {
        true => {
            "give the job more memory, or make the peak smaller. With FLARENA_AT_LIMIT=fail it ends with an error instead"
        }
        false => {
            "give the job more memory, or make the peak smaller: `flarena run --sites` and \
             `flarena who PID` name the lines. With FLARENA_AT_LIMIT=fail it ends with an error instead"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::units::MB;

    fn text(is_counted: bool, stage: Option<&str>, candidates: &[&str]) -> String {
        sentence(&Kill {
            is_counted,
            stage: stage.map(str::to_owned),
            round: stage.map(|_| 3),
            rss: 950.0 * MB,
            limit: 1000.0 * MB,
            candidate_count: candidates.len().max(1),
            candidates: candidates.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    #[test]
    fn a_kill_has_the_size_the_limit_and_the_stage() {
        assert_eq!(
            text(true, Some("train"), &[]),
            "The kernel most likely killed it for lack of memory, at 950.0 MB, with a limit of 1000.0 MB, in stage \
             train of round 3. The kernel counted a kill in its control group after its last marker."
        );
        assert_eq!(
            text(false, None, &[]),
            "The kernel most likely killed it for lack of memory, at 950.0 MB, with a limit of 1000.0 MB. Its markers \
             end near the limit, and none has the stage exit."
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
