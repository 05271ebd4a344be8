//! A forked child reaches a consistent state from each state of its parent.

use crate::core::geometry::{Bytes, Contents};
use crate::core::page_ledger::Column;
use crate::core::unit::{Extent, Flags, FreeKind, Kind, UNIT_BYTES};
use crate::ops::free::FreeOutcome;
use crate::ops::realloc::Realloc;
use crate::os::throttle::ConcurrencyLimit;
use crate::os::vm::Vm;
use crate::testing::steps::Step;
use crate::testing::world::{World, MIB};

#[test]
fn child_forked_during_an_unmapping_unmaps_the_rest() {
    let mut world = World::new();
    assert!(world.alloc(80 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.free(block);
    let mut state = world.recycler.lock();
    let extent = state
        .space
        .take_best_fit(40, FreeKind::Cached)
        .expect("the block was freed");
    state.remove_from_column(extent, Column::Purging);
    state.space.pagemap.label(extent, Kind::Purging);
    // The parent has unmapped the first 16 units.
    let stride = extent.prefix(16);
    let rest = Extent::new(stride.end(), 24);
    state.space.pagemap.label(rest, Kind::Purging);
    world.recycler.mark_gone(stride);
    drop(state);
    // SAFETY: the model's addresses are plain numbers, so no memory is unmapped.
    assert!(unsafe { world.vm().unmap(stride.start(), 16 * UNIT_BYTES) });
    world.run(Step::Fork);
    world.audit_exactly();
    assert_eq!(world.vm().resident(), 0);
    assert_eq!(world.vm().mapped_units(), 0);
}

#[test]
fn child_forked_during_a_decay_round_unmaps_the_expired_extents() {
    let mut world = World::new();
    for _ in 0..3 {
        assert!(world.alloc(8 * MIB, false));
    }
    world.blocks.sort_by_key(|block| block.start);
    let (first, last) = (world.take(0), world.take(0));
    for block in [first, last].into_iter().flatten() {
        world.free(block);
    }
    let mut extents = [Extent::default(); 4];
    let mut state = world.recycler.lock();
    assert_eq!(state.take_expired(FreeKind::Cached, 0, &mut extents), 2);
    drop(state);
    world.run(Step::Fork);
    world.audit_exactly();
    assert_eq!(
        world.vm().mapped_units(),
        4,
        "only the live block is mapped"
    );
}

#[test]
fn child_unmaps_all_extents_that_threads_of_the_parent_were_unmapping() {
    let mut world = World::new();
    for _ in 0..3 {
        assert!(world.alloc(8 * MIB, false));
    }
    for _ in 0..3 {
        let block = world.take(0).expect("it was just allocated");
        let extent = world.recycler.find(block.start).expect("the block is live");
        let mut state = world.recycler.lock();
        state.space.mark_busy(extent, Column::Purging);
        state.space.pagemap.label(extent, Kind::Purging);
    }
    world.run(Step::Fork);
    world.audit_exactly();
    assert_eq!(world.vm().mapped_units(), 0);
}

#[test]
fn child_forked_under_the_lock_gives_up_the_recycler_and_frees_its_blocks() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    std::thread::scope(|scope| {
        let state = &world.recycler.state;
        scope.spawn(move || std::mem::forget(state.lock()));
    });
    // SAFETY: no other thread uses this recycler, as in a forked child.
    assert!(!unsafe { world.recycler.mark_inherited() });
    assert_eq!(world.recycler.alloc_block(8 * MIB, Contents::Any), None);
    assert_eq!(world.recycler.size_at(block.start), Some(8 * MIB));
    let extent = world.recycler.find(block.start).expect("the block is live");
    assert_eq!(world.recycler.resize(extent, MIB), Realloc::MoveToBackend);
    assert_eq!(world.free_at(block.start), Some(FreeOutcome::Done));
    assert_eq!(world.free_at(block.start), None);
    assert_eq!(world.vm().mapped_units(), 0);
    // Other code may map the addresses and pass them to free.
    for unit in (block.start..block.start + 8 * MIB).step_by(UNIT_BYTES) {
        assert!(!world.recycler.holds(unit), "{unit:#x} is no more a block");
    }
    assert_eq!(world.recycler.purge_all(), Bytes::new(0));
    // SAFETY: no other thread uses this recycler: the thread that took its lock has ended.
    let is_usable = unsafe { world.recycler.mark_inherited() };
    assert!(!is_usable, "the recycler stays given up");
}

#[test]
fn a_forked_child_starts_with_an_empty_cache() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.free(block);
    world.run(Step::Fork);
    assert_eq!(world.recycler.stats().cached_bytes, 0);
    assert_eq!(world.vm().resident(), 0);
}

#[test]
fn pinned_block_freed_in_the_parent_is_free_in_a_forked_child() {
    let mut world = World::with_slack();
    let block = world.take(0).expect("it was just allocated");
    {
        let mut state = world.recycler.lock();
        assert!(state.pin_slack(|_| true, None).is_some());
    }
    assert_eq!(world.free_at(block.start), Some(FreeOutcome::Done));
    assert_eq!(world.recycler.stats().live_blocks, 1);
    world.run(Step::Fork);
    assert_eq!(world.recycler.stats().live_blocks, 0);
    world.finish();
    assert_eq!(world.vm().resident(), 0);
}

#[test]
fn altered_pinned_block_is_unmapped_in_a_forked_child() {
    let mut world = World::with_slack();
    let block = world.take(0).expect("it was just allocated");
    {
        let mut state = world.recycler.lock();
        assert!(state.pin_slack(|_| true, None).is_some());
    }
    let pagemap = world.recycler.pagemap;
    let unit = pagemap.unit((block.start / UNIT_BYTES) as u32);
    unit.add_flags(Flags::ALTERED);
    assert_eq!(world.free_at(block.start), Some(FreeOutcome::Done));
    let mut state = world.recycler.lock();
    state.finish_pinned();
    assert_eq!(state.space.cached.units(), 0);
    assert_eq!(unit.kind(), Kind::Purging, "an altered block is not cached");
    drop(state);
    world.run(Step::Fork);
    world.audit_exactly();
    assert_eq!(world.vm().mapped_units(), 0);
}

#[test]
fn forked_child_waits_for_no_permit_of_its_parent() {
    let mut world = World::new();
    // The owners of the permits exist only in the parent.
    fn limits(world: &World) -> [&ConcurrencyLimit; 2] {
        [&world.recycler.probe_limit, &world.recycler.reset_limit]
    }
    for limit in limits(&world) {
        std::mem::forget((limit.acquire(|| ()), limit.acquire(|| ())));
    }
    world.run(Step::Fork);
    for limit in limits(&world) {
        drop(limit.acquire(|| unreachable!("the permits are free")));
    }
}
