//! Edge cases of allocation, decay and remapping.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::geometry::Contents;
use crate::core::unit::{id_of, Flags, Kind, UNIT_BYTES};
use crate::state::stats::Fallback;
use crate::testing::model::PAGE;
use crate::testing::steps::{Part, Step};
use crate::testing::vma_changes::VmaChange;
use crate::testing::world::{World, DECAY_MS, MIB};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn pages_that_a_cached_extent_lacks_count_as_churn() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    let block = world.take(0).expect("it was just made");
    world.free(block);
    assert!(world.alloc(4 * MIB, false));
    let fresh = world.recycler.lock().space.tolerance.churn.fresh_pages();
    assert_eq!(fresh, Pages::new((4 * MIB / PAGE) as u64));
}

#[test]
fn a_large_block_asks_for_huge_pages_in_whole_units_only() {
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
fn a_last_unit_that_alone_is_fresh_and_not_full_asks_for_nothing() {
    let mut world = World::new();
    assert!(world.alloc(32 * MIB, false));
    let block = world.take(0).expect("it was just made");
    world.free(block);
    world.recycler.lock().space.tolerance.near_limit = true;
    world.map().advised_huge.set(false);
    assert!(world.alloc(33 * MIB, false));
    assert_eq!(
        world.recycler.stats().fresh_bytes_total,
        33 * MIB as u64,
        "one MiB more"
    );
    assert!(!world.map().advised_huge.get());
}

#[test]
fn advice_that_cannot_be_taken_off_is_spread_over_large_blocks_only() {
    for (bytes, advised) in [(4 * MIB, false), (6 * MIB, true)] {
        let mut world = World::new();
        assert!(world.alloc(bytes, true));
        let block = world.take(0).expect("it was just made");
        world.change_vma(&block, Part::FirstPage, VmaChange::Permanent);
        world.free(block);
        assert_eq!(world.map().advised_huge.get(), advised, "{bytes} bytes");
    }
}

#[test]
fn permanent_changes_on_half_of_a_block_reach_no_other_block() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, true));
    let block = world.take(0).expect("it was just made");
    let half = block.start + 4 * MIB;
    world.map().change_vma(half, 4 * MIB, VmaChange::Permanent);
    world.free(block);
    assert!(world.alloc(8 * MIB, true));
}

#[test]
fn changed_block_that_shrank_grows_again_in_place() {
    let mut world = World::new();
    assert!(world.alloc(6 * MIB, false));
    let block = world.take(0).expect("it was just made");
    let start = block.start;
    world.change_vma(&block, Part::Whole, VmaChange::Resettable);
    world.realloc(block, 5 * MIB);
    let shorter = world.take(0).expect("it was just put back");
    world.realloc(shorter, 6 * MIB);
    assert_eq!(world.blocks[0].start, start);
}

#[test]
fn an_address_is_ours_while_its_unit_is_live_or_kept_and_no_other_is() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    let block = world.take(0).expect("it was just made");
    let start = block.start;
    let ours = |world: &World| {
        [start - 1, start, start + 4 * MIB - 1, start + 4 * MIB]
            .map(|address| world.recycler.holds(address))
    };
    assert_eq!(ours(&world), [false, true, true, false]);
    world.free(block);
    assert_eq!(ours(&world), [false, true, true, false]);
    world.recycler.purge_all();
    assert_eq!(ours(&world), [false; 4]);
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
fn calls_of_the_program_give_back_what_is_old_whatever_the_clock_says() {
    let day_ms = 24 * 60 * 60 * 1000;
    for days in [0, 30, 60_u32] {
        let mut world = World::new();
        // The clock wraps after 49 days.
        let start_ms = days.wrapping_mul(day_ms);
        world.map().now.set(start_ms);
        assert!(world.alloc(4 * MIB, false));
        let block = world.take(0).expect("it was just made");
        world.free(block);
        world.map().now.set(start_ms + 2 * DECAY_MS);
        world.recycler.decay_round_if_due(DECAY_MS);
        assert_eq!(world.recycler.stats().cached_bytes, 0, "{days} days up");
    }
}

#[test]
fn altered_empty_extent_is_remapped_and_reused() {
    let mut world = World::new();
    assert!(world.alloc(4 * MIB, false));
    let block = world.take(0).expect("it was just made");
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
fn a_cached_extent_grows_over_as_many_empty_units_as_are_needed() {
    let mut world = World::new();
    assert!(world.alloc(2 * MIB, false));
    assert!(world.alloc(16 * MIB, false));
    let behind = world.take(1).expect("it was just made");
    world.free(behind);
    world.run(Step::Pressure { near: true });
    world.recycler.purge_cached(Pages::new(u64::MAX >> 1));
    let before = world.take(0).expect("it was just made");
    let start = before.start;
    world.free(before);
    assert!(world.alloc(18 * MIB, false));
    assert_eq!(world.blocks[0].start, start);
    world.audit_exactly();
}

#[test]
fn tail_cut_off_by_realloc_is_kept_only_after_its_attributes_are_reset() {
    for (refusals, kept_units) in [(0, 2), (1, 0)] {
        let mut world = World::new();
        assert!(world.alloc(8 * MIB, false));
        let block = world.take(0).expect("it was just made");
        world.change_vma(&block, Part::Whole, VmaChange::Resettable);
        world.map().refusals.bits.set(refusals);
        world.realloc(block, 4 * MIB);
        let cached_units = world.recycler.lock().space.cached.units();
        assert_eq!(cached_units, kept_units, "{refusals} refused");
    }
}

/// 40 extents, none beside another, of one unit each.
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
fn a_trim_gives_back_more_extents_than_one_hold_of_the_lock_takes() {
    let world = many_cached();
    assert_eq!(world.recycler.lock().space.cached.units(), 40);
    world.recycler.purge_all();
    assert_eq!(world.map().mapped_units(), 40);
}

#[test]
fn a_trim_gives_back_as_many_empty_ones() {
    let world = many_cached();
    while world.recycler.purge_cached(Pages::new(u64::MAX >> 1)) > Pages::NONE {}
    assert_eq!(world.recycler.lock().space.empty.units(), 40);
    world.recycler.purge_all();
    assert_eq!(world.map().mapped_units(), 40);
}

#[test]
fn pages_of_many_mappings_move_by_unit_where_a_kernel_moves_no_more_at_once() {
    let mut world = World::new();
    world.map().old_kernel.set(true);
    assert!(world.alloc(80 * MIB, false));
    let block = world.take(0).expect("it was just made");
    let middle = block.start / UNIT_BYTES + 20;
    world.free(block);
    // Pages came there from elsewhere: a mapping of its own.
    world.map().mapped.borrow_mut().insert(middle, 7);
    assert!(world
        .recycler
        .alloc_block(100 * MIB, Contents::Any)
        .is_some());
    assert_eq!(world.map().resident(), 80 * MIB / PAGE);
}

/// Three units in this thread's hands.
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
    let ours = |unit: Extent| world.recycler.holds(unit.start());
    assert!(!extent.extents().any(ours));
}

#[test]
fn altered_extent_is_remapped_in_one_call() {
    let (world, extent) = busy();
    // The second call would be refused.
    world.map().refusals.bits.set(0b10);
    world.recycler.remap_or_give_up(extent);
    assert_eq!(world.map().refusals.bits.get(), 1, "one call");
    assert_eq!(world.map().resident(), 0);
    assert_eq!(kinds(&world, extent), [Kind::Busy; 3]);
}

#[test]
fn of_what_cannot_be_mapped_anew_each_unit_is_renewed_given_up_or_stuck() {
    let (world, extent) = busy();
    // All at once: no. The first unit: yes. The second: no, but it goes. The third neither way.
    world.map().refusals.bits.set(0b11_0101);
    world.recycler.remap_or_give_up(extent);
    assert_eq!(kinds(&world, extent), [Kind::Busy, Kind::Gone, Kind::Stuck]);
    assert_eq!(world.map().mapped_units(), 2);
    let fallbacks = world.recycler.stats().fallbacks;
    assert_eq!(fallbacks[Fallback::Stuck as usize], 1);
}

#[test]
fn a_unit_that_is_gone_is_not_mapped_anew() {
    let (world, extent) = busy();
    let middle = Extent::unit(extent.head + 1);
    world
        .map()
        .mapped
        .borrow_mut()
        .remove(&(middle.start() / UNIT_BYTES));
    world.recycler.mark_gone(middle);
    world.recycler.remap_or_give_up(extent);
    assert_eq!(kinds(&world, extent), [Kind::Busy, Kind::Gone, Kind::Busy]);
    assert_eq!(world.map().mapped_units(), 2);
}
