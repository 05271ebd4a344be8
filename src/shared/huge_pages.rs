//! Huge pages of anonymous memory: what the kernel offers of each size, and what follows for large blocks.
//!
//! Since Linux 6.8 each size has a switch of its own. Sizes below 2 MiB cost a block nothing that shows and save most
//! of its page faults; a page of 2 MiB is as large as a unit of the recycler, and in many virtual machines dear
//! (docs/design/tuning.md). The library and the doctor decide by this one rule.

use std::ffi::CStr;

/// What a size is on, once `inherit` is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Every program has pages of this size.
    Always,
    /// Only mappings that ask (`MADV_HUGEPAGE`).
    OnAdvice,
    #[default]
    Never,
}

/// The value of `FLARENA_HUGE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    #[default]
    Auto,
    Off,
    /// Pages of 2 MiB are wanted, too.
    TwoMib,
}

/// What fresh mappings of large blocks are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    #[default]
    Nothing,
    Ask,
    Decline,
}

/// The decision, the same for all units of a process: what is moved between mappings must be alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub fresh: Advice,
    /// Blocks that fill their units ask for themselves.
    pub full_blocks_ask: bool,
    /// The largest page below 2 MiB that a fault may bring, where that is no plain one.
    pub fault_kb: Option<u32>,
}

/// The switch that `inherit` looks up; on kernels before 6.8 the only one.
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
                Err(_) => panic!("a path without its end"),
            },
        }),*]
    };
}

/// From 2 MiB on, on any architecture; the first is there wherever sizes have switches.
pub const LARGE: [Size; 9] = sizes!(2048 4096 8192 16384 32768 65536 131072 262144 524288);
/// What `auto` asks for.
pub const SMALLER: [Size; 7] = sizes!(16 32 64 128 256 512 1024);

/// What the sizes are on; those that the kernel does not have are on `never`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The kernel has a switch for each size.
    pub by_size: bool,
    /// Of 2 MiB and more, the most generous.
    pub large: Policy,
    pub smaller: [Policy; SMALLER.len()],
}

impl Offer {
    /// `read` reads a switch, given what the top one says; none where there is no such size.
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

    /// `large` alone, from fewer files.
    pub fn read_large(mut read: impl FnMut(&CStr, Policy) -> Option<Policy>) -> Policy {
        let top = read(TOP_FILE, Policy::Never).unwrap_or_default();
        large_by_size(top, &mut read).unwrap_or(top)
    }

    /// The sizes below 2 MiB that are on this, in KiB.
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
            // 1.1 MiB would cost 2 MiB.
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

/// None: sizes have no switches here. Kernels have all sizes up to their largest.
fn large_by_size(
    top: Policy,
    mut read: impl FnMut(&CStr, Policy) -> Option<Policy>,
) -> Option<Policy> {
    let policies = LARGE.iter().map_while(|size| read(size.file, top));
    policies.reduce(Policy::or)
}

impl Policy {
    /// The word in brackets of `always inherit [madvise] never`; `top` is what the top switch says.
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

impl Choice {
    pub const fn parse(text: &[u8]) -> Option<Choice> {
        if crate::parse::is_one_of(text, &["2m", "2mb", "2mib"]) {
            return Some(Choice::TwoMib);
        }
        match crate::values::auto(text) {
            Some(true) => Some(Choice::Auto),
            Some(false) => Some(Choice::Off),
            None => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Off => "off",
            Choice::TwoMib => "2M",
        }
    }
}

#[cfg(test)]
#[path = "huge_pages_tests.rs"]
mod tests;
