//! Rules about the machine, and about the memory around a process: its cgroup, swap, temporary files.

use flarena_shared::huge_pages::{Offer, Policy};

use super::finding::{Finding, Level};
use super::subject::Subject;
use crate::units::bytes;

pub fn loadable(s: &Subject) -> Option<Finding> {
    Some(match s.library.as_ref()? {
        Ok(library) => {
            let fact = format!("{} {} loads here", library.path.display(), library.version);
            if library.hooks.is_some() {
                return Some(Finding::ok(fact));
            }
            Finding::note(fact + ", but without its Python hooks: no stage of NVFlare is marked")
                .remedy("install the whole package (pip or Debian)")
        }
        Err(unusable) => {
            let repair = match (&unusable.path, s.get("FLARENA_LIB")) {
                (Some(_), Some(_)) => "correct FLARENA_LIB, or unset it",
                (Some(_), None) => "correct the file, or install flarena again",
                (None, _) => "install flarena here",
            };
            let remedy = format!("{repair}; until then jobs start with the system's malloc");
            Finding::error(unusable.to_string()).remedy(remedy)
        }
    })
}

pub fn always_huge(s: &Subject) -> Option<Finding> {
    let is_always = s.huge_pages.large == Policy::Always;
    let fact = "transparent huge pages are always on, so small blocks become resident in steps of 2 MB; in jemalloc mode \
                flarena turns them off";
    let remedy =
        "as root on the host:\n    echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    is_always.then(|| Finding::note(fact).remedy(remedy))
}

/// Huge pages of 16 KB to 1 MB. `None` if the kernel does not have these sizes, or gives pages of 2 MB to every program.
/// The doctor does not change the switches, because they affect the whole machine.
pub fn huge_pages(s: &Subject) -> Option<Finding> {
    let offer = &s.huge_pages;
    let on_request = sizes(offer, Policy::OnAdvice);
    let unasked = sizes(offer, Policy::Always);
    if !offer.by_size || offer.large == Policy::Always {
        return None;
    }
    if offer.large == Policy::Never && !on_request.is_empty() {
        let fact = format!("pages of {on_request} are available on request, and large blocks ask for them (FLARENA_HUGE)");
        return Some(Finding::ok(fact));
    }
    if !unasked.is_empty() {
        let fact = format!("every program gets pages of {unasked}, also for large blocks");
        return Some(Finding::ok(fact));
    }
    let fact = if on_request.is_empty() {
        "huge pages of 64 KB are off. With them, jobs that move models use a quarter to a half less CPU time".to_owned()
    } else {
        format!(
            "pages of {on_request} are available on request, but a request gives pages of 2 MB first, which often cost \
             more than they save. So large blocks ask for none"
        )
    };
    let remedy = "docs/huge-pages.md has the commands for root, for each boot, and for Kubernetes";
    Some(Finding::note(fact).remedy(remedy))
}

fn sizes(offer: &Offer, policy: Policy) -> String {
    let names = offer.smaller_on(policy).map(|kb| format!("{kb} KB"));
    names.collect::<Vec<_>>().join(", ")
}

/// From this share of the limit on, the kernel reclaims constantly, and one more model does not fit.
const NEAR: f64 = 0.9;

pub fn cgroup(s: &Subject) -> Option<Finding> {
    let cgroup = s.cgroup.as_ref()?;
    let (Some(limit), Some(fullness)) = (cgroup.memory.limit_bytes, cgroup.fullness()) else {
        let used = bytes(cgroup.memory.used_bytes.unwrap_or(0));
        let fact = format!("the cgroup has no memory limit and uses {used}");
        return Some(Finding::ok(fact));
    };
    let used = cgroup.memory.unreclaimable_bytes().unwrap_or(0);
    let percent = fullness * 100.0;
    let share = format!("{} of {} ({percent:.0} %)", bytes(used), bytes(limit));
    let finding = if fullness < NEAR {
        Finding::ok(format!("the cgroup uses {share}"))
    } else {
        let fact = format!(
            "the cgroup is near its memory limit: {share}. At the limit the kernel kills a process"
        );
        Finding::warning(fact).remedy(
            "run `flarena trim --all` now; if that returns little, raise the limit. With FLARENA_AT_LIMIT=fail \
             Python raises MemoryError where the kernel would kill",
        )
    };
    Some(finding.bytes(used))
}

/// NVFlare 2.8 and later offload tensors to the folder of temporary files.
pub fn temporary(s: &Subject) -> Option<Finding> {
    let (folder, size) = s.temporary.as_ref()?;
    let level = s.role().map_or(Level::Note, |_| Level::Warning);
    let size = bytes(*size);
    let fact = format!(
        "temporary files go to {folder}, which is in memory (tmpfs, {size}), so NVFlare's disk offload of tensors saves nothing"
    );
    let remedy = "export TMPDIR=/var/tmp, or another folder on a disk, before NVFlare starts";
    Some(Finding::new(level, fact).remedy(remedy))
}
