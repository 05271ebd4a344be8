//! The memory controller of cgroup v1 and v2: its files, and which group's limit counts for a process.
//!
//! Any ancestor of the process's group can have a limit, which all groups below it share. So usage, limit and
//! reclaimable bytes are those of one group: the one with the least `room_bytes`. The first of several with the same
//! room counts, from the process's group upwards; that is the process's group if no group has a limit.

/// The memory of one group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    pub used_bytes: Option<u64>,
    /// Inactive file pages in `used_bytes`. The kernel reclaims them before it kills a process. `None` without a limit.
    pub reclaimable_bytes: Option<u64>,
    pub limit_bytes: Option<u64>,
}

impl Memory {
    pub fn unreclaimable_bytes(&self) -> Option<u64> {
        let reclaimable = self.reclaimable_bytes.unwrap_or(0);
        Some(self.used_bytes?.saturating_sub(reclaimable))
    }

    /// The bytes that the group may still use.
    pub fn room_bytes(&self) -> u64 {
        let used = self.unreclaimable_bytes().unwrap_or(0);
        self.limit_bytes
            .map_or(u64::MAX, |limit| limit.saturating_sub(used))
    }

    /// False if the directory has no file of the memory controller.
    pub fn exists(&self) -> bool {
        *self != Memory::default()
    }
}

/// A file, and the text before the number in its line.
pub type Number = (&'static str, &'static str);

/// The files of one version.
pub struct Files {
    limit: Number,
    /// A number from here on means that there is no limit.
    unlimited: u64,
    /// The kernel slows processes down above this value.
    throttle: Option<Number>,
    usage: Number,
    reclaimable: Number,
    /// The other file pages, which the kernel reclaims last.
    active_file: Number,
    anon: Number,
    swap_limit: Number,
    swap_usage: Number,
    /// The two numbers of swap count the memory of the group, too.
    swap_counts_memory: bool,
    pub oom_kills: Number,
    /// `oom_kills` counts the processes of the groups below, too.
    pub counts_kills_below: bool,
}

pub const V1: Files = Files {
    limit: ("memory.limit_in_bytes", ""),
    // cgroup v1 writes "no limit" as the largest page-aligned number.
    unlimited: 1 << 60,
    throttle: None,
    usage: ("memory.usage_in_bytes", ""),
    reclaimable: ("memory.stat", "total_inactive_file "),
    active_file: ("memory.stat", "total_active_file "),
    anon: ("memory.stat", "total_rss "),
    swap_limit: ("memory.memsw.limit_in_bytes", ""),
    swap_usage: ("memory.memsw.usage_in_bytes", ""),
    swap_counts_memory: true,
    oom_kills: ("memory.oom_control", "oom_kill "),
    counts_kills_below: false,
};

pub const V2: Files = Files {
    limit: ("memory.max", ""),
    // cgroup v2 writes "max", which is not a number.
    unlimited: u64::MAX,
    throttle: Some(("memory.high", "")),
    usage: ("memory.current", ""),
    reclaimable: ("memory.stat", "inactive_file "),
    active_file: ("memory.stat", "active_file "),
    anon: ("memory.stat", "anon "),
    swap_limit: ("memory.swap.max", ""),
    swap_usage: ("memory.swap.current", ""),
    swap_counts_memory: false,
    oom_kills: ("memory.events", "oom_kill "),
    counts_kills_below: true,
};

impl Files {
    /// The memory of a group whose numbers `read` returns.
    pub fn memory(&self, read: impl Fn(Number) -> Option<u64>) -> Memory {
        let limit = read(self.limit).filter(|limit| *limit < self.unlimited);
        let throttle = self.throttle.and_then(&read);
        let limit_bytes = limit.into_iter().chain(throttle).min();
        Memory {
            used_bytes: read(self.usage),
            reclaimable_bytes: limit_bytes.map(|_| read(self.reclaimable).unwrap_or(0)),
            limit_bytes,
        }
    }

    /// `Memory::unreclaimable_bytes` alone.
    pub fn used_bytes(&self, read: impl Fn(Number) -> Option<u64>) -> Option<u64> {
        let reclaimable = read(self.reclaimable).unwrap_or(0);
        Some(read(self.usage)?.saturating_sub(reclaimable))
    }

    /// The bytes that the group may still use before the kernel kills one of its processes: below its limit, in place of
    /// its file pages, and in swap. `None` without a limit that kills.
    pub fn bytes_before_kill(
        &self,
        read: impl Fn(Number) -> Option<u64>,
        free_swap_bytes: u64,
    ) -> Option<u64> {
        let limit = read(self.limit).filter(|limit| *limit < self.unlimited)?;
        let files = read(self.reclaimable)? + read(self.active_file)?;
        // The kernel counts file pages that it has just dropped for a while.
        let kept = read(self.usage)?
            .saturating_sub(files)
            .max(read(self.anon)?);
        let left = limit.saturating_sub(kept);
        let swap_left = || {
            let limit = read(self.swap_limit).filter(|limit| *limit < self.unlimited)?;
            Some(limit.saturating_sub(read(self.swap_usage)?))
        };
        let swap_left = swap_left().unwrap_or(u64::MAX);
        Some(match self.swap_counts_memory {
            true => (left + free_swap_bytes).min(swap_left.saturating_add(files)),
            false => left + free_swap_bytes.min(swap_left),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(files: &Files, numbers: &[(&str, u64)]) -> Memory {
        files.memory(|(file, label)| {
            let name = format!("{file} {label}");
            let number = numbers.iter().find(|(known, _)| *known == name.trim())?;
            Some(number.1)
        })
    }

    #[test]
    fn the_room_is_that_below_the_limit_and_reclaimable_pages_are_room() {
        let limited = [
            ("memory.max", 1000),
            ("memory.current", 700),
            ("memory.stat inactive_file", 100),
        ];
        assert_eq!(memory(&V2, &limited).room_bytes(), 400);
        assert_eq!(memory(&V2, &limited[1..]).room_bytes(), u64::MAX);
        assert_eq!(memory(&V2, &limited[..1]).room_bytes(), 1000);
    }

    #[test]
    fn memory_high_is_a_limit_in_v2() {
        let throttled = [("memory.max", 1000), ("memory.high", 900)];
        assert_eq!(memory(&V2, &throttled).limit_bytes, Some(900));
        assert_eq!(memory(&V2, &throttled[1..]).limit_bytes, Some(900));
    }

    #[test]
    fn before_a_kill_the_kernel_drops_file_pages_and_fills_swap() {
        let before_kill = |files: &Files, more: &[(&str, u64)], swap| {
            let (limit, usage) = (files.limit.0, files.usage.0);
            let label = |number: Number| format!("{} {}", number.0, number.1.trim());
            let (inactive, active) = (label(files.reclaimable), label(files.active_file));
            let anon = label(files.anon);
            let known = [
                (limit, 1000),
                (usage, 900),
                (&*inactive, 100),
                (&*active, 50),
                (&*anon, 700),
            ];
            let numbers = [more, &known].concat();
            let read = |(file, label): Number| {
                let name = format!("{file} {label}");
                let number = numbers.iter().find(|(known, _)| *known == name.trim())?;
                Some(number.1)
            };
            files.bytes_before_kill(read, swap)
        };
        assert_eq!(before_kill(&V1, &[], 0), Some(250));
        assert_eq!(before_kill(&V2, &[], 40), Some(290));
        let late = [("memory.stat active_file", 150)];
        assert_eq!(before_kill(&V2, &late, 0), Some(300), "anonymous pages");
        let both = [
            ("memory.memsw.limit_in_bytes", 1020),
            ("memory.memsw.usage_in_bytes", 905),
        ];
        assert_eq!(before_kill(&V1, &both, 40), Some(265));
        let swap = [("memory.swap.max", 10), ("memory.swap.current", 5)];
        assert_eq!(before_kill(&V2, &swap, 40), Some(255));
        assert_eq!(V2.bytes_before_kill(|_| None, 0), None, "no limit");
    }

    #[test]
    fn a_huge_number_is_no_limit_in_v1() {
        let unlimited = [
            ("memory.limit_in_bytes", 9223372036854771712),
            ("memory.usage_in_bytes", 10),
            ("memory.stat total_inactive_file", 5),
        ];
        let expected = Memory {
            used_bytes: Some(10),
            ..Memory::default()
        };
        assert_eq!(memory(&V1, &unlimited), expected);
    }

    #[test]
    fn a_directory_without_the_controller_is_no_group() {
        assert!(!memory(&V2, &[]).exists());
        assert!(memory(&V2, &[("memory.current", 0)]).exists());
    }
}
