//! Bytes as a walk of a program, for the fuzzer.

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use crate::testing::marks::Mark;
use crate::testing::model::PAGE;
use crate::testing::steps::{Part, Step};
use crate::testing::walks;

const MOST_STEPS: usize = 200;

/// The first byte chooses the kernel; each step is two bytes and what it needs.
pub fn any_calls(input: &[u8]) {
    let Some((kernel, rest)) = input.split_first() else {
        return;
    };
    let (old, refuses) = (kernel & 1 != 0, kernel & 2 != 0);
    let mut bytes = Bytes(rest);
    let steps = std::iter::from_fn(|| {
        let step = bytes.step()?;
        Some((step, if refuses { bytes.refusals() } else { 0 }))
    });
    let steps: Vec<_> = steps.take(MOST_STEPS).collect();
    if refuses {
        walks::refused(steps, old);
    } else {
        walks::served(steps.into_iter().map(|(step, _)| step), old);
    }
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(usize::from(*first))
    }

    fn step(&mut self) -> Option<Step> {
        let (kind, what) = (self.next()?, self.next()?);
        Some(match kind % 16 {
            0..=4 => Step::Alloc {
                bytes: self.size(what)?,
                zeroed: kind >= 128,
            },
            5..=8 => Step::FreeKind { which: what },
            9 | 10 => Step::Resize {
                which: kind / 16,
                bytes: self.size(what)?,
            },
            11 => Step::Mark {
                which: what / 16,
                part: Part::ALL[what % Part::ALL.len()],
                mark: [Mark::Plain, Mark::File, Mark::Lasting][kind / 16 % 3],
            },
            12 => Step::Wait {
                ms: 2 * what as u32,
            },
            13 => Step::Trim,
            14 => Step::Pressure {
                near: what % 2 != 0,
            },
            _ => Step::Fork,
        })
    }

    /// From 1 MiB: to 10 MiB to the byte, or to 254 MiB in whole ones.
    fn size(&mut self, what: usize) -> Option<usize> {
        let fine = self.next()?;
        Some(match what {
            0..=71 => (8 + what) * PAGE + fine * PAGE / 256,
            72..=127 => (what - 64) * 16 * PAGE / 8,
            _ => (what - 127) * 16 * PAGE,
        })
    }

    /// Few: after a call that is refused there is often another way, which is worth going.
    fn refusals(&mut self) -> u64 {
        let bits = self.next().unwrap_or(0);
        match bits {
            128.. => (bits as u64 & 127) << (self.next().unwrap_or(0) % 16),
            64.. => 0,
            _ => bits as u64,
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_inputs_of_the_fuzzers_find_nothing() {
    corpus::run("recycler", any_calls);
}
