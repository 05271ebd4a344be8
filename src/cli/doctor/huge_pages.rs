//! Huge pages of 16 KB to 1 MB: whether they are on, their benefit, and the commands that turn them
//! on. The doctor does not change the switches, because they affect the whole machine.

use std::ffi::CStr;
use std::fs;

use flarena_shared::huge_pages::{Advice, Choice, Offer, Policy, TOP_FILE};

use super::finding::Finding;

/// The size with the best measurements (docs/huge-pages.md).
const BEST_KB: u32 = 64;

pub fn read() -> Offer {
    Offer::read(|file: &CStr, top| {
        let text = fs::read(file.to_str().ok()?).ok()?;
        Policy::parse(&text, top)
    })
}

/// `None` if the kernel does not have these sizes, or gives pages of 2 MB to every program.
pub fn finding(offer: &Offer) -> Option<Finding> {
    let sizes = |policy| sizes(offer.smaller_on(policy));
    let (asked, unasked) = (sizes(Policy::OnAdvice), sizes(Policy::Always));
    let decision = offer.decide(Choice::Auto);
    if !offer.by_size || offer.large == Policy::Always {
        return None;
    }
    if decision.fresh == Advice::Ask {
        let fact = format!("pages of {asked} are available on request, and large blocks ask for them (FLARENA_HUGE)");
        return Some(Finding::ok("huge-pages", fact));
    }
    if !unasked.is_empty() {
        let fact = format!("every program gets pages of {unasked}, also for large blocks");
        return Some(Finding::ok("huge-pages", fact));
    }
    let fact = if asked.is_empty() {
        format!(
            "huge pages of {BEST_KB} KB are off. With them, jobs that move models use a quarter to a half less CPU time"
        )
    } else {
        format!(
            "pages of {asked} are available on request, but a request gives pages of 2 MB first, which often cost \
             more than they save. So large blocks ask for none"
        )
    };
    Some(remedied(
        Finding::note("huge-pages", fact),
        offer,
        asked.is_empty(),
    ))
}

/// Adds the commands for a host. The document has the lines that repeat them at each start.
fn remedied(finding: Finding, offer: &Offer, smaller_is_off: bool) -> Finding {
    let file = |kb: u32| format!("hugepages-{kb}kB/enabled");
    let mut switches = Vec::new();
    if smaller_is_off {
        switches.push((file(BEST_KB), "madvise"));
    }
    if offer.large == Policy::OnAdvice {
        // Larger sizes are off by default.
        switches.push((file(2048), "never"));
    }
    let loss = if offer.large == Policy::OnAdvice {
        " (programs that ask for pages of 2 MB then get smaller ones)"
    } else {
        ""
    };
    let folder = TOP_FILE.to_str().unwrap_or_default();
    let folder = folder.trim_end_matches("/enabled");
    let finding = finding.remedy(format!("as root on the host{loss}:"));
    // Whole paths do not fit beside the findings of a terminal with 80 columns.
    let mut finding = finding.command(format_args!("cd {folder}"));
    for (file, word) in &switches {
        finding = finding.command(format_args!("echo {word} > {file}"));
    }
    finding.then("docs/huge-pages.md shows how to keep this after a restart, and in Kubernetes")
}

fn sizes(kb: impl Iterator<Item = u32>) -> String {
    let name = |kb: u32| match kb {
        1024 => "1 MB".to_owned(),
        kb => format!("{kb} KB"),
    };
    kb.map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn offer(large: Policy, of_64_kb: Policy) -> Offer {
        let mut smaller = [Policy::Never; 7];
        smaller[2] = of_64_kb;
        Offer {
            by_size: true,
            large,
            smaller,
        }
    }

    fn finding_for(large: Policy, of_64_kb: Policy) -> Finding {
        finding(&offer(large, of_64_kb)).expect("a finding")
    }

    #[test]
    fn sizes_that_are_off_are_noted_with_the_command() {
        let off = finding_for(Policy::Never, Policy::Never);
        let remedy = off.remedy.expect("a line");
        assert_eq!(off.level, Level::Note);
        assert!(remedy.contains(
            "\n    cd /sys/kernel/mm/transparent_hugepage\n    echo madvise > hugepages-64kB/enabled\n"
        ));
        assert_eq!(remedy.matches("/sys/kernel").count(), 1);
        assert!(!remedy.contains("2048kB"));
    }

    #[test]
    fn two_mb_pages_on_request_are_noted_with_the_command() {
        let both = finding_for(Policy::OnAdvice, Policy::OnAdvice);
        assert!(both
            .fact
            .starts_with("pages of 64 KB are available on request, but"));
        let remedy = both.remedy.expect("a line");
        assert!(remedy.contains("echo never > hugepages-2048kB/enabled\n"));
        assert!(!remedy.contains("64kB"));
        let off = finding_for(Policy::OnAdvice, Policy::Never)
            .remedy
            .expect("two lines");
        assert!(off.contains("hugepages-64kB/enabled\n    echo never > "));
    }

    #[test]
    fn sizes_that_are_on_are_fine() {
        for (large, small) in [
            (Policy::Never, Policy::OnAdvice),
            (Policy::OnAdvice, Policy::Always),
        ] {
            assert_eq!(finding_for(large, small).level, Level::Ok);
        }
    }

    #[test]
    fn without_switches_per_size_or_with_2_mb_always_on_there_is_no_finding() {
        assert_eq!(finding(&Offer::default()), None);
        assert_eq!(finding(&offer(Policy::Always, Policy::Never)), None);
    }
}
