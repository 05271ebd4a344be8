//! `/proc/PID/status` and `smaps_rollup`: `Name: number kB` lines.

/// The lines of `status` that flarena uses. Sizes are in bytes.
#[derive(Debug, Default, Clone)]
pub struct Status {
    pub rss_bytes: u64,
    pub anon_bytes: u64,
    pub file_bytes: u64,
    pub shmem_bytes: u64,
    pub swap_bytes: u64,
    pub hwm_bytes: u64,
    pub threads: u64,
    pub uid: Option<u32>,
    pub is_zombie: bool,
    /// The pid in each pid namespace, the outermost first.
    pub ns_pids: Vec<i32>,
}

impl Status {
    pub fn parse(text: &str) -> Self {
        let mut status = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            match name {
                "VmRSS" => status.rss_bytes = kilobytes(value),
                "RssAnon" => status.anon_bytes = kilobytes(value),
                "RssFile" => status.file_bytes = kilobytes(value),
                "RssShmem" => status.shmem_bytes = kilobytes(value),
                "VmSwap" => status.swap_bytes = kilobytes(value),
                "VmHWM" => status.hwm_bytes = kilobytes(value),
                "Threads" => status.threads = number(value),
                "State" => status.is_zombie = value.trim_start().starts_with('Z'),
                "Uid" => {
                    status.uid = value
                        .split_ascii_whitespace()
                        .nth(1)
                        .and_then(|u| u.parse().ok())
                }
                "NSpid" => {
                    status.ns_pids = value
                        .split_ascii_whitespace()
                        .filter_map(|pid| pid.parse().ok())
                        .collect()
                }
                _ => {}
            }
        }
        // The kernel notes a new maximum late.
        status.hwm_bytes = status.hwm_bytes.max(status.rss_bytes);
        status
    }

    pub fn own_pid(&self) -> Option<i32> {
        self.ns_pids.last().copied()
    }
}

/// The lines of `smaps_rollup` that `status` lacks.
#[derive(Debug, Default, Clone)]
pub struct Rollup {
    pub pss_bytes: u64,
    pub anon_huge_bytes: u64,
}

impl Rollup {
    pub fn parse(text: &str) -> Self {
        let mut rollup = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            match name {
                "Pss" => rollup.pss_bytes = kilobytes(value),
                "AnonHugePages" => rollup.anon_huge_bytes = kilobytes(value),
                _ => {}
            }
        }
        rollup
    }
}

/// `  512 kB` in bytes; 0 if it is not a number.
pub fn kilobytes(value: &str) -> u64 {
    number(value).saturating_mul(1024)
}

fn number(value: &str) -> u64 {
    value
        .split_ascii_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Name:\tpython3\nState:\tS (sleeping)\nUid:\t1000\t1001\t1000\t1000\n\
        NSpid:\t4242\t17\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\nRssAnon:\t  150 kB\nVmSwap:\t 4 kB\n\
        Threads:\t3\n";

    #[test]
    fn sizes_of_status_are_read_as_bytes() {
        let status = Status::parse(TEXT);
        assert_eq!(status.rss_bytes, 200 * 1024);
        assert_eq!(status.hwm_bytes, 300 * 1024);
        let late = Status::parse("VmHWM:\t100 kB\nVmRSS:\t200 kB\n");
        assert_eq!(late.hwm_bytes, 200 * 1024);
        assert_eq!(status.swap_bytes, 4096);
        assert_eq!(status.threads, 3);
    }

    #[test]
    fn the_own_pid_is_that_of_the_innermost_namespace() {
        assert_eq!(Status::parse(TEXT).own_pid(), Some(17));
    }

    #[test]
    fn the_uid_is_the_effective_one() {
        assert_eq!(Status::parse(TEXT).uid, Some(1001));
    }

    #[test]
    fn missing_and_unreadable_lines_leave_zeroes() {
        let status = Status::parse("VmRSS: junk kB\nfoo\n");
        assert_eq!((status.rss_bytes, status.own_pid()), (0, None));
    }
}
