//! Edge cases of allocation, decay and remapping.

use crate::core::geometry::{Contents, Pages};
use crate::core::unit::{id_of, Extent, Flags, Kind, UNIT_BYTES};
use crate::state::stats::Fallback;
use crate::testing::model::PAGE;
use crate::testing::steps::{Part, Step};
use crate::testing::vma_changes::VmaChange;
use crate::testing::world::{World, DECAY_MS, MIB};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn missing_pages_of_a_reused_extent_count_as_churn() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.free(block);
    assert!(world.alloc(4 * MIB, false));
    let fresh = world.recycler.lock().space.tolerance.churn.fresh_pages();
    assert_eq!(fresh, Pages::new((4 * MIB / PAGE) as u64));
}

#[test]
fn large_block_has_huge_page_advice_on_full_units_only() {
    for (bytes, asking) in [(40 * MIB, 20), (41 * MIB, 20)] {
        let mut world = World::new();
        assert!(world.alloc(bytes, false));
        let units = id_of(world.blocks[0].start)..;
        let asks = |id: &u32| world.recycler.pagemap.unit(*id).has(Flags::HUGE);
        let count = bytes.div_ceil(UNIT_BYTES);
        assert_eq!(
            units.take(count).filter(asks).count(),
            asking,
            "{bytes} bytes"
        );
    }
}

#[test]
fn partial_fresh_last_unit_gets_no_huge_page_advice() {
    let mut world = World::new();
    assert!(world.alloc(32 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.free(block);
    world.recycler.lock().space.tolerance.near_limit = true;
    world.vm().advised_huge.set(false);
    assert!(world.alloc(33 * MIB, false));
    assert_eq!(
        world.recycler.stats().fresh_bytes_total,
        33 * MIB as u64,
        "one fresh MiB"
    );
    assert!(!world.vm().advised_huge.get());
}

#[test]
fn permanent_change_causes_huge_page_advice_on_the_whole_block() {
    for bytes in [MIB, 4 * MIB, 6 * MIB] {
        let mut world = World::new();
        assert!(world.alloc(bytes, true));
        let block = world.take(0).expect("it was just allocated");
        world.change_vma(&block, Part::FirstPage, VmaChange::Permanent);
        world.free(block);
        assert!(world.vm().advised_huge.get(), "{bytes} bytes");
    }
}

#[test]
fn permanent_change_on_half_of_a_block_does_not_reach_another_block() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, true));
    let block = world.take(0).expect("it was just allocated");
    let half = block.start + 4 * MIB;
    world.vm().change_vma(half, 4 * MIB, VmaChange::Permanent);
    world.free(block);
    assert!(world.alloc(8 * MIB, true));
}

#[test]
fn shrunk_block_with_a_changed_vma_grows_in_place() {
    let mut world = World::new();
    assert!(world.alloc(6 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    let start = block.start;
    world.change_vma(&block, Part::Whole, VmaChange::Resettable);
    world.realloc(block, 5 * MIB);
    let shorter = world.take(0).expect("it was just resized");
    world.realloc(shorter, 6 * MIB);
    assert_eq!(world.blocks[0].start, start);
}

#[test]
fn only_addresses_of_live_and_cached_units_are_held() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    let start = block.start;
    let held = |world: &World| {
        [start - 1, start, start + 4 * MIB - 1, start + 4 * MIB]
            .map(|address| world.recycler.holds(address))
    };
    assert_eq!(held(&world), [false, true, true, false]);
    world.free(block);
    assert_eq!(held(&world), [false, true, true, false]);
    world.recycler.purge_all();
    assert_eq!(held(&world), [false; 4]);
    assert!(!world.recycler.holds(usize::MAX));
}

#[test]
fn live_blocks_request_a_governor() {
    let mut world = World::new();
    for blocks in 1..=8 {
        assert!(world.alloc(4 * MIB, false));
        assert_eq!(
            world.recycler.wants_governor_thread.load(Relaxed),
            blocks == 8,
            "{blocks}"
        );
    }
}

#[test]
fn due_decay_round_purges_expired_pages_at_any_clock_value() {
    let day_ms = 24 * 60 * 60 * 1000;
    for days in [0, 30, 60_u32] {
        let mut world = World::new();
        // The clock wraps after 49 days.
        let start_ms = days.wrapping_mul(day_ms);
        world.vm().now.set(start_ms);
        assert!(world.alloc(4 * MIB, false));
        let block = world.take(0).expect("it was just allocated");
        world.free(block);
        world.vm().now.set(start_ms + 2 * DECAY_MS);
        world.recycler.decay_round_if_due(DECAY_MS);
        assert_eq!(world.recycler.stats().cached_bytes, 0, "{days} days up");
    }
}

#[test]
fn altered_empty_extent_is_remapped_before_reuse() {
    let mut world = World::new();
    assert!(world.alloc(4 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    let start = block.start;
    world.free(block);
    world.run(Step::Pressure { near: true });
    world.recycler.purge_cached(Pages::new(u64::MAX >> 1));
    assert_eq!(world.recycler.lock().space.empty.units(), 2);
    world
        .recycler
        .pagemap
        .unit(id_of(start))
        .add_flags(Flags::ALTERED);
    assert!(world.alloc(4 * MIB, false));
    assert_eq!(world.blocks[0].start, start);
    assert!(!world
        .recycler
        .pagemap
        .unit(id_of(start))
        .has(Flags::ALTERED));
}

#[test]
fn cached_extent_is_extended_by_the_empty_units_behind_it() {
    let mut world = World::new();
    assert!(world.alloc(2 * MIB, false));
    assert!(world.alloc(16 * MIB, false));
    let behind = world.take(1).expect("it was just allocated");
    world.free(behind);
    world.run(Step::Pressure { near: true });
    world.recycler.purge_cached(Pages::new(u64::MAX >> 1));
    let before = world.take(0).expect("it was just allocated");
    let start = before.start;
    world.free(before);
    assert!(world.alloc(18 * MIB, false));
    assert_eq!(world.blocks[0].start, start);
    world.audit_exactly();
}

#[test]
fn cut_units_of_a_changed_block_are_cached_only_after_a_reset() {
    for (refusals, kept_units) in [(0, 2), (1, 0)] {
        let mut world = World::new();
        assert!(world.alloc(8 * MIB, false));
        let block = world.take(0).expect("it was just allocated");
        world.change_vma(&block, Part::Whole, VmaChange::Resettable);
        world.vm().refusals.bits.set(refusals);
        world.realloc(block, 4 * MIB);
        let cached_units = world.recycler.lock().space.cached.units();
        assert_eq!(cached_units, kept_units, "{refusals} refused");
    }
}

/// 40 cached extents of one unit each, none adjacent to another.
fn many_cached() -> World {
    let mut world = World::new();
    for _ in 0..80 {
        assert!(world.alloc(2 * MIB, false));
    }
    world.blocks.sort_by_key(|block| block.start);
    for which in (0..80).step_by(2).rev() {
        let block = world.blocks.remove(which);
        world.free(block);
    }
    world
}

#[test]
fn trim_unmaps_more_cached_extents_than_one_batch_holds() {
    let world = many_cached();
    assert_eq!(world.recycler.lock().space.cached.units(), 40);
    world.recycler.purge_all();
    assert_eq!(world.vm().mapped_units(), 40);
}

#[test]
fn trim_unmaps_more_empty_extents_than_one_batch_holds() {
    let world = many_cached();
    while world.recycler.purge_cached(Pages::new(u64::MAX >> 1)) > Pages::NONE {}
    assert_eq!(world.recycler.lock().space.empty.units(), 40);
    world.recycler.purge_all();
    assert_eq!(world.vm().mapped_units(), 40);
}

#[test]
fn refused_memory_releases_the_addresses_of_all_free_extents_at_the_limit_of_vmas_too() {
    let world = many_cached();
    world.vm().mappings_allowed.set(Some(4));
    world.recycler.lock().vma_count.record_splits();
    world.recycler.purge_all();
    assert_eq!(world.vm().mapped_units(), 80, "a trim splits no VMA");
    assert!(world.recycler.release_addresses());
    assert_eq!(world.vm().mapped_units(), 40);
    assert!(!world.recycler.release_addresses(), "nothing is left");
}

#[test]
fn refused_memory_waits_for_other_threads_that_unmap() {
    let world = World::new();
    world.recycler.lock().unmapping_units = 1;
    let recycler = std::rc::Rc::downgrade(&world.recycler);
    let end_unmapping = move || {
        let recycler = recycler.upgrade().expect("the test runs");
        recycler.lock().unmapping_units = 0;
    };
    *world.vm().at_yield.borrow_mut() = Some(Box::new(end_unmapping));
    assert!(world.recycler.release_addresses());
    assert_eq!(world.vm().yields.get(), 1);
}

#[test]
fn extent_of_several_vmas_is_moved_unit_by_unit_on_an_old_kernel() {
    let mut world = World::new();
    world.vm().old_kernel.set(true);
    assert!(world.alloc(80 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    let middle = block.start / UNIT_BYTES + 20;
    world.free(block);
    // As if the pages of this unit had been moved there: the unit is a separate VMA.
    world.vm().mapped.borrow_mut().insert(middle, 7);
    assert!(world
        .recycler
        .alloc_block(100 * MIB, Contents::Any)
        .is_some());
    assert_eq!(world.vm().resident(), 80 * MIB / PAGE);
}

/// A `Busy` extent of three units, owned by this thread.
fn busy() -> (World, Extent) {
    let mut world = World::new();
    assert!(world.alloc(6 * MIB, false));
    let head = id_of(world.blocks[0].start);
    let extent = Extent::new(head, 3);
    world.recycler.lock().space.split_to_busy_units(extent);
    (world, extent)
}

fn kinds(world: &World, extent: Extent) -> Vec<Kind> {
    let kind = |id| world.recycler.pagemap.unit(id).kind();
    extent.units().map(kind).collect()
}

#[test]
fn busy_addresses_are_not_reported_as_held() {
    let (world, extent) = busy();
    let held = |unit: Extent| world.recycler.holds(unit.start());
    assert!(!extent.extents().any(held));
}

#[test]
fn extent_of_several_units_is_remapped_in_one_call() {
    let (world, extent) = busy();
    // The kernel would refuse a second call.
    world.vm().refusals.bits.set(0b10);
    world.recycler.remap_or_give_up(extent);
    assert_eq!(world.vm().refusals.bits.get(), 1, "one call");
    assert_eq!(world.vm().resident(), 0);
    assert_eq!(kinds(&world, extent), [Kind::Busy; 3]);
}

#[test]
fn units_of_a_refused_remap_become_fresh_gone_or_stuck() {
    let (world, extent) = busy();
    // The remap of the whole extent is refused. The first unit is remapped, the second only
    // unmapped. Both calls are refused for the third.
    world.vm().refusals.bits.set(0b11_0101);
    world.recycler.remap_or_give_up(extent);
    assert_eq!(kinds(&world, extent), [Kind::Busy, Kind::Gone, Kind::Stuck]);
    assert_eq!(world.vm().mapped_units(), 2);
    let fallbacks = world.recycler.stats().fallbacks;
    assert_eq!(fallbacks[Fallback::Stuck as usize], 1);
}

#[test]
fn unit_that_is_gone_is_not_remapped() {
    let (world, extent) = busy();
    let middle = Extent::unit(extent.head + 1);
    world
        .vm()
        .mapped
        .borrow_mut()
        .remove(&(middle.start() / UNIT_BYTES));
    world.recycler.mark_gone(middle);
    world.recycler.remap_or_give_up(extent);
    assert_eq!(kinds(&world, extent), [Kind::Busy, Kind::Gone, Kind::Busy]);
    assert_eq!(world.vm().mapped_units(), 2);
}
