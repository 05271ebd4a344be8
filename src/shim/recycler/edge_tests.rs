//! What a mutation of the sources showed that no other test holds.

use super::amount::Pages;
use super::fake::PAGE;
use super::marks::Mark;
use super::steps::Part;
use super::unit::{id_of, Flags, UNIT_BYTES};
use super::world::{World, DECAY_MS, MIB};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn pages_that_a_cached_extent_lacks_count_as_churn() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    let block = world.take(0).expect("it was just made");
    world.free(block);
    assert!(world.alloc(4 * MIB, false));
    let fresh = world.recycler.lock().space.tolerance.thrash.fresh_pages();
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
fn advice_that_cannot_be_taken_off_is_spread_over_large_blocks_only() {
    for (bytes, advised) in [(4 * MIB, false), (6 * MIB, true)] {
        let mut world = World::new();
        assert!(world.alloc(bytes, true));
        let block = world.take(0).expect("it was just made");
        world.mark(&block, Part::FirstPage, Mark::Lasting);
        world.free(block);
        assert_eq!(world.map().advised_huge.get(), advised, "{bytes} bytes");
    }
}

#[test]
fn lasting_marks_on_half_of_a_block_reach_nobody() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, true));
    let block = world.take(0).expect("it was just made");
    let half = block.start + 4 * MIB;
    world.map().mark(half, 4 * MIB, Mark::Lasting);
    world.free(block);
    assert!(world.alloc(8 * MIB, true));
}

#[test]
fn a_marked_block_that_shrank_grows_again_where_it_is() {
    let mut world = World::new();
    assert!(world.alloc(6 * MIB, false));
    let block = world.take(0).expect("it was just made");
    let start = block.start;
    world.mark(&block, Part::Whole, Mark::Plain);
    world.resize(block, 5 * MIB);
    let shorter = world.take(0).expect("it was just put back");
    world.resize(shorter, 6 * MIB);
    assert_eq!(world.blocks[0].start, start);
}

#[test]
fn what_the_program_holds_calls_for_a_governor() {
    let mut world = World::new();
    for blocks in 1..=8 {
        assert!(world.alloc(4 * MIB, false));
        assert_eq!(world.recycler.heavy.load(Relaxed), blocks == 8, "{blocks}");
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
        world.recycler.decay_if_due(DECAY_MS);
        assert_eq!(world.recycler.stats().cached_bytes, 0, "{days} days up");
    }
}
