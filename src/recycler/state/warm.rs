//! Pages that the processor's own caches may still hold.
//!
//! Whoever writes to a page whose lines another processor wrote waits for that one's caches. Two threads that share one
//! pool hand half of their pages to each other, without knowing: at the same work that took 1.3 times as long. So each
//! unit knows which processor freed it last, and a block is rather of units that its own one did.

use crate::core::extent::Extent;
use crate::core::extent_list::{ByBin, List};
use crate::core::extent_pool::{bin_of, Pool, WHOLE};
use crate::core::pagemap::Pagemap;
use crate::core::unit::{Cpu, Flags, FreeKind, UnitId};
use crate::state::space::Space;

/// Longer blocks leave little in any cache.
const MAX_UNITS: u32 = 16;
/// Units that are looked at, under the lock.
const MAX_PROBES: u32 = 64;

impl Space {
    /// Carves `units` from the best fitting extent of a kind; of cached ones rather those that this processor freed.
    pub fn take_fit(&mut self, units: u32, free: FreeKind) -> Option<Extent> {
        let cpu = self.cpu;
        let (pool, pagemap) = self.pool(free);
        if free == FreeKind::Cached {
            if let Some((whole, warm)) = pool.warm_fit(pagemap, units, cpu) {
                return Some(self.take_part(whole, warm, free));
            }
        }
        let (head, len) = pool.best_fit(pagemap, units)?;
        Some(self.take_part(Extent::new(head, len), Extent::new(head, units), free))
    }
}

impl Pool {
    /// Neighbouring units that this processor freed, and the extent that they are a part of.
    pub fn warm_fit(&self, pagemap: &Pagemap, units: u32, cpu: Cpu) -> Option<(Extent, Extent)> {
        if units > MAX_UNITS {
            return None;
        }
        let (mut bin, mut probe_limit) = (bin_of(units), 0);
        loop {
            let mut next = self.head(bin);
            while let Some(head) = next {
                let len = pagemap.unit(head).len();
                let part = len.min(MAX_PROBES - probe_limit);
                if let Some(from) = warm_run(pagemap, head..head + part, units, cpu) {
                    let warm = Extent::new(from, units);
                    return Some((Extent::new(head, len), warm));
                }
                probe_limit += part;
                if probe_limit == MAX_PROBES {
                    return None;
                }
                next = List::<ByBin>::after(pagemap, head);
            }
            bin = self.filled_from(bin + 1)?;
        }
    }
}

/// The first of so many units in a row that this processor freed; of one mapping, where that matters (`pool`).
fn warm_run(
    pagemap: &Pagemap,
    range: std::ops::Range<UnitId>,
    units: u32,
    cpu: Cpu,
) -> Option<UnitId> {
    let mut run = 0;
    for id in range {
        let unit = pagemap.unit(id);
        let begins = units <= WHOLE && unit.has(Flags::VMA_BOUNDARY);
        run = match unit.cpu() == cpu {
            true if begins => 1,
            true => run + 1,
            false => 0,
        };
        if run == units {
            return Some(id + 1 - units);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::unit::{id_of, UNIT_BYTES};
    use crate::testing::world::{World, MIB};

    /// Blocks of 4 MiB, each between two that stay, freed by these processors in turn; where they were.
    fn freed_by(world: &mut World, cpus: &[u32]) -> Vec<usize> {
        for _ in 0..2 * cpus.len() {
            assert!(world.alloc(4 * MIB, false));
        }
        world.blocks.sort_by_key(|block| block.start);
        let mut starts = Vec::new();
        for (index, cpu) in cpus.iter().enumerate() {
            world.map().cpu.set(*cpu);
            let block = world.blocks.remove(index);
            starts.push(block.start);
            world.free(block);
        }
        starts
    }

    fn alloc_on(world: &mut World, cpu: u32, bytes: usize) -> usize {
        world.map().cpu.set(cpu);
        assert!(world.alloc(bytes, false));
        world.blocks.last().expect("it was just made").start
    }

    #[test]
    fn a_block_is_of_pages_that_its_processor_freed() {
        for cpu in [1, 2, 3] {
            let mut world = World::new();
            let starts = freed_by(&mut world, &[1, 2, 3]);
            let start = alloc_on(&mut world, cpu, 4 * MIB);
            assert_eq!(start, starts[cpu as usize - 1]);
        }
    }

    #[test]
    fn a_longer_extent_is_cut_where_its_processor_freed_it() {
        let mut world = World::new();
        let first = freed_by(&mut world, &[1])[0];
        let whole = world.take(0).expect("it is the neighbour");
        assert_eq!(whole.start, first + 4 * MIB);
        world.map().cpu.set(2);
        world.free(whole);
        assert_eq!(alloc_on(&mut world, 2, 2 * MIB), first + 4 * MIB);
        assert_eq!(alloc_on(&mut world, 1, 2 * MIB), first);
    }

    #[test]
    fn pages_of_another_processor_are_better_than_none() {
        let mut world = World::new();
        let starts = freed_by(&mut world, &[1]);
        assert_eq!(alloc_on(&mut world, 2, 4 * MIB), starts[0]);
    }

    #[test]
    fn a_block_of_one_mapping_comes_before_a_warm_one_of_two() {
        let mut world = World::new();
        let starts = freed_by(&mut world, &[2, 1]);
        let second = id_of(starts[1] + UNIT_BYTES);
        world
            .recycler
            .pagemap
            .unit(second)
            .add_flags(Flags::VMA_BOUNDARY);
        assert_eq!(alloc_on(&mut world, 1, 4 * MIB), starts[0]);
    }

    #[test]
    fn no_more_units_are_looked_at_than_a_lock_may_be_held_for() {
        for (before, start) in [(MAX_PROBES - 2, 1), (MAX_PROBES - 1, 0)] {
            let mut world = World::new();
            let long = (before as usize + 2) * UNIT_BYTES;
            assert!(world.alloc(long, false));
            let block = world.take(0).expect("it was just made");
            let head = id_of(block.start);
            world.map().cpu.set(1);
            world.free(block);
            for id in head..head + before {
                world.recycler.pagemap.unit(id).set_cpu(Cpu::new(2));
            }
            let at = id_of(alloc_on(&mut world, 1, 4 * MIB)) - head;
            assert_eq!(at, start * before, "{before}");
        }
    }
}
