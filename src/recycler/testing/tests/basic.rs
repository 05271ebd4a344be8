//! Reuse, gathering, decay and slack on the model kernel.

use crate::core::geometry::Bytes;
use crate::state::recycler::Governor;
use crate::state::stats::Fallback;
use crate::testing::model::PAGE;
use crate::testing::steps::Part;
use crate::testing::tests::strategies::step;
use crate::testing::vma_changes::VmaChange;
use crate::testing::walks;
use crate::testing::world::{Block, World, DECAY_MS, MIB};
use proptest::prelude::*;
use std::sync::atomic::Ordering::Relaxed;

/// Each run uses new random cases. `PROPTEST_CASES` overrides their number.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig {
            cases: 150,
            ..default
        },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_steps_keep_contents_and_budget(
        steps in prop::collection::vec(step(), 1..120),
        old_kernel in any::<bool>(),
    ) {
        walks::run_without_refusals(steps, old_kernel);
    }

    #[test]
    fn refused_system_calls_lose_no_contents(
        steps in prop::collection::vec((step(), any::<u64>(), any::<u64>()), 1..120),
        old_kernel in any::<bool>(),
    ) {
        // The kernel refuses a quarter of the calls.
        let steps = steps.into_iter().map(|(step, some, others)| (step, some & others));
        walks::run_with_refusals(steps, old_kernel);
    }
}

proptest! {
    // Fewer cases: the threads run one at a time, with a switch at each system call.
    #![proptest_config(ProptestConfig { cases: config().cases / 4, max_shrink_iters: 200, ..config() })]

    #[test]
    fn concurrent_threads_lose_no_contents_in_any_order_of_system_calls(
        threads in prop::collection::vec(prop::collection::vec(step(), 1..40), 2..4),
        schedule in prop::collection::vec(any::<u8>(), 0..200),
        old_kernel in any::<bool>(),
    ) {
        walks::run_threads(threads, &schedule, old_kernel);
    }
}

#[test]
fn block_reuses_the_pages_of_a_freed_block_of_equal_size() {
    let mut world = World::new();
    assert!(world.alloc(6 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    let start = block.start;
    world.free(block);
    assert!(world.alloc(6 * MIB, false));
    assert_eq!(world.blocks[0].start, start);
    assert_eq!(world.recycler.stats().fresh_bytes_total, 6 * MIB as u64);
}

#[test]
fn block_gathered_from_smaller_ones_does_not_raise_the_peak() {
    let mut world = World::new();
    for _ in 0..100 {
        assert!(world.alloc(4 * MIB, false));
    }
    // Free every other block, so that no two free extents are adjacent.
    for index in (0..100).rev().step_by(2) {
        let block = world.blocks.remove(index);
        world.free(block);
    }
    world.recycler.lock().space.tolerance.near_limit = true;
    assert!(world.alloc(200 * MIB, false));
    let stats = world.recycler.stats();
    assert_eq!(stats.peak_live_bytes, 400 * MIB as u64);
    assert_eq!(stats.fresh_bytes_total, 400 * MIB as u64);
    assert_eq!(stats.moved_bytes_total, 200 * MIB as u64);
    assert_eq!(world.vm().peak_resident.get() * PAGE, 400 * MIB);
}

#[test]
fn near_the_vma_limit_pages_are_purged_instead_of_moved() {
    let mut world = World::new();
    world.vm().mappings_allowed.set(Some(160));
    world.recycler.lock().space.tolerance.near_limit = true;
    for _ in 0..400 {
        assert!(world.alloc(2 * MIB, false));
    }
    for index in (0..400).rev().step_by(2) {
        let block = world.blocks.remove(index);
        world.free(block);
    }
    world.vm().now.set(1000);
    for _ in 0..4 {
        assert!(world.alloc(80 * MIB, false));
    }
    let moved = world.recycler.stats().moved_bytes_total;
    assert!(moved > 0 && moved < 160 * MIB as u64, "{moved}");
    assert!(world.vm().peak_resident.get() * PAGE <= 800 * MIB);
    world.audit_exactly();
}

#[test]
fn small_blocks_in_a_freed_large_block_do_not_raise_the_peak() {
    let mut world = World::new();
    world.recycler.lock().space.tolerance.near_limit = true;
    assert!(world.alloc(200 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.free(block);
    for _ in 0..160 {
        assert!(world.alloc(MIB + MIB / 8, false));
    }
    assert!(world.vm().peak_resident.get() * PAGE <= 200 * MIB);
}

#[test]
fn realloc_that_grows_a_block_moves_pages_without_a_copy() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    assert!(world.alloc(2 * MIB, false));
    for step in 2..40 {
        let block = world.blocks.remove(0);
        world.realloc(block, step * 3 * MIB);
        let last = world.blocks.pop().expect("it was just resized");
        world.blocks.insert(0, last);
    }
    let fallbacks = world.recycler.stats().fallbacks;
    assert_eq!(fallbacks[Fallback::ReallocCopied as usize], 0);
    assert_eq!(fallbacks[Fallback::MoveRefused as usize], 0);
    assert_eq!(
        world.recycler.stats().fresh_bytes_total,
        (39 * 3 + 2) * MIB as u64
    );
}

#[test]
fn decay_purges_expired_pages_and_keeps_younger_ones() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, false));
    assert!(world.alloc(4 * MIB, false));
    let old = world.take(0).expect("two blocks");
    world.free(old);
    world.vm().now.set(200);
    let young = world.take(0).expect("one block");
    world.free(young);
    world.vm().now.set(DECAY_MS);
    assert_eq!(world.recycler.decay_round(DECAY_MS), Some(DECAY_MS / 4));
    assert_eq!(world.vm().resident() * PAGE, 4 * MIB);
    world.vm().now.set(500);
    assert_eq!(world.recycler.decay_round(DECAY_MS), None);
    assert_eq!(world.vm().resident(), 0);
}

#[test]
fn short_block_with_a_changed_vma_is_cached() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.change_vma(&block, Part::FirstPage, VmaChange::Resettable);
    world.free(block);
    assert_eq!(
        world.recycler.stats().fallbacks[Fallback::AttributesAltered as usize],
        0
    );
    assert_eq!(world.recycler.stats().cached_bytes, 3 * MIB as u64);
}

#[test]
fn permanent_change_of_a_partly_copied_block_does_not_reach_another_block() {
    let mut world = World::new();
    world.vm().old_kernel.set(true);
    // The last unit has no advice for huge pages, so a VMA ends before it. The changes also end
    // there after `realloc` has copied that unit.
    assert!(world.alloc(111 * MIB, false));
    assert!(world.alloc(MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.change_vma(&block, Part::Whole, VmaChange::Permanent);
    world.realloc(
        Block {
            has_permanent_change: true,
            ..block
        },
        113 * MIB,
    );
    let grown = world.blocks.pop().expect("it was just resized");
    world.free(grown);
    assert!(world.alloc(110 * MIB, false));
}

#[test]
fn probe_past_neighbours_proves_default_attributes_of_a_full_block() {
    let mut world = World::new();
    for _ in 0..6 {
        assert!(world.alloc(4 * MIB, false));
    }
    let last = world.take(5).expect("six blocks were allocated");
    world.free(last);
    let first = world.take(0).expect("five blocks are left");
    world.free(first);
    let fallbacks = world.recycler.stats().fallbacks;
    assert_eq!(fallbacks[Fallback::AttributesReset as usize], 0);
    let (middle, next) = (world.blocks.remove(2), world.blocks.remove(2));
    world.change_vma(&next, Part::Whole, VmaChange::Resettable);
    world.free(middle);
    world.free(next);
    let fallbacks = world.recycler.stats().fallbacks;
    assert_eq!(fallbacks[Fallback::AttributesReset as usize], 1);
    assert!(world.alloc(16 * MIB, false));
}

#[test]
fn altered_free_units_are_not_used_for_a_probe() {
    let mut world = World::new();
    assert!(world.alloc(10 * MIB + PAGE, false));
    assert!(world.alloc(4 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.change_vma(&block, Part::Whole, VmaChange::Resettable);
    // The kernel refuses to unmap or to remap the units that are cut off, so they only lose their
    // pages.
    world.vm().refusals.bits.set(0b11);
    world.realloc(block, 6 * MIB + PAGE);
    world.vm().refusals.bits.set(0);
    let shorter = world.blocks.pop().expect("it was just resized");
    world.realloc(shorter, MIB);
    assert!(world.alloc(4 * MIB + PAGE, false));
}

#[test]
fn cached_pages_request_a_governor_and_stay_few_if_none_can_start() {
    for governor in [Governor::NotStarted, Governor::Unavailable] {
        let mut world = World::new();
        world.recycler.governor.store(governor, Relaxed);
        for _ in 0..5 {
            assert!(world.alloc(5 * MIB, false));
        }
        assert!(!world.recycler.wants_governor_thread.load(Relaxed));
        while let Some(block) = world.take(0) {
            world.free(block);
        }
        assert!(world.recycler.wants_governor_thread.load(Relaxed));
        let little = world.recycler.stats().cached_bytes <= 16 * MIB as u64;
        assert_eq!(little, governor == Governor::Unavailable);
    }
}

#[test]
fn purge_continues_after_refused_slack() {
    let mut world = World::new();
    for _ in 0..2 {
        assert!(world.alloc(4 * MIB, false));
    }
    while let Some(block) = world.take(0) {
        world.free(block);
    }
    for _ in 0..2 {
        assert!(world.alloc(3 * MIB, false));
    }
    world.vm().refusals.bits.set(1);
    assert_eq!(world.recycler.purge_all(), Bytes::new(2 * MIB as u64));
    world.finish();
}

#[test]
fn refused_slack_is_not_counted_as_returned() {
    let mut world = World::with_slack();
    world.vm().refusals.bits.set(u64::MAX);
    assert_eq!(world.recycler.purge_all(), Bytes::new(0));
    assert_eq!(
        world.recycler.decay_round(DECAY_MS),
        None,
        "refused slack schedules no further round"
    );
    world.vm().refusals.bits.set(0);
    let stats = world.recycler.stats();
    assert_eq!(stats.slack_bytes, MIB as u64);
    assert_eq!(stats.returned_bytes_total, 0);
    assert_eq!(stats.fallbacks[Fallback::DiscardRefused as usize], 1);
    assert_eq!(world.recycler.purge_all(), Bytes::new(MIB as u64));
    world.finish();
}
