//! The nearby pages that prove the attributes of a block to be unchanged.

use crate::state::stats::Fallback;
use crate::testing::steps::Part;
use crate::testing::vma_changes::VmaChange;
use crate::testing::world::{World, MIB};

/// Where the page lies that nobody has.
#[derive(Clone, Copy, Debug)]
enum ReferencePage {
    Before,
    Behind,
}

/// Whether a block is seen to be untouched by a page of the extent beyond so many neighbours, which is a block of so
/// many bytes, or a free one. No page farther away can tell: on both sides there are marks.
fn is_seen(reference_page: ReferencePage, neighbours: usize, bytes: usize, is_free: bool) -> bool {
    let mut world = World::new();
    let count = neighbours + 4;
    let (at, block) = match reference_page {
        ReferencePage::Before => (1, count - 2),
        ReferencePage::Behind => (count - 2, 1),
    };
    for place in 0..count {
        let bytes = if place == at { bytes } else { 4 * MIB };
        assert!(world.alloc(bytes, false));
    }
    assert!(world.blocks.is_sorted_by_key(|block| block.start));
    world.change_vma(&world.blocks[0], Part::Whole, VmaChange::Resettable);
    world.change_vma(&world.blocks[count - 1], Part::Whole, VmaChange::Resettable);
    let block = world.blocks.remove(block);
    if is_free {
        let at = if at > 1 { at - 1 } else { at };
        let free = world.blocks.remove(at);
        world.free(free);
    }
    let resets =
        |world: &World| world.recycler.stats().fallbacks[Fallback::AttributesReset as usize];
    let before = resets(&world);
    world.free(block);
    resets(&world) == before
}

fn check_past_four_blocks_and_no_more(bytes: usize, is_free: bool) {
    for reference_page in [ReferencePage::Before, ReferencePage::Behind] {
        for neighbours in 0..7 {
            let seen = is_seen(reference_page, neighbours, bytes, is_free);
            assert_eq!(
                seen,
                neighbours <= 4,
                "{reference_page:?}, {neighbours} between"
            );
        }
    }
}

#[test]
fn a_free_extent_shows_it_past_four_blocks_and_no_more() {
    check_past_four_blocks_and_no_more(4 * MIB, true);
}

#[test]
fn so_does_the_spare_page_of_a_block() {
    check_past_four_blocks_and_no_more(3 * MIB, false);
}

#[test]
fn a_block_without_a_spare_page_shows_nothing() {
    for reference_page in [ReferencePage::Before, ReferencePage::Behind] {
        assert!(
            !is_seen(reference_page, 0, 4 * MIB, false),
            "{reference_page:?}"
        );
    }
}

#[test]
fn third_concurrent_probe_yields_to_the_first_two() {
    for (probe_limit, times) in [(0, 0), (1, 0), (2, 32)] {
        for age_ms in [0, 60_000] {
            let mut world = World::new();
            assert!(world.alloc(4 * MIB, false));
            let map = world.map();
            map.now.set(map.now.get() + age_ms);
            let block = world.take(0).expect("it was just made");
            for _ in 0..probe_limit {
                std::mem::forget(
                    world
                        .recycler
                        .probe_limit
                        .acquire(|| unreachable!("there is room")),
                );
            }
            world.free(block);
            assert_eq!(world.map().yields.get(), times);
            // An old block is looked through for guards as well, and first.
            let before_guards = if age_ms > 0 { times } else { 0 };
            assert_eq!(world.map().yields_before_guards.get(), before_guards);
        }
    }
}
