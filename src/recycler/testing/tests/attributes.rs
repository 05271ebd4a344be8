//! A block never gets VMA attributes that an earlier block changed.

use crate::core::unit::{id_of, Extent, Flags};
use crate::state::stats::Fallback;
use crate::testing::model::PAGE;
use crate::testing::steps::Part;
use crate::testing::vma_changes::VmaChange;
use crate::testing::world::{World, MIB};
use std::sync::atomic::Ordering::Relaxed;

fn count(world: &World, fallback: Fallback) -> u64 {
    world.recycler.stats().fallbacks[fallback as usize]
}

/// Adjacent blocks of these sizes, in the order of their addresses.
fn blocks(sizes: &[usize]) -> World {
    let mut world = World::new();
    for bytes in sizes {
        assert!(world.alloc(*bytes, false));
    }
    assert!(world.blocks.is_sorted_by_key(|block| block.start));
    world
}

/// Three blocks on the pages of a freed one. The middle block, of 11 MiB, may consist of several
/// VMAs: its third, fourth and fifth units have boundary flags.
fn with_vma_boundaries() -> (World, Extent) {
    let mut world = blocks(&[29 * MIB]);
    let whole = world.take(0).expect("it was just allocated");
    world.free(whole);
    for bytes in [11 * MIB, 11 * MIB, 5 * MIB] {
        assert!(world.alloc(bytes, false));
    }
    assert!(world.blocks.is_sorted_by_key(|block| block.start));
    let head = id_of(world.blocks[1].start);
    for inner in [2, 3, 4] {
        world
            .recycler
            .pagemap
            .unit(head + inner)
            .add_flags(Flags::VMA_BOUNDARY);
    }
    (world, Extent::new(head, 6))
}

#[test]
fn guards_are_removed_from_a_freed_block_that_lived_a_second() {
    for (ms, is_searched) in [(0, false), (16, false), (999, false), (1_000, true)] {
        let mut world = blocks(&[8 * MIB]);
        let block = world.take(0).expect("it was just allocated");
        let start = block.start;
        world.vm().change_vma(start, PAGE, VmaChange::Guard);
        world.vm().now.set(ms);
        world.free(block);
        let guards = world.vm().vma_changes_on(start, PAGE);
        assert_eq!(guards.is_empty(), is_searched, "{ms} ms");
    }
}

#[test]
fn realloc_removes_guards_from_cut_units_and_from_the_tail_it_grows_into() {
    let mut world = blocks(&[8 * MIB]);
    let block = world.take(0).expect("it was just allocated");
    let start = block.start;
    world
        .vm()
        .change_vma(start + 6 * MIB, PAGE, VmaChange::Guard);
    world.realloc(block, 4 * MIB);
    assert_eq!(world.vm().vma_changes_on(start + 4 * MIB, 4 * MIB), []);
    let block = world.take(0).expect("it was just resized");
    world.change_vma(&block, Part::Whole, VmaChange::Resettable);
    world.realloc(block, 3 * MIB);
    world
        .vm()
        .change_vma(start + 3 * MIB, PAGE, VmaChange::Guard);
    let resets = count(&world, Fallback::AttributesReset);
    let block = world.take(0).expect("it was just resized");
    world.realloc(block, 4 * MIB);
    assert_eq!(count(&world, Fallback::AttributesReset), resets + 1);
}

#[test]
fn change_behind_the_end_of_a_shrunk_block_does_not_reach_another_block() {
    let mut world = blocks(&[4 * MIB]);
    let block = world.take(0).expect("it was just allocated");
    world.change_vma(&block, Part::Whole, VmaChange::Resettable);
    world.realloc(block, 3 * MIB);
    let block = world.take(0).expect("it was just resized");
    world.free(block);
    assert!(world.alloc(4 * MIB, false));
}

#[test]
fn change_of_a_whole_full_block_is_detected_by_a_page_behind_it() {
    for (behind, is_free) in [(8 * MIB, true), (3 * MIB, false)] {
        let mut world = blocks(&[8 * MIB, behind]);
        if is_free {
            let free = world.blocks.remove(1);
            world.free(free);
        }
        let block = world.blocks.remove(0);
        world.change_vma(&block, Part::Whole, VmaChange::Resettable);
        world.free(block);
        assert!(world.alloc(8 * MIB, false));
    }
}

#[test]
fn reference_page_above_the_block_is_not_probed() {
    let world = blocks(&[4 * MIB]);
    let block = &world.blocks[0];
    let head = id_of(block.start);
    world
        .recycler
        .reference_page
        .store(block.start + 64 * MIB, Relaxed);
    let extent = Extent::new(head, 2);
    assert_eq!(world.recycler.units_without_proof(extent), extent);
}

#[test]
fn spare_page_of_an_altered_block_is_not_used() {
    let world = blocks(&[3 * MIB]);
    let head = id_of(world.blocks[0].start);
    let extent = Extent::new(head, 2);
    assert!(world.recycler.range_with_spare_page(extent).is_some());
    world.recycler.pagemap.unit(head).add_flags(Flags::ALTERED);
    assert_eq!(world.recycler.range_with_spare_page(extent), None);
}

#[test]
fn pages_beside_a_block_of_several_vmas_prove_only_its_first_and_last_vma() {
    let units_without_proof = |changed: Option<usize>| {
        let (world, extent) = with_vma_boundaries();
        if let Some(at) = changed {
            world
                .vm()
                .change_vma(extent.start() + at, PAGE, VmaChange::Resettable);
        }
        let units_without_proof = world.recycler.units_without_proof(extent);
        (
            units_without_proof.head - extent.head,
            units_without_proof.len,
        )
    };
    assert_eq!(units_without_proof(None), (2, 2));
    assert_eq!(units_without_proof(Some(0)), (0, 4));
    assert_eq!(units_without_proof(Some(10 * MIB)), (2, 4));
}

#[test]
fn file_or_permanent_change_in_a_block_of_several_vmas_does_not_reach_another_block() {
    for (at, bytes, change) in [
        (4 * MIB, 4 * MIB, VmaChange::File),
        (10 * MIB, PAGE, VmaChange::Permanent),
    ] {
        let (mut world, extent) = with_vma_boundaries();
        world.vm().change_vma(extent.start() + at, bytes, change);
        let block = world.blocks.remove(1);
        world.free(block);
        assert!(world.alloc(11 * MIB, false), "{change:?}");
    }
}

#[test]
fn changed_block_is_cached_with_and_without_a_vma_boundary() {
    for (bytes, boundary) in [
        (MIB, false),
        (3 * MIB, false),
        (3 * MIB, true),
        (5 * MIB, false),
    ] {
        let mut world = blocks(&[bytes]);
        let block = world.take(0).expect("it was just allocated");
        if boundary {
            let second = id_of(block.start) + 1;
            world
                .recycler
                .pagemap
                .unit(second)
                .add_flags(Flags::VMA_BOUNDARY);
        }
        world.change_vma(&block, Part::FirstPage, VmaChange::Resettable);
        world.free(block);
        assert_eq!(count(&world, Fallback::AttributesAltered), 0);
    }
}

#[test]
fn change_of_inner_units_of_a_gathered_block_is_reset_and_the_block_is_cached() {
    for bytes in [11 * MIB, 12 * MIB] {
        let mut world = blocks(&[4 * MIB; 6]);
        for index in [4, 2, 0] {
            let block = world.blocks.remove(index);
            world.free(block);
        }
        world.recycler.lock().space.tolerance.near_limit = true;
        assert!(world.alloc(bytes, false));
        let moved = world.recycler.stats().moved_bytes_total;
        assert!(moved > 0);
        let churn = world.recycler.lock().space.tolerance.churn;
        let (fresh, purged) = (churn.fresh_pages(), churn.purged_pages());
        assert_eq!(
            purged.count() * PAGE as u64,
            moved,
            "a moved page counts as purged"
        );
        let both = moved + world.recycler.stats().fresh_bytes_total;
        assert_eq!(
            fresh.count() * PAGE as u64,
            both,
            "a moved page also counts as fresh"
        );
        let block = world.blocks.pop().expect("it was just allocated");
        world.change_vma(&block, Part::UnitsBetween, VmaChange::Resettable);
        world.vm().advised_huge.set(false);
        world.free(block);
        assert_eq!(count(&world, Fallback::AttributesAltered), 0);
        assert!(!world.vm().advised_huge.get(), "whole VMAs need no advice");
        assert!(world.alloc(bytes, false));
    }
}

#[test]
fn one_of_64_freed_blocks_of_several_vmas_per_unit_is_unmapped() {
    for (before, boundary, unmapped) in [
        (6 * 64 - 2, Flags::VMA_BOUNDARY, 0),
        (6 * 64 - 1, Flags::VMA_BOUNDARY, 1),
        (6 * 64, Flags::VMA_BOUNDARY, 0),
        (6 * 64 - 1, Flags::MAYBE_BOUNDARY, 0),
        (6 * 64 - 1, Flags::NONE, 0),
    ] {
        let (mut world, extent) = with_vma_boundaries();
        for unit in extent.units().skip(1) {
            let unit = world.recycler.pagemap.unit(unit);
            unit.remove_flags(Flags::ANY_BOUNDARY);
            unit.add_flags(boundary);
        }
        world.recycler.multi_vma_frees.store(before, Relaxed);
        let block = world.take(1).expect("it was just allocated");
        world
            .vm()
            .change_vma(block.start, 3 * 2 * MIB, VmaChange::Resettable);
        let cached = world.recycler.stats().cached_bytes;
        world.free(block);
        assert_eq!(
            count(&world, Fallback::MultiVmaUnmapped),
            unmapped,
            "{before}"
        );
        assert_eq!(count(&world, Fallback::AttributesAltered), 0);
        assert_eq!(count(&world, Fallback::AttributesReset), 1 - unmapped);
        let kept = world.recycler.stats().cached_bytes > cached;
        assert_eq!(kept, unmapped == 0, "{before}");
    }
}
