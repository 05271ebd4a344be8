//! The machine: the kernel's settings and the C library.

use std::ffi::CStr;
use std::fs;

use super::finding::Finding;
use super::subject::Subject;
use crate::units::bytes;

/// Properties of the machine that affect an allocator.
#[derive(Debug, Clone, Default)]
pub struct System {
    pub machine: &'static str,
    pub kernel: String,
    pub glibc: Option<String>,
    pub page_bytes: usize,
    /// `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Processors that are online. A container may be limited to fewer.
    pub cores: usize,
}

impl System {
    pub fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        let release = rustix::system::uname();
        Self {
            machine: std::env::consts::ARCH,
            kernel: release.release().to_string_lossy().into_owned(),
            glibc: glibc_version(),
            page_bytes: rustix::param::page_size(),
            huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|modes| chosen(&modes)),
            cores: text("/sys/devices/system/cpu/online")
                .and_then(|ranges| count_ranges(&ranges))
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.platform()];
        if self.huge_pages.as_deref() == Some("always") {
            let fact =
                "transparent huge pages are always on, so small blocks become resident in steps of 2 MB; in jemalloc \
                 mode flarena turns them off";
            findings.push(without_huge_pages(Finding::note("thp-always", fact)));
        }
        findings
    }

    fn platform(&self) -> Finding {
        let libc = self
            .glibc
            .as_ref()
            .map_or("no glibc".to_owned(), |glibc| format!("glibc {glibc}"));
        let pages = self.page_bytes / 1024;
        let fact = format!(
            "{}, {libc}, Linux {}, {pages} KiB pages",
            self.machine, self.kernel
        );
        if !["x86_64", "aarch64"].contains(&self.machine) {
            let fact = fact + ": jobs start without flarena";
            let remedy = "run them on x86_64 or aarch64";
            return Finding::error("platform", fact).remedy(remedy);
        }
        if self.glibc.as_deref().is_none_or(is_too_old) {
            let fact = fact + ": jobs start without flarena";
            let remedy = "use a system with glibc 2.17 or later";
            return Finding::error("platform", fact).remedy(remedy);
        }
        Finding::ok("platform", fact)
    }
}

/// A large heap in huge pages, without the library, on a machine that gives them to every program.
pub fn always_huge(subject: &Subject) -> Option<Finding> {
    let huge = subject.rollup.as_ref()?.anon_huge_bytes;
    let is_always = subject.system.huge_pages.as_deref() == Some("always");
    let is_small = huge * 2 < subject.status.anon_bytes.max(1 << 27);
    if !is_always || subject.library().is_some() || is_small {
        return None;
    }
    let fact = format!(
        "{} are huge pages, which the system gives to every program; they stay resident while any part of 2 MB is in use",
        bytes(huge)
    );
    Some(without_huge_pages(Finding::warning("thp-always", fact)).bytes(huge))
}

/// Adds the line that restricts huge pages to programs that ask for them.
fn without_huge_pages(finding: Finding) -> Finding {
    let line = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    finding.remedy("as root on the host:").command(line)
}

fn is_too_old(version: &str) -> bool {
    let mut parts = version
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    version < (2, 17)
}

#[cfg(target_env = "gnu")]
fn glibc_version() -> Option<String> {
    // SAFETY: glibc returns a pointer to a constant string with a NUL at its end.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(version.to_string_lossy().into_owned())
}

#[cfg(not(target_env = "gnu"))]
fn glibc_version() -> Option<String> {
    None
}

/// The word in brackets of `always [madvise] never`.
fn chosen(modes: &str) -> Option<String> {
    let (_, rest) = modes.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// The count of numbers in ranges such as `0-3,8`.
fn count_ranges(text: &str) -> Option<usize> {
    text.trim()
        .split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(
                last.parse::<usize>()
                    .ok()?
                    .checked_sub(first.parse().ok()?)?
                    + 1,
            )
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn good() -> System {
        System {
            machine: "x86_64",
            glibc: Some("2.36".into()),
            page_bytes: 4096,
            huge_pages: Some("madvise".into()),
            ..System::default()
        }
    }

    fn worst(system: &System) -> Level {
        system
            .findings()
            .iter()
            .map(|finding| finding.level)
            .max()
            .unwrap()
    }

    #[test]
    fn a_usual_machine_has_no_problem() {
        assert_eq!(worst(&good()), Level::Ok);
    }

    #[test]
    fn another_architecture_or_an_old_glibc_is_an_error() {
        assert_eq!(
            worst(&System {
                machine: "riscv64",
                ..good()
            }),
            Level::Error
        );
        assert_eq!(
            worst(&System {
                glibc: Some("2.12".into()),
                ..good()
            }),
            Level::Error
        );
        assert_eq!(
            worst(&System {
                glibc: None,
                ..good()
            }),
            Level::Error
        );
    }

    #[test]
    fn huge_pages_that_are_always_on_are_reported() {
        let system = System {
            huge_pages: chosen("[always] madvise never\n"),
            ..good()
        };
        assert!(system
            .findings()
            .iter()
            .any(|finding| finding.id == "thp-always"));
    }

    #[test]
    fn the_numbers_of_ranges_are_counted() {
        assert_eq!(count_ranges("0-3,8\n"), Some(5));
        assert_eq!(count_ranges("0"), Some(1));
        assert_eq!(count_ranges("3-0"), None);
        assert_eq!(count_ranges(""), None);
    }

    #[test]
    fn the_properties_of_this_machine_are_readable() {
        let system = System::read();
        assert!(system.cores > 0 && system.page_bytes >= 4096 && !system.kernel.is_empty());
    }
}
