//! Huge pages of anonymous memory: what the kernel offers of each size, and what follows for large blocks.
//!
//! Since Linux 6.8 each size has a switch of its own. Sizes below 2 MiB cost a block nothing that shows and save most
//! of its page faults; a page of 2 MiB is as large as a unit of the recycler, and in many virtual machines dear
//! (docs/measurements.md). The library and the doctor decide by this one rule.

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
        let mut offer = Offer {
            by_size: true,
            ..Offer::default()
        };
        for (index, size) in LARGE.iter().enumerate() {
            match read(size.file, top) {
                Some(policy) => offer.large = offer.large.or(policy),
                None if index == 0 => {
                    return Offer {
                        large: top,
                        ..Offer::default()
                    };
                }
                None => {}
            }
        }
        for (size, policy) in SMALLER.iter().zip(&mut offer.smaller) {
            *policy = read(size.file, top).unwrap_or_default();
        }
        offer
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
mod tests {
    use super::*;

    fn offer(top: &str, two_mib: Option<&str>, small: &str) -> Offer {
        let read = |file: &CStr, top_says| {
            let name = file.to_str().unwrap();
            let word = match name {
                _ if name.ends_with("hugepage/enabled") => top,
                _ if name.contains("-2048kB") => two_mib?,
                _ if name.contains("-64kB") => small,
                _ if two_mib.is_some() && name.contains("-128kB") => "never",
                _ => return None,
            };
            Policy::parse(format!("other [{word}]\n").as_bytes(), top_says)
        };
        Offer::read(read)
    }

    fn fresh(top: &str, two_mib: Option<&str>, small: &str, choice: Choice) -> Advice {
        offer(top, two_mib, small).decide(choice).fresh
    }

    #[test]
    fn a_smaller_size_on_request_is_asked_for_where_2_mib_do_not_come_along() {
        let auto = Choice::Auto;
        assert_eq!(
            fresh("never", Some("inherit"), "madvise", auto),
            Advice::Ask
        );
        assert_eq!(
            fresh("madvise", Some("never"), "madvise", auto),
            Advice::Ask
        );
        assert_eq!(
            fresh("madvise", Some("never"), "inherit", auto),
            Advice::Ask
        );
        assert_eq!(
            fresh("madvise", Some("inherit"), "madvise", auto),
            Advice::Nothing
        );
        assert_eq!(
            fresh("never", Some("madvise"), "madvise", auto),
            Advice::Nothing
        );
        assert_eq!(
            fresh("never", Some("never"), "inherit", auto),
            Advice::Nothing
        );
    }

    #[test]
    fn what_comes_unasked_needs_no_request() {
        let auto = Choice::Auto;
        assert_eq!(
            fresh("madvise", Some("never"), "always", auto),
            Advice::Nothing
        );
        assert_eq!(
            fresh("always", Some("never"), "inherit", auto),
            Advice::Nothing
        );
    }

    #[test]
    fn a_fault_brings_the_largest_page_that_is_to_be_had() {
        let fault_kb = |two_mib, small, choice| {
            offer("madvise", Some(two_mib), small)
                .decide(choice)
                .fault_kb
        };
        assert_eq!(fault_kb("never", "madvise", Choice::Auto), Some(64));
        assert_eq!(fault_kb("never", "madvise", Choice::Off), None);
        assert_eq!(fault_kb("inherit", "madvise", Choice::Auto), None);
        assert_eq!(fault_kb("inherit", "always", Choice::Auto), Some(64));
        assert_eq!(fault_kb("always", "always", Choice::Auto), None);
    }

    #[test]
    fn pages_of_2_mib_that_come_unasked_are_declined() {
        for choice in [Choice::Auto, Choice::Off, Choice::TwoMib] {
            let unasked = offer("always", Some("inherit"), "madvise").decide(choice);
            assert_eq!(unasked.fresh, Advice::Decline);
            assert_eq!(unasked.full_blocks_ask, choice != Choice::Off);
            assert_eq!(
                fresh("madvise", Some("always"), "never", choice),
                Advice::Decline
            );
        }
    }

    #[test]
    fn a_kernel_without_sizes_has_one_switch() {
        let old = |top, choice| offer(top, None, "never").decide(choice);
        assert_eq!(old("always", Choice::Auto).fresh, Advice::Decline);
        assert_eq!(old("madvise", Choice::Auto), Decision::default());
        assert!(old("madvise", Choice::TwoMib).full_blocks_ask);
        assert_eq!(old("never", Choice::TwoMib), Decision::default());
    }

    #[test]
    fn off_asks_for_none_and_2m_for_those_of_full_blocks() {
        let both = offer("madvise", Some("inherit"), "madvise");
        assert!(both.decide(Choice::TwoMib).full_blocks_ask);
        assert_eq!(both.decide(Choice::Off), Decision::default());
        let small = offer("madvise", Some("never"), "madvise");
        assert_eq!(small.decide(Choice::Off), Decision::default());
        assert_eq!(small.decide(Choice::TwoMib).fresh, Advice::Ask);
    }

    #[test]
    fn a_switch_that_says_something_new_counts_as_missing() {
        assert_eq!(
            Policy::parse(b"always [sometimes] never", Policy::Never),
            None
        );
        assert_eq!(Policy::parse(b"", Policy::Always), None);
        assert_eq!(Policy::parse(b"[always", Policy::Never), None);
    }
}
