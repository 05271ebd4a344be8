//! The memory that hibernation moves: what the state machine needs from the recycler and the
//! kernel.

use std::cmp::Reverse;

use flarena_recycler as recycler;
use flarena_sys::{proc::mappings, proc::paging, proc::swap};

/// The kernel pages out so much in some hundredths of a second at most. Blocks begin at multiples
/// of 2 MiB, and so do their chunks.
const CHUNK_BYTES: usize = 8 << 20;

/// The part of memory that a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The live large block that begins at this address.
    Block(usize),
    /// Other private anonymous memory: small blocks, stacks, other allocators.
    Heap,
}

/// Memory that one call pages out or in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub region: Region,
    pub start: usize,
    pub bytes: usize,
}

impl Chunk {
    /// Pages of the heap come back before those of blocks, as all work needs them. Within both the
    /// order is that of addresses: memory that the program reads in sequence comes in sequence.
    pub fn order_of_return(&self) -> (bool, usize) {
        (self.region != Region::Heap, self.start)
    }
}

/// Implemented by the kernel's memory, and by a model in the tests.
pub trait Memory {
    fn live_bytes(&mut self) -> u64;
    /// The chunks of live blocks. The last one, of the oldest block, is paged out first.
    fn block_chunks(&mut self) -> Vec<Chunk>;
    /// The chunks of all other private anonymous memory.
    fn heap_chunks(&mut self) -> Vec<Chunk>;
    fn present_bytes(&mut self, chunks: &[Chunk]) -> u64;
    /// True while the chunk's block is live. The heap always is: paging never changes contents.
    fn is_live(&mut self, chunk: Chunk) -> bool;
    /// Bytes that may still go to swap.
    fn swap_room_bytes(&mut self) -> u64;
    /// Starts to read the chunk from swap, and does not wait.
    fn prefetch(&mut self, chunk: Chunk);
    /// Returns the bytes that went to swap.
    fn page_out(&mut self, chunk: Chunk) -> u64;
    /// Returns the bytes that were in swap.
    fn page_in(&mut self, chunk: Chunk) -> u64;
}

/// The memory of this process.
pub struct ProcessMemory;

impl Memory for ProcessMemory {
    fn live_bytes(&mut self) -> u64 {
        recycler::live_bytes()
    }

    fn block_chunks(&mut self) -> Vec<Chunk> {
        let mut blocks = recycler::live_blocks();
        // Blocks of the same second keep the order of addresses, in which swap is then read.
        blocks.sort_by_key(|block| Reverse(block.age_ms / 1000));
        let mut chunks: Vec<_> = blocks
            .iter()
            .flat_map(|block| cut(Region::Block(block.start), block.start, block.bytes))
            .collect();
        chunks.reverse();
        chunks
    }

    fn heap_chunks(&mut self) -> Vec<Chunk> {
        mappings::anonymous()
            .into_iter()
            .flat_map(|range| cut(Region::Heap, range.start, range.len()))
            .collect()
    }

    fn present_bytes(&mut self, chunks: &[Chunk]) -> u64 {
        let pages = |chunk: &Chunk| paging::pages(chunk.start, chunk.bytes);
        let pages = chunks.iter().filter_map(pages);
        pages.map(|pages| pages.present_bytes).sum()
    }

    fn is_live(&mut self, chunk: Chunk) -> bool {
        let Region::Block(block) = chunk.region else {
            return true;
        };
        let end = chunk.start + chunk.bytes;
        recycler::usable_size(block as *const u8).is_some_and(|bytes| block + bytes >= end)
    }

    fn swap_room_bytes(&mut self) -> u64 {
        swap::room_bytes()
    }

    fn prefetch(&mut self, chunk: Chunk) {
        paging::prefetch(chunk.start, chunk.bytes);
    }

    fn page_out(&mut self, chunk: Chunk) -> u64 {
        paging::page_out(chunk.start, chunk.bytes)
    }

    fn page_in(&mut self, chunk: Chunk) -> u64 {
        paging::page_in(chunk.start, chunk.bytes)
    }
}

pub fn cut(region: Region, start: usize, bytes: usize) -> impl Iterator<Item = Chunk> {
    (0..bytes).step_by(CHUNK_BYTES).map(move |at| Chunk {
        region,
        start: start + at,
        bytes: CHUNK_BYTES.min(bytes - at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flarena_recycler::Contents;

    #[test]
    fn a_block_is_cut_into_chunks_that_are_live_until_it_is_freed() {
        const MIB: usize = 1 << 20;
        let pointer = recycler::alloc_early(20 * MIB, Contents::Any);
        let block = pointer as usize;
        let chunk = |at: usize, bytes: usize| Chunk {
            region: Region::Block(block),
            start: block + at * MIB,
            bytes: bytes * MIB,
        };
        let chunks = [chunk(16, 4), chunk(8, 8), chunk(0, 8)];
        let all = ProcessMemory.block_chunks().into_iter();
        let own: Vec<_> = all
            .filter(|chunk| chunk.region == Region::Block(block))
            .collect();
        assert_eq!(own, chunks);
        assert!(chunks.iter().all(|chunk| ProcessMemory.is_live(*chunk)));
        assert!(
            !ProcessMemory.is_live(chunk(16, 5)),
            "it ends behind the block"
        );
        assert!(ProcessMemory.live_bytes() >= 20 << 20);
        assert!(recycler::free(pointer));
        assert!(!chunks.iter().any(|chunk| ProcessMemory.is_live(*chunk)));
    }
}
