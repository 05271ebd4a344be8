//! The text files of `/proc/PID`: `stat`, `status`, `smaps_rollup`, `maps` and `smaps`.
//!
//! The crate `procfs` refuses a whole file for one name that is not UTF-8, or one missing line.

use flarena_shared::kernel_path;

/// The fields of `stat` that flarena uses. Times are in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub parent: i32,
    pub is_zombie: bool,
    /// Of the process and of the children that it has waited for.
    pub cpu_ticks: u64,
    pub start_ticks: u64,
}

impl Stat {
    /// `None` for text of another form. The name in field 2 may itself hold spaces and parentheses.
    pub fn parse(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        // Field 3 is the first one here.
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let cpu: Option<u64> = [14, 15, 16, 17].into_iter().map(number).sum();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            is_zombie: *fields.first()? == "Z",
            cpu_ticks: cpu?,
            start_ticks: number(22)?,
        })
    }
}

/// The lines of `status` that flarena uses. Sizes are in bytes; a missing one is 0.
#[derive(Debug, Default, Clone)]
pub struct Status {
    pub rss_bytes: u64,
    pub anon_bytes: u64,
    pub file_bytes: u64,
    pub shmem_bytes: u64,
    pub swap_bytes: u64,
    pub threads: u64,
    pub uid: Option<u32>,
    pub is_zombie: bool,
    /// The pid in the innermost pid namespace.
    pub own_pid: Option<i32>,
}

impl Status {
    pub fn parse(text: &str) -> Self {
        let size = |name| kilobytes(text, name).unwrap_or(0);
        let words = |name| line(text, name).split_ascii_whitespace();
        Self {
            rss_bytes: size("VmRSS"),
            anon_bytes: size("RssAnon"),
            file_bytes: size("RssFile"),
            shmem_bytes: size("RssShmem"),
            swap_bytes: size("VmSwap"),
            threads: number(line(text, "Threads")).unwrap_or(0),
            uid: words("Uid").nth(1).and_then(|uid| uid.parse().ok()),
            is_zombie: words("State").next() == Some("Z"),
            own_pid: words("NSpid").last().and_then(|pid| pid.parse().ok()),
        }
    }
}

/// The text after `name:`; empty without such a line.
fn line<'a>(text: &'a str, name: &str) -> &'a str {
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_default()
}

/// The line `name:  512 kB` in bytes.
pub fn kilobytes(text: &str, name: &str) -> Option<u64> {
    in_bytes(line(text, name))
}

fn in_bytes(kilobytes: &str) -> Option<u64> {
    number(kilobytes)?.checked_mul(1024)
}

fn number(value: &str) -> Option<u64> {
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// One mapping. The sizes are 0 if it was read from `maps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub inode: u64,
    pub is_executable: bool,
    pub name: String,
    pub rss_bytes: u64,
    /// The part of `rss_bytes` without a file: pages of a private mapping that the process has written.
    pub anon_bytes: u64,
}

impl Mapping {
    /// Whether a file is mapped, and not `[heap]` or a device.
    pub fn is_file(&self) -> bool {
        self.inode != 0 && self.name.starts_with('/')
    }

    /// Resident pages of its file.
    pub fn file_bytes(&self) -> u64 {
        self.rss_bytes.saturating_sub(self.anon_bytes)
    }

    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The last component of the path, without the kernel's ` (deleted)`.
    pub fn file_name(&self) -> &str {
        kernel_path::file_name(&self.name)
    }

    pub fn path(&self) -> &str {
        kernel_path::path(&self.name)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (range, permissions, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let (_device, inode) = (fields.next()?, fields.next()?);
        let (start, end) = range.split_once('-')?;
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
            inode: inode.parse().ok()?,
            is_executable: permissions.contains('x'),
            name: fields.next().unwrap_or_default().trim_start().to_owned(),
            ..Self::default()
        })
    }
}

/// Parses either file. A line of `smaps` that is not a mapping describes the mapping before it.
pub fn parse_maps(text: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = Mapping::parse(line) {
            mappings.push(mapping);
        } else if let (Some(last), Some((name, value))) =
            (mappings.last_mut(), line.split_once(':'))
        {
            match name {
                "Rss" => last.rss_bytes = in_bytes(value).unwrap_or(0),
                "Anonymous" => last.anon_bytes = in_bytes(value).unwrap_or(0),
                _ => {}
            }
        }
    }
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "7 (a ) b) Z 5 7 7 0 -1 4194560 1 0 0 0 10 20 3 4 20 0 1 0 9876 1 2";
        let stat = Stat {
            parent: 5,
            is_zombie: true,
            cpu_ticks: 37,
            start_ticks: 9876,
        };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse("7 (a) S 5"), None);
        assert_eq!(Stat::parse(""), None);
    }

    const TEXT: &str = "Name:\tpython3\nState:\tS (sleeping)\nUid:\t1000\t1001\t1000\t1000\n\
        NSpid:\t4242\t17\nVmRSS:\t  200 kB\nRssAnon:\t  150 kB\nVmSwap:\t 4 kB\n\
        Threads:\t3\n";

    #[test]
    fn sizes_of_status_are_read_as_bytes() {
        let status = Status::parse(TEXT);
        assert_eq!(status.rss_bytes, 200 * 1024);
        assert_eq!(status.swap_bytes, 4096);
        assert_eq!(status.threads, 3);
    }

    #[test]
    fn the_own_pid_is_that_of_the_innermost_namespace() {
        assert_eq!(Status::parse(TEXT).own_pid, Some(17));
    }

    #[test]
    fn the_uid_is_the_effective_one() {
        assert_eq!(Status::parse(TEXT).uid, Some(1001));
    }

    #[test]
    fn missing_and_unreadable_lines_leave_zeroes() {
        let status = Status::parse("VmRSS: junk kB\nfoo\n");
        assert_eq!((status.rss_bytes, status.own_pid), (0, None));
    }

    const SMAPS: &str = "\
7f00-8f00 rw-s 00000010 fe:01 77                         /a b/lib (x).so (deleted)
Size:                  4 kB
Rss:                   8 kB
Anonymous:             4 kB
VmFlags: rd wr mr lo sd
9f00-af00 r--p 00000000 00:00 0                          [stack]
Rss:                   4 kB
b000-c000 rw-p 00000000 00:00 0
";

    #[test]
    fn names_with_spaces_are_kept() {
        let mappings = parse_maps(SMAPS);
        assert_eq!(mappings[0].name, "/a b/lib (x).so (deleted)");
        assert_eq!(mappings[0].file_name(), "lib (x).so");
        assert!(mappings[0].is_file());
    }

    #[test]
    fn smaps_details_are_stored_in_the_mapping_before_them() {
        let mappings = parse_maps(SMAPS);
        assert_eq!(mappings.len(), 3);
        assert_eq!((mappings[0].rss_bytes, mappings[1].rss_bytes), (8192, 4096));
        assert_eq!(
            (mappings[0].file_bytes(), mappings[1].file_bytes()),
            (4096, 4096)
        );
    }

    #[test]
    fn an_unnamed_mapping_is_not_a_file() {
        let mapping = &parse_maps(SMAPS)[2];
        assert_eq!((mapping.name.as_str(), mapping.is_file()), ("", false));
    }

    #[test]
    fn the_code_of_this_test_is_in_a_mapped_file() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let here = the_code_of_this_test_is_in_a_mapped_file as fn() as usize as u64;
        assert!(parse_maps(&text)
            .iter()
            .any(|mapping| mapping.contains(here) && mapping.is_file()));
    }
}
