//! Huge pages of anonymous memory: the sizes that the kernel offers, and whether large blocks use
//! them.
//!
//! Linux 6.8 and later have one switch per size. Sizes below 2 MiB save most page faults of a block
//! at no measurable cost. A 2 MiB page is as large as a unit of the recycler, and expensive in many
//! virtual machines (docs/design/tuning.md). The library and the doctor share this decision.

use std::ffi::CStr;

use crate::parse::words;

/// The setting of one size, with `inherit` resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Every program gets pages of this size.
    Always,
    /// Only mappings with `MADV_HUGEPAGE` get them.
    OnAdvice,
    #[default]
    Never,
}

words! {
    /// The value of `FLARENA_HUGE`.
    #[derive(Default)]
    pub enum Choice {
        #[default]
        Auto "auto" | "1" | "true" | "yes" | "on"
        Off "off" | "0" | "false" | "no"
        /// Also use pages of 2 MiB.
        TwoMib "2M" | "2mb" | "2mib"
    }
}

/// The advice (`madvise`) for new mappings of large blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    #[default]
    Nothing,
    Ask,
    Decline,
}

/// The decision for a process. It is the same for all units, because pages move only between
/// mappings with equal attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub fresh: Advice,
    /// Blocks that fill their units ask for huge pages themselves.
    pub full_blocks_ask: bool,
    /// The largest page below 2 MiB that a fault may map; `None`: a base page.
    pub fault_kb: Option<u32>,
}

/// The switch that `inherit` refers to; the only switch before Linux 6.8.
pub const TOP_FILE: &CStr = c"/sys/kernel/mm/transparent_hugepage/enabled";

/// A size and its switch.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub kb: u32,
    pub file: &'static CStr,
}

macro_rules! sizes {
    ($($kb:literal)*) => {
        [$(Size {
            kb: $kb,
            file: match CStr::from_bytes_with_nul(concat!(
                "/sys/kernel/mm/transparent_hugepage/hugepages-", $kb, "kB/enabled\0"
            ).as_bytes()) {
                Ok(path) => path,
                Err(_) => panic!("the path has no NUL at its end"),
            },
        }),*]
    };
}

/// The sizes from 2 MiB, on all architectures. The first one exists on every kernel with a switch
/// per size.
pub const LARGE: [Size; 9] = sizes!(2048 4096 8192 16384 32768 65536 131072 262144 524288);
/// The sizes that `auto` asks for.
pub const SMALLER: [Size; 7] = sizes!(16 32 64 128 256 512 1024);

/// The settings of all sizes; `Never` for a size that the kernel does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The kernel has a switch for each size.
    pub by_size: bool,
    /// The most permissive setting of the sizes from 2 MiB.
    pub large: Policy,
    pub smaller: [Policy; SMALLER.len()],
}

impl Offer {
    /// `read` reads one switch, given the setting of the top switch; `None` for a missing size.
    pub fn read(mut read: impl FnMut(&CStr, Policy) -> Option<Policy>) -> Offer {
        let top = read(TOP_FILE, Policy::Never).unwrap_or_default();
        let Some(large) = large_by_size(top, &mut read) else {
            return Offer {
                large: top,
                ..Offer::default()
            };
        };
        let policy = |size: Size| read(size.file, top).unwrap_or_default();
        Offer {
            by_size: true,
            large,
            smaller: SMALLER.map(policy),
        }
    }

    /// Reads only `large`, from fewer files.
    pub fn read_large(mut read: impl FnMut(&CStr, Policy) -> Option<Policy>) -> Policy {
        let top = read(TOP_FILE, Policy::Never).unwrap_or_default();
        large_by_size(top, &mut read).unwrap_or(top)
    }

    /// The sizes below 2 MiB with this setting, in KiB.
    pub fn smaller_on(&self, wanted: Policy) -> impl Iterator<Item = u32> + '_ {
        let pairs = SMALLER.iter().zip(self.smaller);
        pairs
            .filter(move |(_, policy)| *policy == wanted)
            .map(|(size, _)| size.kb)
    }

    pub fn decide(&self, choice: Choice) -> Decision {
        let asked = self.smaller_on(Policy::OnAdvice).last();
        let unasked = self.smaller_on(Policy::Always).last();
        match self.large {
            // A block of 1.1 MiB would use 2 MiB.
            Policy::Always => Decision {
                fresh: Advice::Decline,
                full_blocks_ask: choice != Choice::Off,
                fault_kb: None,
            },
            Policy::Never if asked.is_some() && choice != Choice::Off => Decision {
                fresh: Advice::Ask,
                full_blocks_ask: false,
                fault_kb: asked.max(unasked),
            },
            large => Decision {
                fresh: Advice::Nothing,
                full_blocks_ask: large == Policy::OnAdvice && choice == Choice::TwoMib,
                fault_kb: unasked,
            },
        }
    }
}

/// `None` if the kernel has no switch per size. A kernel has all sizes up to its largest, so the
/// first missing one ends the search.
fn large_by_size(
    top: Policy,
    mut read: impl FnMut(&CStr, Policy) -> Option<Policy>,
) -> Option<Policy> {
    let policies = LARGE.iter().map_while(|size| read(size.file, top));
    policies.reduce(Policy::or)
}

impl Policy {
    /// The word in brackets of `always inherit [madvise] never`; `top` replaces `inherit`.
    pub fn parse(text: &[u8], top: Policy) -> Option<Policy> {
        let from = text.iter().position(|&byte| byte == b'[')? + 1;
        let len = text.get(from..)?.iter().position(|&byte| byte == b']')?;
        match text.get(from..from + len)? {
            b"always" => Some(Policy::Always),
            b"madvise" => Some(Policy::OnAdvice),
            b"never" => Some(Policy::Never),
            b"inherit" => Some(top),
            _ => None,
        }
    }

    fn or(self, other: Policy) -> Policy {
        match (self, other) {
            (Policy::Always, _) | (_, Policy::Always) => Policy::Always,
            (Policy::OnAdvice, _) | (_, Policy::OnAdvice) => Policy::OnAdvice,
            (Policy::Never, Policy::Never) => Policy::Never,
        }
    }
}

#[cfg(test)]
mod tests;
