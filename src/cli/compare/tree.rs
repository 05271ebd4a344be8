//! The processes of a command: all descendants of this process, which orphans get as their parent.

use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};

use crate::proc::{Process, ReadError, Stat};

/// One process of the tree.
pub struct Member {
    process: Process,
    stat: Stat,
}

/// Memory and CPU time of the tree at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Use {
    pub pss_bytes: u64,
    pub cpu_ticks: u64,
    /// Processes whose memory may not be read.
    pub denied: usize,
}

/// All descendants of this process, zombies included.
pub fn members() -> Vec<Member> {
    let own = std::process::id() as i32;
    let all = Process::all().into_iter().filter_map(|process| {
        let stat = process.stat().ok()?;
        Some(Member { process, stat })
    });
    let all: Vec<Member> = all.collect();
    let parents: Vec<(i32, i32)> = all.iter().map(|m| (m.process.pid, m.stat.parent)).collect();
    let found = descendants(&parents, own);
    let is_found = |member: &Member| found.contains(&member.process.pid);
    all.into_iter().filter(is_found).collect()
}

/// The pids of all descendants, from (pid, parent) pairs.
fn descendants(parents: &[(i32, i32)], root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents
            .iter()
            .filter(|pair| pair.1 == parent && pair.0 != parent);
        found.extend(children.map(|pair| pair.0));
        next += 1;
    }
    found.remove(0);
    found
}

pub fn use_of(members: &[Member]) -> Use {
    let mut total = Use::default();
    for member in members {
        total.cpu_ticks += member.stat.cpu_ticks;
        if member.stat.is_zombie {
            continue;
        }
        match member.process.pss_bytes() {
            Ok(pss_bytes) => total.pss_bytes += pss_bytes,
            Err(ReadError::Denied(_)) => total.denied += 1,
            Err(_) => {}
        }
    }
    total
}

/// Waits for ended orphans. The caller waits for the command itself.
pub fn reap_orphans(members: &[Member], command: i32) {
    let own = std::process::id() as i32;
    for member in members {
        let is_orphan = member.stat.parent == own && member.process.pid != command;
        if let (true, Some(pid)) = (
            is_orphan && member.stat.is_zombie,
            Pid::from_raw(member.process.pid),
        ) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

pub fn signal_all(members: &[Member], signal: Signal) {
    for pid in live(members).filter_map(|member| Pid::from_raw(member.process.pid)) {
        let _ = kill_process(pid, signal);
    }
}

/// The processes that have not ended.
pub fn live(members: &[Member]) -> impl Iterator<Item = &Member> {
    members.iter().filter(|member| !member.stat.is_zombie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_of_all_generations_are_found_and_others_are_not() {
        let parents = [(1, 0), (9, 1), (10, 9), (12, 11), (11, 10), (20, 1)];
        let mut found = descendants(&parents, 9);
        found.sort_unstable();
        assert_eq!(found, [10, 11, 12]);
        assert!(descendants(&parents, 20).is_empty());
    }
}
