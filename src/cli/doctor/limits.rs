//! Limits around a process: the memory limit and the CPU quota of its cgroup, and swap.

use super::finding::Finding;
use super::subject::Subject;
use super::system::System;
use crate::proc::{Cgroup, Status};
use crate::units::bytes;

/// From this share of the limit on, the kernel reclaims constantly, and one more model does not
/// fit.
const NEAR: f64 = 0.9;

pub fn of_process(subject: &Subject) -> Vec<Finding> {
    cgroup_findings(subject.cgroup.as_ref(), &subject.system)
}

pub fn cgroup_findings(cgroup: Option<&Cgroup>, system: &System) -> Vec<Finding> {
    let Some(cgroup) = cgroup else {
        return vec![Finding::note(
            "cgroup",
            "no cgroup is readable, so the memory limit is unknown",
        )];
    };
    let mut findings = vec![memory(cgroup)];
    findings.extend(quota(cgroup, system));
    findings
}

fn memory(cgroup: &Cgroup) -> Finding {
    let used = cgroup.memory.used_bytes.unwrap_or(0);
    let (Some(limit), Some(fullness)) = (cgroup.memory.limit_bytes, cgroup.fullness()) else {
        return Finding::ok(
            "cgroup",
            format!("the cgroup has no memory limit and uses {}", bytes(used)),
        );
    };
    let unreclaimable = cgroup.memory.unreclaimable_bytes().unwrap_or(0);
    let share = format!(
        "{} of {} ({:.0} %)",
        bytes(unreclaimable),
        bytes(limit),
        fullness * 100.0
    );
    if fullness < NEAR {
        let fact = format!("the cgroup uses {share}");
        return Finding::ok("cgroup", fact).bytes(unreclaimable);
    }
    let fact = format!(
        "the cgroup is near its memory limit: {share}. At the limit the kernel kills a process"
    );
    let remedy = "run `flarena trim --all` now; if that returns little, raise the limit. With FLARENA_AT_LIMIT=fail \
                  Python raises MemoryError where the kernel would kill";
    Finding::warning("cgroup", fact)
        .remedy(remedy)
        .bytes(unreclaimable)
}

fn quota(cgroup: &Cgroup, system: &System) -> Option<Finding> {
    let cpus = cgroup.cpus.filter(|cpus| *cpus < system.cores as f64)?;
    let fact = format!(
        "the cgroup may use {cpus} of {} processors; flarena creates arenas for these, a plain malloc for all",
        system.cores
    );
    Some(Finding::note("cpu-quota", fact))
}

pub fn swap(subject: &Subject) -> Option<Finding> {
    swap_finding(&subject.status)
}

/// Swapped pages are slow to return, and RSS does not count them.
fn swap_finding(status: &Status) -> Option<Finding> {
    let swapped = Some(status.swap_bytes).filter(|swapped| *swapped > 0)?;
    let fact = format!(
        "{} of this process are swapped out: RSS does not count them, and they are slow to return",
        bytes(swapped)
    );
    let finding = if swapped * 20 > status.rss_bytes {
        let remedy =
            "give it more memory, or set FLARENA_MEMORY_LIMIT, so that it returns free memory earlier";
        Finding::warning("swap", fact).remedy(remedy)
    } else {
        Finding::note("swap", fact)
    };
    Some(finding.bytes(swapped))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use flarena_shared::cgroup::Memory;

    fn cgroup(used: u64, reclaimable: u64, cpus: Option<f64>) -> Cgroup {
        Cgroup {
            memory: Memory {
                used_bytes: Some(used),
                reclaimable_bytes: Some(reclaimable),
                limit_bytes: Some(100),
            },
            cpus,
        }
    }

    fn levels(cgroup: &Cgroup) -> Vec<(&'static str, Level)> {
        let system = System {
            cores: 8,
            ..System::default()
        };
        cgroup_findings(Some(cgroup), &system)
            .iter()
            .map(|f| (f.id, f.level))
            .collect()
    }

    #[test]
    fn a_full_cgroup_is_a_warning_unless_file_pages_fill_it() {
        assert_eq!(levels(&cgroup(95, 0, None)), [("cgroup", Level::Warning)]);
        assert_eq!(levels(&cgroup(95, 50, None)), [("cgroup", Level::Ok)]);
    }

    #[test]
    fn a_quota_below_the_processors_is_noted() {
        assert!(levels(&cgroup(1, 0, Some(2.0))).contains(&("cpu-quota", Level::Note)));
        assert_eq!(levels(&cgroup(1, 0, Some(8.0))).len(), 1);
    }

    #[test]
    fn much_swap_is_a_warning_and_little_swap_a_note() {
        let swapped = |swap_bytes| Status {
            swap_bytes,
            rss_bytes: 1000,
            ..Status::default()
        };
        let level = |swap_bytes| Some(swap_finding(&swapped(swap_bytes))?.level);
        assert_eq!(level(0), None);
        assert_eq!(level(10), Some(Level::Note));
        assert_eq!(level(500), Some(Level::Warning));
    }
}
