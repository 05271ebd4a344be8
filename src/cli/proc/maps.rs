//! `/proc/PID/maps` and `smaps`.

use flarena_shared::kernel_path;

use super::status::kilobytes;

/// One mapping. The sizes are 0 if it was read from `maps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub inode: u64,
    pub is_executable: bool,
    pub is_shared: bool,
    pub name: String,
    pub rss_bytes: u64,
    /// The part of `rss_bytes` without a file: pages of a private mapping that the process has written.
    pub anon_bytes: u64,
    pub is_locked: bool,
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
        let mut rest = line;
        let mut field = || {
            let trimmed = rest.trim_start_matches(' ');
            let (field, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
            rest = after;
            field
        };
        let (range, permissions, offset) = (field(), field(), field());
        let (_device, inode) = (field(), field());
        let (start, end) = range.split_once('-')?;
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
            inode: inode.parse().ok()?,
            is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
            is_shared: permissions.as_bytes().get(3) == Some(&b's'),
            name: rest.trim_start_matches(' ').to_owned(),
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
                "Rss" => last.rss_bytes = kilobytes(value),
                "Anonymous" => last.anon_bytes = kilobytes(value),
                "VmFlags" => last.is_locked = value.split_ascii_whitespace().any(|f| f == "lo"),
                _ => {}
            }
        }
    }
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(mappings[0].is_file() && mappings[0].is_shared);
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
        assert!(mappings[0].is_locked && !mappings[1].is_locked);
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
