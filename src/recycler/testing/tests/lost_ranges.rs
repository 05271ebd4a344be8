//! Kernels before 6.12 unmap a range before they remap it. If memory is short, the range is lost.

use crate::core::geometry::{Contents, Pages};
use crate::core::unit::{id_of, Extent, Flags, Kind, UNIT_BYTES};
use crate::state::stats::Fallback;
use crate::testing::world::{World, MIB};

/// The next remap loses its range.
const LOST: u64 = 0b11;

fn world() -> World {
    let world = World::new();
    world.vm().old_kernel.set(true);
    world
}

/// Frees the last block and purges its pages. Returns the `Empty` extent.
fn empty(world: &mut World) -> Extent {
    let block = world.blocks.pop().expect("it was just allocated");
    let head = id_of(block.start);
    let units = block.bytes.div_ceil(UNIT_BYTES);
    world.free(block);
    while world.recycler.purge_cached(Pages::new(u64::MAX >> 1)) > Pages::NONE {}
    let len = u32::try_from(units).expect("the count is small");
    let extent = Extent::new(head, len);
    let is_empty =
        |unit: Extent| world.vm().mapped_units() > 0 && kind(world, unit.head) != Kind::None;
    assert!(extent.extents().all(is_empty));
    extent
}

fn kind(world: &World, unit: u32) -> Kind {
    world.recycler.pagemap.unit(unit).kind()
}

fn flag(world: &World, unit: u32, flag: Flags) {
    world.recycler.pagemap.unit(unit).add_flags(flag);
}

fn targets_lost(world: &World) -> u64 {
    world.recycler.stats().fallbacks[Fallback::TargetLost as usize]
}

/// Allocates a block of one unit with two empty units behind it. Returns the empty units.
fn before_two_units(world: &mut World) -> Extent {
    assert!(world.alloc(6 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    let head = id_of(block.start) + 1;
    world.realloc(block, 2 * MIB);
    while world.recycler.purge_cached(Pages::new(u64::MAX >> 1)) > Pages::NONE {}
    let rest = Extent::new(head, 2);
    assert_eq!(kind(world, head), Kind::Empty);
    rest
}

#[test]
fn lost_empty_units_are_forgotten_and_the_request_gets_other_addresses() {
    let mut world = world();
    assert!(world.alloc(6 * MIB, false));
    let old = empty(&mut world);
    flag(&world, old.head, Flags::ALTERED);
    world.vm().refusals.bits.set(LOST);
    assert!(world.alloc(6 * MIB, false));
    assert_ne!(id_of(world.blocks[0].start), old.head);
    assert_eq!(targets_lost(&world), 1);
    world.audit();
}

#[test]
fn allocation_fails_if_its_fresh_part_is_lost_and_its_cached_part_stays_cached() {
    let mut world = world();
    let room = before_two_units(&mut world);
    let block = world.take(0).expect("it was just allocated");
    world.free(block);
    flag(&world, room.head + 1, Flags::VMA_BOUNDARY);
    world.recycler.lock().space.tolerance.near_limit = true;
    world.vm().refusals.bits.set(LOST);
    assert!(world.recycler.alloc_block(6 * MIB, Contents::Any).is_none());
    assert_eq!(kind(&world, room.head - 1), Kind::Cached);
    assert_eq!(kind(&world, room.head), Kind::None);
    assert_eq!(targets_lost(&world), 1);
    world.audit();
}

#[test]
fn block_that_would_grow_into_lost_units_moves_with_its_contents() {
    let mut world = world();
    let room = before_two_units(&mut world);
    flag(&world, room.head + 1, Flags::VMA_BOUNDARY);
    world.vm().refusals.bits.set(LOST);
    let block = world.take(0).expect("it was just allocated");
    world.realloc(block, 6 * MIB);
    assert_ne!(id_of(world.blocks[0].start), room.head - 1);
    assert_eq!(targets_lost(&world), 1);
    world.audit();
}

#[test]
fn realloc_copies_the_block_if_a_part_of_the_new_range_is_lost() {
    let mut world = world();
    for bytes in [2 * MIB, 2 * MIB, 6 * MIB] {
        assert!(world.alloc(bytes, false));
    }
    let range = empty(&mut world);
    flag(&world, range.head + 2, Flags::VMA_BOUNDARY);
    world.vm().refusals.bits.set(LOST);
    let block = world.take(0).expect("it was just allocated");
    world.realloc(block, 6 * MIB);
    let fallbacks = world.recycler.stats().fallbacks;
    assert_eq!(fallbacks[Fallback::ReallocCopied as usize], 1);
    assert_eq!(targets_lost(&world), 1);
    world.audit();
}

#[test]
fn purge_makes_no_call_on_a_lost_range() {
    let mut world = world();
    assert!(world.alloc(6 * MIB, false));
    let block = world.take(0).expect("it was just allocated");
    world.free(block);
    // The kernel refuses to unmap the range, and the remap loses it. The kernel would refuse a
    // further call.
    world.vm().refusals.bits.set(0b1111);
    world.recycler.purge_all();
    assert_eq!(world.vm().refusals.bits.get(), 1, "no further call");
    assert_eq!(world.vm().mapped_units(), 0);
    world.vm().refusals.bits.set(0);
    world.audit();
}

#[test]
fn units_of_a_lost_extent_are_gone() {
    let mut world = world();
    assert!(world.alloc(6 * MIB, false));
    let head = id_of(world.blocks[0].start);
    let extent = Extent::new(head, 3);
    world.recycler.lock().space.split_to_busy_units(extent);
    world.vm().refusals.bits.set(0b111);
    world.recycler.remap_or_give_up(extent);
    assert_eq!(world.vm().refusals.bits.get(), 1, "no call after the loss");
    assert!(extent.units().all(|unit| kind(&world, unit) == Kind::Gone));
}

#[test]
fn a_target_that_loses_one_unit_keeps_its_other_units() {
    // The move of the whole extent is refused, then the move of its second unit loses the target.
    const SECOND_UNIT_LOST: u64 = 0b11001;
    let mut has_lost_one = false;
    // The calls before the move differ, so the pattern begins at each call.
    for calls_before in 0..8 {
        let mut world = World::new();
        for bytes in [6 * MIB, 2 * MIB] {
            assert!(world.alloc(bytes, false));
        }
        let block = world.take(0).expect("it was just allocated");
        world.free(block);
        world
            .vm()
            .refusals
            .bits
            .set(SECOND_UNIT_LOST << calls_before);
        world.alloc(12 * MIB, false);
        world.vm().refusals.bits.set(0);
        has_lost_one |= targets_lost(&world) == 1;
        world.audit();
        let state = world.recycler.lock();
        let live: usize = world
            .blocks
            .iter()
            .map(|block| block.bytes.div_ceil(UNIT_BYTES))
            .sum();
        let free = state.space.cached.units() + state.space.empty.units();
        assert_eq!(world.vm().mapped_units() as u64, live as u64 + free);
    }
    assert!(has_lost_one);
}
