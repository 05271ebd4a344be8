//! Whether hibernation (`FLARENA_HIBERNATE`) works here, or would help: a process that waits, and swap to wait in.

use std::fs;

use flarena_shared::settings::Hibernate;

use super::finding::Finding;
use crate::control::Stats;
use crate::proc::Cgroup;
use crate::units::bytes;

/// Less in large blocks is not worth a word.
const WORTH_A_WORD_BYTES: u64 = 64 << 20;
/// Nothing is said of a process that was watched for less,
const WATCHED_MS: u64 = 60_000;
/// or was idle for less of it, in percent.
const IDLE_PERCENT: u64 = 50;

/// What may go to swap: the system's free swap, and what the control group may have of it.
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

/// Of the settings that a command here would start with.
pub fn of_machine(setting: Hibernate, room_bytes: u64) -> Option<Finding> {
    let Hibernate::AfterSeconds(seconds) = setting else {
        return None;
    };
    Some(when_on(&seconds.to_string(), room_bytes))
}

/// Of a live process.
pub fn of_process(setting: &str, stats: &Stats, room_bytes: u64) -> Option<Finding> {
    if setting != "off" {
        let out = stats.number("hibernated_bytes").filter(|out| *out > 0);
        return Some(match out {
            Some(out) => {
                let fact = format!("it is idle, and {} of it hibernate in swap", bytes(out));
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
    if live < WORTH_A_WORD_BYTES || watched < WATCHED_MS || percent < IDLE_PERCENT {
        return None;
    }
    let fact = format!(
        "it was idle for {percent} % of the time, and holds {} in large blocks",
        bytes(live)
    );
    let finding = if room_bytes >= live {
        Finding::note("hibernate", fact)
            .remedy("FLARENA_HIBERNATE=60 lets them wait in swap (docs/hibernate.md)")
    } else {
        let lacks = format!("{fact}; swap has no room for them to wait there (FLARENA_HIBERNATE)");
        Finding::note("hibernate", lacks)
    };
    Some(finding.bytes(live))
}

fn when_on(seconds: &str, room_bytes: u64) -> Finding {
    if room_bytes == 0 {
        let fact =
            format!("FLARENA_HIBERNATE={seconds} does nothing: there is no swap that has room");
        return Finding::warning("hibernate", fact)
            .remedy("add swap (mkswap, swapon), or raise the cgroup's memory.swap.max");
    }
    let fact = format!(
        "large blocks wait in swap ({} free) after {seconds} idle seconds",
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
    fn a_process_that_waits_with_much_is_told_what_would_help_or_what_is_missing() {
        let idle = process(0, 1 << 30, 90_000);
        let found = of_process("off", &idle, 2 << 30).unwrap();
        assert!(found.fact.contains("90 %") && found.remedy.is_some());
        let found = of_process("off", &idle, 0).unwrap();
        assert!(found.fact.contains("no room") && found.remedy.is_none());
        for other in [process(0, 1 << 20, 90_000), process(0, 1 << 30, 10_000)] {
            assert_eq!(of_process("off", &other, 2 << 30), None);
        }
    }

    #[test]
    fn a_setting_without_swap_is_a_warning() {
        let level = |room| of_machine(Hibernate::AfterSeconds(60), room).unwrap().level;
        assert_eq!((level(0), level(1)), (Level::Warning, Level::Ok));
        assert_eq!(of_machine(Hibernate::Off, 0), None);
        let asleep = of_process("60", &process(7, 0, 0), 0).unwrap();
        assert_eq!((asleep.level, asleep.bytes), (Level::Ok, Some(7)));
    }

    #[test]
    fn free_swap_is_read() {
        assert_eq!(
            free_swap_bytes("MemFree: 1 kB\nSwapFree:      5 kB\n"),
            5 << 10
        );
        assert_eq!(free_swap_bytes(""), 0);
    }
}
