//! Who allocated a block: a word that its allocator leaves beside the block's head unit, and that a
//! walk over all live blocks reads back. What it means is the caller's business.

use crate::core::unit::{address, id_of, Kind};
use crate::os::vm::Vm;
use crate::state::recycler::Recycler;
use std::sync::atomic::Ordering::Relaxed;

/// A live block as a walk finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    pub start: usize,
    pub bytes: usize,
    pub origin: u64,
    pub age_ms: u32,
}

impl<M: Vm> Recycler<M> {
    /// For the owner of a live block, before anybody else knows of it.
    #[inline]
    pub fn note_origin(&self, start: usize, origin: u64) {
        if let Some(word) = self.pagemap.origin(id_of(start)) {
            word.store(origin, Relaxed);
        }
    }

    /// Adds the live blocks, as many as `blocks` has room for: under the lock nothing may be allocated.
    pub fn list_blocks(&self, blocks: &mut Vec<LiveBlock>) {
        let state = self.lock();
        let now_ms = state.space.now_ms;
        self.pagemap.walk(|head, unit| match unit.kind() {
            Kind::Live => {
                if blocks.len() < blocks.capacity() {
                    let origin = self.pagemap.origin(head);
                    blocks.push(LiveBlock {
                        start: address(head),
                        bytes: self.geometry().size(unit.pages()),
                        origin: origin.map_or(0, |word| word.load(Relaxed)),
                        age_ms: now_ms.wrapping_sub(unit.stamp()),
                    });
                }
                unit.len()
            }
            Kind::Cached | Kind::Empty | Kind::Hole | Kind::Busy => unit.len(),
            _ => 1,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::world::World;

    #[test]
    fn a_live_block_keeps_its_origin_and_a_freed_one_is_not_listed() {
        let world = World::new();
        let first = world.recycler.alloc_block(3 << 20, false).unwrap();
        let second = world.recycler.alloc_block(1 << 20, false).unwrap();
        world.recycler.note_origin(first, 7);
        world.recycler.note_origin(second, 9);
        world.recycler.free_block(second);
        let mut blocks = Vec::with_capacity(8);
        world.recycler.list_blocks(&mut blocks);
        let expected = LiveBlock {
            start: first,
            bytes: 3 << 20,
            origin: 7,
            age_ms: 0,
        };
        assert_eq!(blocks, [expected]);
    }

    #[test]
    fn no_more_blocks_are_listed_than_there_is_room_for() {
        let world = World::new();
        (0..3).for_each(|_| assert!(world.recycler.alloc_block(1 << 20, false).is_some()));
        let mut blocks = Vec::with_capacity(2);
        world.recycler.list_blocks(&mut blocks);
        assert_eq!(blocks.len(), 2);
    }
}
