//! How many mappings the recycler has, at most: the kernel allows a process a number of them, and without one to
//! spare no thread can be started and no library loaded. Each piece that moves may be a mapping of its own,
//! so beyond a share of what is allowed nothing moves: pages are given back and faulted in anew instead, in place,
//! as to unmap them would cut a mapping in two.

use crate::core::unit::{Flags, Kind};
use crate::state::space::Space;

/// Ours may be this share of what is allowed.
const SHARE: u32 = 4;
/// The look over all units comes no more often.
const RECOUNT_MS: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub struct VmaCount {
    /// Not many more than this: counted once, without joints of new blocks that the kernel did not make, and what was added since.
    at_most: u32,
    counted_ms: u32,
}

impl VmaCount {
    pub const fn new() -> Self {
        VmaCount {
            at_most: 0,
            counted_ms: 0,
        }
    }

    /// A range moved: its source and its target are cut out of what they were in.
    pub fn note_move(&mut self) {
        self.at_most = self.at_most.saturating_add(4);
    }

    /// Too many mappings are ours, of those that are allowed.
    pub fn is_near_limit(&mut self, space: &Space, allowed: u32) -> bool {
        let most = allowed / SHARE;
        let since_ms = space.now_ms.wrapping_sub(self.counted_ms);
        if self.at_most > most && since_ms >= RECOUNT_MS {
            self.at_most = count_boundaries(space);
            self.counted_ms = space.now_ms;
        }
        self.at_most > most
    }
}

fn count_boundaries(space: &Space) -> u32 {
    let mut boundaries = 0;
    space.pagemap.walk(|_, unit| {
        let ours = !matches!(unit.kind(), Kind::None | Kind::Hole | Kind::Gone);
        boundaries += u32::from(ours && unit.has(Flags::VMA_BOUNDARY));
        1
    });
    boundaries
}
