//! Whether hibernation (`FLARENA_HIBERNATE`) works here, or would help an idle process: it needs
//! swap.

use std::fs;

use flarena_shared::settings::Hibernate;

use super::finding::Finding;
use crate::control::Stats;
use crate::proc::Cgroup;
use crate::units::bytes;

/// Smaller amounts in large blocks are not reported.
const MIN_LARGE_BYTES: u64 = 64 << 20;
/// Processes that were observed for less time are not reported.
const MIN_OBSERVED_MS: u64 = 60_000;
/// Processes that were idle for a smaller share of that time, in percent, are not reported.
const MIN_IDLE_PERCENT: u64 = 50;

/// Usable swap: the system's free swap, limited by the cgroup.
pub fn room_bytes(cgroup: Option<&Cgroup>) -> u64 {
    let free = free_swap_bytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    let left = cgroup.and_then(|cgroup| cgroup.swap_left_bytes);
    free.min(left.unwrap_or(u64::MAX))
}

fn free_swap_bytes(meminfo: &str) -> u64 {
    let free = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("SwapFree:"));
    let kilobytes = free.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// The finding for a command started here.
pub fn of_machine(setting: Hibernate, room_bytes: u64) -> Option<Finding> {
    let Hibernate::AfterSeconds(seconds) = setting else {
        return None;
    };
    Some(when_on(&seconds.to_string(), room_bytes))
}

/// The finding for a live process.
pub fn of_process(setting: &str, stats: &Stats, room_bytes: u64) -> Option<Finding> {
    if setting != "off" {
        let out = stats.number("hibernated_bytes").filter(|out| *out > 0);
        return Some(match out {
            Some(out) => {
                let fact = format!(
                    "the process is idle, and {} of its memory are in swap",
                    bytes(out)
                );
                Finding::ok("hibernate", fact).bytes(out)
            }
            None => when_on(setting, room_bytes),
        });
    }
    let number = |group, name| {
        let mut fields = stats.group(group);
        fields.find(|(key, _)| *key == name)?.1.as_u64()
    };
    let live = number("recycler", "live_bytes")?;
    let watched = number("governor", "watched_ms_total")?;
    let percent = number("governor", "idle_ms_total")? * 100 / watched.max(1);
    if live < MIN_LARGE_BYTES || watched < MIN_OBSERVED_MS || percent < MIN_IDLE_PERCENT {
        return None;
    }
    let fact = format!(
        "the process was idle for {percent} % of the time and holds {} in large blocks",
        bytes(live)
    );
    let finding = if room_bytes >= live {
        Finding::note("hibernate", fact)
            .remedy("set FLARENA_HIBERNATE=60 to page them out to swap while it is idle (docs/hibernate.md)")
    } else {
        let lacks = format!(
            "{fact}. FLARENA_HIBERNATE could page them out, but there is not enough free swap"
        );
        Finding::note("hibernate", lacks)
    };
    Some(finding.bytes(live))
}

fn when_on(seconds: &str, room_bytes: u64) -> Finding {
    if room_bytes == 0 {
        let fact = format!("FLARENA_HIBERNATE={seconds} has no effect: there is no free swap");
        return Finding::warning("hibernate", fact)
            .remedy("add swap, or raise the cgroup's memory.swap.max");
    }
    let fact = format!(
        "large blocks are paged out to swap ({} free) after {seconds} idle seconds",
        bytes(room_bytes)
    );
    Finding::ok("hibernate", fact)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn process(out: u64, live: u64, idle_ms: u64) -> Stats {
        let text = format!(
            r#"{{"hibernated_bytes":{out},"recycler":{{"live_bytes":{live}}},
                "governor":{{"watched_ms_total":100000,"idle_ms_total":{idle_ms}}}}}"#
        );
        Stats::parse(&text).unwrap()
    }

    #[test]
    fn a_large_idle_process_is_noted_with_the_setting_or_the_missing_swap() {
        let idle = process(0, 1 << 30, 90_000);
        let found = of_process("off", &idle, 2 << 30).unwrap();
        assert!(found.fact.contains("90 %") && found.remedy.is_some());
        let found = of_process("off", &idle, 0).unwrap();
        assert!(found.fact.contains("not enough free swap") && found.remedy.is_none());
        for other in [process(0, 1 << 20, 90_000), process(0, 1 << 30, 10_000)] {
            assert_eq!(of_process("off", &other, 2 << 30), None);
        }
    }

    #[test]
    fn hibernation_without_swap_is_a_warning() {
        let level = |room| of_machine(Hibernate::AfterSeconds(60), room).unwrap().level;
        assert_eq!((level(0), level(1)), (Level::Warning, Level::Ok));
        assert_eq!(of_machine(Hibernate::Off, 0), None);
        let asleep = of_process("60", &process(7, 0, 0), 0).unwrap();
        assert_eq!((asleep.level, asleep.bytes), (Level::Ok, Some(7)));
    }

    #[test]
    fn free_swap_is_read_from_meminfo() {
        assert_eq!(
            free_swap_bytes("MemFree: 1 kB\nSwapFree:      5 kB\n"),
            5 << 10
        );
        assert_eq!(free_swap_bytes(""), 0);
    }
}
