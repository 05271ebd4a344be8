//! Free pages near a block prove that it has default attributes.

use crate::state::stats::Fallback;
use crate::testing::steps::Part;
use crate::testing::vma_changes::VmaChange;
use crate::testing::world::{World, MIB};

/// The position of the free page relative to the block.
#[derive(Clone, Copy, Debug)]
enum ReferencePage {
    Before,
    Behind,
}

/// Frees a block and returns true if a probe proves its default attributes. The only free page that
/// the probe can use is in an extent of `bytes` bytes. `neighbours` blocks without a spare page lie
/// between the two, and blocks with changed VMAs surround them all.
fn is_proven(
    reference_page: ReferencePage,
    neighbours: usize,
    bytes: usize,
    is_free: bool,
) -> bool {
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

fn check_probe_skips_at_most_four_blocks(bytes: usize, is_free: bool) {
    for reference_page in [ReferencePage::Before, ReferencePage::Behind] {
        for neighbours in 0..7 {
            let proven = is_proven(reference_page, neighbours, bytes, is_free);
            assert_eq!(
                proven,
                neighbours <= 4,
                "{reference_page:?}, {neighbours} blocks between"
            );
        }
    }
}

#[test]
fn free_extent_proves_default_attributes_past_at_most_four_blocks() {
    check_probe_skips_at_most_four_blocks(4 * MIB, true);
}

#[test]
fn spare_page_proves_default_attributes_past_at_most_four_blocks() {
    check_probe_skips_at_most_four_blocks(3 * MIB, false);
}

#[test]
fn neighbour_without_a_spare_page_proves_nothing() {
    for reference_page in [ReferencePage::Before, ReferencePage::Behind] {
        assert!(
            !is_proven(reference_page, 0, 4 * MIB, false),
            "{reference_page:?}"
        );
    }
}

#[test]
fn third_concurrent_probe_yields_to_the_first_two() {
    for (permits_in_use, yields) in [(0, 0), (1, 0), (2, 32)] {
        for age_ms in [0, 60_000] {
            let mut world = World::new();
            assert!(world.alloc(4 * MIB, false));
            let vm = world.vm();
            vm.now.set(vm.now.get() + age_ms);
            let block = world.take(0).expect("it was just allocated");
            for _ in 0..permits_in_use {
                std::mem::forget(
                    world
                        .recycler
                        .probe_limit
                        .acquire(|| unreachable!("a permit is free")),
                );
            }
            world.free(block);
            assert_eq!(world.vm().yields.get(), yields);
            // The search for guards in an old block comes first and also needs a permit.
            let before_guards = if age_ms > 0 { yields } else { 0 };
            assert_eq!(world.vm().yields_before_guards.get(), before_guards);
        }
    }
}
