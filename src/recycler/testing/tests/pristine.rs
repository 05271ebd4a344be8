//! Which pages near a block, and how far away, show that nothing was done to it.

use crate::state::stats::Fallback;
use crate::testing::marks::Mark;
use crate::testing::steps::Part;
use crate::testing::world::{World, MIB};

/// Where the page lies that nobody has.
#[derive(Clone, Copy, Debug)]
enum Witness {
    Before,
    Behind,
}

/// Whether a block is seen to be untouched by a page of the extent beyond so many neighbours, which is a block of so
/// many bytes, or a free one. No page farther away can tell: on both sides there are marks.
fn is_seen(reference_page: Witness, neighbours: usize, bytes: usize, is_free: bool) -> bool {
    let mut world = World::new();
    let count = neighbours + 4;
    let (at, block) = match reference_page {
        Witness::Before => (1, count - 2),
        Witness::Behind => (count - 2, 1),
    };
    for place in 0..count {
        let bytes = if place == at { bytes } else { 4 * MIB };
        assert!(world.alloc(bytes, false));
    }
    assert!(world.blocks.is_sorted_by_key(|block| block.start));
    world.mark(&world.blocks[0], Part::Whole, Mark::Plain);
    world.mark(&world.blocks[count - 1], Part::Whole, Mark::Plain);
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
    for reference_page in [Witness::Before, Witness::Behind] {
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
    for reference_page in [Witness::Before, Witness::Behind] {
        assert!(
            !is_seen(reference_page, 0, 4 * MIB, false),
            "{reference_page:?}"
        );
    }
}

#[test]
fn a_third_look_at_a_mapping_gives_way_to_the_two_that_are_under_way() {
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
            assert_eq!(world.map().gave_way.get(), times);
            // An old block is looked through for guards as well, and first.
            let before_guards = if age_ms > 0 { times } else { 0 };
            assert_eq!(world.map().gave_way_to_guards.get(), before_guards);
        }
    }
}
