//! The fuzz target: reads bytes as the steps of a program.

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use crate::testing::model::PAGE;
use crate::testing::steps::{Part, Step};
use crate::testing::vma_changes::VmaChange;
use crate::testing::walks;

const MOST_STEPS: usize = 200;

/// The first byte chooses the kernel. Each step is two bytes and its arguments.
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
        walks::run_with_refusals(steps, old);
    } else {
        walks::run_without_refusals(steps.into_iter().map(|(step, _)| step), old);
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
            5..=8 => Step::Free { which: what },
            9 | 10 => Step::Resize {
                which: kind / 16,
                bytes: self.size(what)?,
            },
            11 => Step::ChangeVma {
                which: what / 16,
                part: Part::ALL[what % Part::ALL.len()],
                change: [VmaChange::Resettable, VmaChange::File, VmaChange::Permanent]
                    [kind / 16 % 3],
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

    /// Sizes of 1 to 10 MiB in steps of 512 bytes, and up to 256 MiB in coarser steps.
    fn size(&mut self, what: usize) -> Option<usize> {
        let fine = self.next()?;
        Some(match what {
            0..=71 => (8 + what) * PAGE + fine * PAGE / 256,
            72..=127 => (what - 64) * 16 * PAGE / 8,
            _ => (what - 127) * 16 * PAGE,
        })
    }

    /// Few refusals, so that the fallbacks of a refused call run as well.
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
fn the_saved_inputs_of_the_fuzzers_pass() {
    corpus::run("recycler", any_calls);
}
