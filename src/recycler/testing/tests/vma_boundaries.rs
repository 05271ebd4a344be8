//! The number of blocks with several VMAs stays small.

use crate::core::unit::{id_of, Flags, Kind, UNIT_BYTES};
use crate::testing::model::PAGE;
use crate::testing::world::{World, MIB};

/// Three live blocks and three free extents, alternating.
fn with_gaps(bytes: usize) -> World {
    let mut world = World::new();
    for _ in 0..6 {
        assert!(world.alloc(bytes, false));
    }
    for index in [4, 2, 0] {
        let block = world.blocks.remove(index);
        world.free(block);
    }
    assert!(world.blocks.is_sorted_by_key(|block| block.start));
    world
}

/// As `with_gaps`, but the pages of the free extents were moved to a block. The second unit of each
/// free extent starts a VMA.
fn with_patched_gaps() -> World {
    let mut world = with_gaps(3 * MIB);
    world.recycler.lock().space.tolerance.near_limit = true;
    assert!(world.alloc(11 * MIB, false));
    world.recycler.lock().space.tolerance.near_limit = false;
    assert_eq!(world.recycler.stats().moved_bytes_total, 9 * MIB as u64);
    let first = id_of(world.blocks[0].start) - 2;
    for head in [first, first + 4, first + 8] {
        assert_eq!(world.recycler.pagemap.unit(head).kind(), Kind::Empty);
        world
            .recycler
            .pagemap
            .unit(head + 1)
            .add_flags(Flags::VMA_BOUNDARY);
    }
    world
}

#[test]
fn empty_extent_of_several_vmas_is_remapped_as_one_vma_before_reuse() {
    for (moved, boundary) in [(0, false), (1, true)] {
        let mut world = with_patched_gaps();
        let heads: Vec<_> = world.blocks.iter().map(|block| block.start).collect();
        for start in heads {
            let unit = start / UNIT_BYTES;
            world.vm().mapped.borrow_mut().insert(unit, moved);
        }
        assert!(world.alloc(3 * MIB, false));
        let block = world.blocks.pop().expect("it was just allocated");
        let head = id_of(block.start);
        let has = |id| world.recycler.pagemap.unit(id).has(Flags::VMA_BOUNDARY);
        assert!(!has(head + 1));
        assert_eq!(has(head + 2), boundary, "{moved}");
        world.free(block);
    }
}

#[test]
fn empty_extent_of_several_vmas_is_reused_unchanged_if_the_remap_is_refused() {
    let mut world = with_patched_gaps();
    let before = world.vm().mapped_units();
    world.vm().refusals.bits.set(0b1);
    assert!(world.alloc(3 * MIB, false));
    assert_eq!(world.vm().refusals.bits.get(), 0, "the remap was attempted");
    assert_eq!(world.vm().mapped_units(), before);
    let block = world.blocks.pop().expect("it was just allocated");
    let second = world.recycler.pagemap.unit(id_of(block.start) + 1);
    assert!(second.has(Flags::VMA_BOUNDARY));
    world.free(block);
}

#[test]
fn under_churn_a_block_gets_fresh_pages_and_cached_pages_are_purged() {
    for churned in [false, true] {
        let mut world = with_gaps(24 * MIB);
        {
            let mut state = world.recycler.lock();
            let peak = state.space.ledger.peak_live();
            let tolerance = &mut state.space.tolerance;
            let scale = tolerance.churn_scale(peak);
            for window in 0..if churned { 160 } else { 0 } {
                let pages = peak / 50;
                tolerance
                    .churn
                    .record(window * 50, pages, pages, peak, scale);
            }
        }
        world.vm().now.set(160 * 50);
        for _ in 0..2 {
            assert!(world.alloc(40 * MIB, false));
        }
        let numbers = world.recycler.stats();
        assert_eq!(numbers.moved_bytes_total == 0, churned);
        assert_eq!(numbers.returned_bytes_total > 0, churned);
        let live = 3 * 24 + 2 * 40;
        let most = (live + 32 + live / 5) * MIB;
        assert!(world.vm().peak_resident.get() * PAGE <= most);
    }
}
