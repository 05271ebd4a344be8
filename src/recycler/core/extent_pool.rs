//! Lists of extents, and the pool of the free extents of one kind: a list for each range of lengths
//! (a bin) and one list by age.
//!
//! `fit` finds a good fit in constant time. For cached extents `warm_fit` comes first: it prefers
//! pages that the same CPU freed, because a write to cache lines of another CPU waits for that
//! CPU. Without it, two threads exchange half of their pages and run 1.3 times as long.
//!
//! Invariant: each extent in the pool is in one bin and in the list by age. Only `state::space`
//! changes a pool, under the lock.

use crate::core::pagemap::{Links, Pagemap, Unit};
use crate::core::unit::{Cpu, Extent, Flags, UnitId};
use std::marker::PhantomData;

/// The type of a list selects the links that it uses. A free extent is in one list by bin and in
/// one by age at the same time. A live block is in `WithSlack` or in `BeingPurged`, or in neither.
pub trait ListKind {
    fn links(unit: &Unit) -> &Links;
}

macro_rules! list_kinds {
    ($($(#[$doc:meta])* $kind:ident: $links:ident;)*) => {$(
        $(#[$doc])*
        pub struct $kind;

        impl ListKind for $kind {
            fn links(unit: &Unit) -> &Links {
                &unit.$links
            }
        }
    )*};
}

list_kinds! {
    /// Free extents of one bin.
    ByBin: bin_links;
    /// Free extents of one kind, the oldest first.
    ByAge: age_links;
    /// Live blocks with slack, the longest unused slack first.
    WithSlack: bin_links;
    /// Live blocks whose slack a thread is returning to the system.
    BeingPurged: bin_links;
    /// In a forked child: extents that a thread of the parent was unmapping.
    InFlightInParent: age_links;
}

/// A doubly linked list of extents. The links are stored in the first unit of each extent.
pub struct List<K> {
    /// 0: none.
    first: UnitId,
    last: UnitId,
    kind: PhantomData<K>,
}

fn some(id: UnitId) -> Option<UnitId> {
    (id != 0).then_some(id)
}

impl<K: ListKind> List<K> {
    pub const fn new() -> Self {
        List {
            first: 0,
            last: 0,
            kind: PhantomData,
        }
    }

    pub fn first(&self) -> Option<UnitId> {
        some(self.first)
    }

    /// The extent after `head` in the list.
    pub fn after(pagemap: &Pagemap, head: UnitId) -> Option<UnitId> {
        some(K::links(pagemap.unit(head)).next())
    }

    /// Adds the extent whose first unit is `unit`, with the number `head`.
    pub fn push_first(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit) {
        self.insert(pagemap, head, unit, 0, self.first);
    }

    pub fn push_last(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit) {
        self.insert(pagemap, head, unit, self.last, 0);
    }

    /// Adds it after `previous`, or as the first if that is `None`.
    pub fn insert_after(
        &mut self,
        pagemap: &Pagemap,
        head: UnitId,
        unit: &Unit,
        previous: Option<UnitId>,
    ) {
        let next = match previous {
            Some(previous) => K::links(pagemap.unit(previous)).next(),
            None => self.first,
        };
        self.insert(pagemap, head, unit, previous.unwrap_or(0), next);
    }

    #[inline]
    fn insert(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit, prev: UnitId, next: UnitId) {
        let links = K::links(unit);
        links.set_prev(prev);
        links.set_next(next);
        if prev == 0 {
            self.first = head;
        } else {
            K::links(pagemap.unit(prev)).set_next(head);
        }
        if next == 0 {
            self.last = head;
        } else {
            K::links(pagemap.unit(next)).set_prev(head);
        }
    }

    /// Returns the extent that was before it.
    #[inline]
    pub fn remove(&mut self, pagemap: &Pagemap, head: &Unit) -> Option<UnitId> {
        let links = K::links(head);
        let (prev, next) = (links.prev(), links.next());
        if prev == 0 {
            self.first = next;
        } else {
            K::links(pagemap.unit(prev)).set_next(next);
        }
        if next == 0 {
            self.last = prev;
        } else {
            K::links(pagemap.unit(next)).set_prev(prev);
        }
        some(prev)
    }
}

/// Each length up to this has its own bin. Longer ones have eight bins per power of two.
const EXACT: u32 = 64;
const BINS: usize = 256;
/// The most extents of a bin that `fit` examines. The bin may hold several lengths, and some are
/// too short. In each larger bin all extents fit.
const MAX_EXAMINED_EXTENTS: usize = 8;
/// For blocks up to this length, extents in one VMA come first: a block of several VMAs costs more
/// at free.
const MAX_SINGLE_VMA_UNITS: u32 = 4;
/// Longer blocks do not fit into a CPU's cache, so `warm_fit` does not search for them.
const MAX_WARM_UNITS: u32 = 16;
/// The most units that `warm_fit` examines, because its caller holds the lock.
const MAX_EXAMINED_UNITS: u32 = 64;

fn bin_of(len: u32) -> usize {
    if len <= EXACT {
        return len as usize;
    }
    let top = len.ilog2();
    let eighth = (len >> (top - 3)) & 7;
    (EXACT + 1 + (top - 6) * 8 + eighth) as usize
}

/// True if no unit of the extent is marked as the start of another VMA.
fn is_one_vma(pagemap: &Pagemap, extent: Extent) -> bool {
    (extent.head + 1..extent.end()).all(|id| !pagemap.unit(id).has(Flags::VMA_BOUNDARY))
}

/// The first `units` adjacent units that this CPU freed; for short blocks, within one VMA.
fn warm_run(pagemap: &Pagemap, within: Extent, units: u32, cpu: Cpu) -> Option<Extent> {
    let mut run = 0;
    for id in within.units() {
        let unit = pagemap.unit(id);
        let begins_vma = units <= MAX_SINGLE_VMA_UNITS && unit.has(Flags::VMA_BOUNDARY);
        run = match unit.cpu() == cpu {
            true if begins_vma => 1,
            true => run + 1,
            false => 0,
        };
        if run == units {
            return Some(Extent::new(id + 1 - units, units));
        }
    }
    None
}

pub struct Pool {
    bins: [List<ByBin>; BINS],
    /// One bit for each bin that is not empty.
    filled: [u64; BINS / 64],
    ages: List<ByAge>,
    units: u64,
}

impl Pool {
    pub const fn new() -> Self {
        Pool {
            bins: [const { List::new() }; BINS],
            filled: [0; BINS / 64],
            ages: List::new(),
            units: 0,
        }
    }

    /// The sum of the extents' lengths.
    pub fn units(&self) -> u64 {
        self.units
    }

    pub fn oldest(&self) -> Option<UnitId> {
        self.ages.first()
    }

    /// Adds an extent as the youngest.
    pub fn insert(&mut self, pagemap: &Pagemap, extent: Extent) {
        let unit = pagemap.unit(extent.head);
        self.ages.push_last(pagemap, extent.head, unit);
        self.insert_in_bin(pagemap, extent, unit);
    }

    /// Adds an extent after `previous` in the list by age, or as the oldest if that is `None`.
    pub fn insert_after(&mut self, pagemap: &Pagemap, extent: Extent, previous: Option<UnitId>) {
        let unit = pagemap.unit(extent.head);
        self.ages.insert_after(pagemap, extent.head, unit, previous);
        self.insert_in_bin(pagemap, extent, unit);
    }

    fn insert_in_bin(&mut self, pagemap: &Pagemap, extent: Extent, unit: &Unit) {
        let bin = bin_of(extent.len);
        if let Some(list) = self.bins.get_mut(bin) {
            list.push_first(pagemap, extent.head, unit);
        }
        if let Some((word, bit)) = self.filled_bit(bin) {
            *word |= bit;
        }
        self.units += u64::from(extent.len);
    }

    /// Returns the previous extent in the list by age. `None`: the removed extent was the oldest.
    pub fn remove(&mut self, pagemap: &Pagemap, extent: Extent) -> Option<UnitId> {
        let (bin, unit) = (bin_of(extent.len), pagemap.unit(extent.head));
        if let Some(list) = self.bins.get_mut(bin) {
            list.remove(pagemap, unit);
            if list.first().is_none()
                && let Some((word, bit)) = self.filled_bit(bin)
            {
                *word &= !bit;
            }
        }
        self.units -= u64::from(extent.len);
        self.ages.remove(pagemap, unit)
    }

    /// An extent from which `units` can be taken: one of that length, else the next longer.
    pub fn fit(&self, pagemap: &Pagemap, units: u32) -> Option<Extent> {
        let bin = bin_of(units);
        let mut next = self.first_of(bin);
        let mut of_several_vmas = None;
        for _ in 0..MAX_EXAMINED_EXTENTS {
            let Some(head) = next else {
                break;
            };
            let extent = Extent::new(head, pagemap.unit(head).len());
            if extent.len >= units {
                if units > MAX_SINGLE_VMA_UNITS || is_one_vma(pagemap, extent.prefix(units)) {
                    return Some(extent);
                }
                of_several_vmas = of_several_vmas.or(Some(extent));
            }
            next = List::<ByBin>::after(pagemap, head);
        }
        if of_several_vmas.is_some() {
            return of_several_vmas;
        }
        let head = self.first_of(self.filled_from(bin + 1)?)?;
        Some(Extent::new(head, pagemap.unit(head).len()))
    }

    /// Adjacent units that this CPU freed, as (the free extent, the units in it).
    pub fn warm_fit(&self, pagemap: &Pagemap, units: u32, cpu: Cpu) -> Option<(Extent, Extent)> {
        if units > MAX_WARM_UNITS {
            return None;
        }
        let (mut bin, mut examined_units) = (bin_of(units), 0);
        loop {
            let mut next = self.first_of(bin);
            while let Some(head) = next {
                let whole = Extent::new(head, pagemap.unit(head).len());
                let examined = whole.prefix(whole.len.min(MAX_EXAMINED_UNITS - examined_units));
                if let Some(warm) = warm_run(pagemap, examined, units, cpu) {
                    return Some((whole, warm));
                }
                examined_units += examined.len;
                if examined_units == MAX_EXAMINED_UNITS {
                    return None;
                }
                next = List::<ByBin>::after(pagemap, head);
            }
            bin = self.filled_from(bin + 1)?;
        }
    }

    /// An extent of the last bin that is not empty. A bin may hold several lengths.
    pub fn largest(&self, pagemap: &Pagemap) -> Option<Extent> {
        let (word, bits) = self
            .filled
            .iter()
            .enumerate()
            .rev()
            .find(|(_, bits)| **bits != 0)?;
        let head = self.first_of(word * 64 + bits.ilog2() as usize)?;
        Some(Extent::new(head, pagemap.unit(head).len()))
    }

    fn first_of(&self, bin: usize) -> Option<UnitId> {
        self.bins.get(bin)?.first()
    }

    /// The first bin from `bin` on that is not empty.
    fn filled_from(&self, bin: usize) -> Option<usize> {
        let mut word = bin / 64;
        let mut bits = self.filled.get(word)? & (!0 << (bin % 64));
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn filled_bit(&mut self, bin: usize) -> Option<(&mut u64, u64)> {
        let word = self.filled.get_mut(bin / 64)?;
        Some((word, 1 << (bin % 64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::unit::{id_of, UNIT_BYTES};
    use crate::testing::world::{World, MIB};

    #[test]
    fn bins_grow_with_length_and_stay_in_the_array() {
        let mut last = 0;
        for shift in 0..28 {
            for len in [1u32 << shift, (1 << shift) + (1 << shift) / 2] {
                let bin = bin_of(len);
                assert!(bin >= last && bin < BINS, "length {len} has bin {bin}");
                last = bin;
            }
        }
    }

    #[test]
    fn a_power_of_two_of_long_lengths_has_eight_ordered_bins() {
        for top in 6..12 {
            let eighth = 1u32 << (top - 3);
            let first = bin_of((1 << top) + 1);
            let bins = (1..8).map(|part| bin_of((1 << top) + part * eighth));
            assert!(bins.eq(first + 1..first + 8), "from {}", 1 << top);
        }
    }

    #[test]
    fn neighbouring_lengths_share_a_bin_only_when_long() {
        assert_ne!(bin_of(63), bin_of(64));
        assert_ne!(bin_of(64), bin_of(65));
        assert_eq!(bin_of(65), bin_of(66));
    }

    /// Frees one block of 4 MiB on each of these CPUs, each between two live blocks. Returns their
    /// addresses.
    fn freed_by(world: &mut World, cpus: &[u32]) -> Vec<usize> {
        for _ in 0..2 * cpus.len() {
            assert!(world.alloc(4 * MIB, false));
        }
        world.blocks.sort_by_key(|block| block.start);
        let mut starts = Vec::new();
        for (index, cpu) in cpus.iter().enumerate() {
            world.vm().cpu.set(*cpu);
            let block = world.blocks.remove(index);
            starts.push(block.start);
            world.free(block);
        }
        starts
    }

    fn alloc_on(world: &mut World, cpu: u32, bytes: usize) -> usize {
        world.vm().cpu.set(cpu);
        assert!(world.alloc(bytes, false));
        world.blocks.last().expect("it was just allocated").start
    }

    #[test]
    fn a_block_reuses_the_pages_that_its_cpu_freed() {
        for cpu in [1, 2, 3] {
            let mut world = World::new();
            let starts = freed_by(&mut world, &[1, 2, 3]);
            let start = alloc_on(&mut world, cpu, 4 * MIB);
            assert_eq!(start, starts[cpu as usize - 1]);
        }
    }

    #[test]
    fn a_block_is_taken_from_the_part_of_a_longer_extent_that_its_cpu_freed() {
        let mut world = World::new();
        let first = freed_by(&mut world, &[1])[0];
        let neighbour = world.take(0).expect("two blocks were allocated");
        assert_eq!(neighbour.start, first + 4 * MIB);
        world.vm().cpu.set(2);
        world.free(neighbour);
        assert_eq!(alloc_on(&mut world, 2, 2 * MIB), first + 4 * MIB);
        assert_eq!(alloc_on(&mut world, 1, 2 * MIB), first);
    }

    #[test]
    fn pages_that_another_cpu_freed_are_reused_if_there_are_no_others() {
        let mut world = World::new();
        let starts = freed_by(&mut world, &[1]);
        assert_eq!(alloc_on(&mut world, 2, 4 * MIB), starts[0]);
    }

    #[test]
    fn an_extent_in_one_vma_comes_before_a_warm_extent_in_two() {
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
    fn at_most_64_units_are_examined_for_warm_ones() {
        for (before, is_found) in [
            (MAX_EXAMINED_UNITS - 2, true),
            (MAX_EXAMINED_UNITS - 1, false),
        ] {
            let mut world = World::new();
            let long = (before as usize + 2) * UNIT_BYTES;
            assert!(world.alloc(long, false));
            let block = world.take(0).expect("it was just allocated");
            let head = id_of(block.start);
            world.vm().cpu.set(1);
            world.free(block);
            for id in head..head + before {
                world.recycler.pagemap.unit(id).set_cpu(Cpu::new(2));
            }
            let taken = id_of(alloc_on(&mut world, 1, 4 * MIB)) - head;
            assert_eq!(taken, if is_found { before } else { 0 }, "{before}");
        }
    }
}
