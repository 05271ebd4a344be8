//! What hibernation asks of the recycler and of the kernel.

use flarena_recycler as recycler;
use flarena_sys::proc::mappings::{self, Mapping};
use flarena_sys::{proc::paging, proc::swap};

/// One call to the kernel: some hundredths of a second at most. Blocks begin at multiples of 2 MiB, and so do strides.
const STRIDE_BYTES: usize = 8 << 20;

/// What a stride is a part of. Of all but blocks, whatever lies there by now keeps what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The live block that begins here.
    Block(usize),
    /// Other memory of the program's own.
    Heap,
    /// What it wrote of a file or library that is mapped for it alone.
    Written,
    /// A library's own pages: they leave the process for the kernel's cache, and come with the program's faults.
    Library,
}

impl Of {
    /// In which order they come back.
    pub fn rank(self) -> u8 {
        match self {
            Of::Library | Of::Written => 0,
            Of::Heap => 1,
            Of::Block(_) => 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    pub of: Of,
    pub start: usize,
    pub bytes: usize,
}

pub trait Memory {
    fn live_bytes(&mut self) -> u64;
    /// The live blocks in strides, in the order in which they are popped: those that are oldest last.
    fn strides(&mut self) -> Vec<Stride>;
    /// All else that this process has: small heaps, stacks, what it wrote of files that are mapped for it alone, libraries.
    fn rest(&mut self) -> Vec<Stride>;
    /// What of these is in memory.
    fn present_bytes(&mut self, strides: &[Stride]) -> u64;
    /// Its block is still there.
    fn is_live(&mut self, stride: Stride) -> bool;
    /// What may go to swap.
    fn room_bytes(&mut self) -> u64;
    /// It is the next to come back.
    fn announce(&mut self, stride: Stride);
    /// Answer what went to swap, and what came from there.
    fn page_out(&mut self, stride: Stride) -> u64;
    fn page_back(&mut self, stride: Stride) -> u64;
}

/// The process's own blocks.
pub struct Blocks;

impl Memory for Blocks {
    fn live_bytes(&mut self) -> u64 {
        recycler::live_bytes()
    }

    fn strides(&mut self) -> Vec<Stride> {
        let mut blocks = recycler::live_blocks();
        // Those of one second stay in the order of their addresses, in which swap is then read.
        blocks.sort_by_key(|block| std::cmp::Reverse(block.age_ms / 1000));
        let mut strides: Vec<_> = blocks
            .iter()
            .flat_map(|block| cut(Of::Block(block.start), block.start, block.bytes))
            .collect();
        strides.reverse();
        strides
    }

    fn rest(&mut self) -> Vec<Stride> {
        let parts = |mapping: Mapping| {
            let (first, second) = match mapping.kind {
                mappings::Kind::Heap => (Of::Heap, None),
                mappings::Kind::File => (Of::Written, None),
                mappings::Kind::Library => (Of::Written, Some(Of::Library)),
            };
            let range = mapping.range;
            let cut = move |of| cut(of, range.start, range.len());
            cut(first).chain(second.into_iter().flat_map(cut))
        };
        mappings::private().into_iter().flat_map(parts).collect()
    }

    fn present_bytes(&mut self, strides: &[Stride]) -> u64 {
        let present = |stride: &Stride| paging::pages(stride.start, stride.bytes);
        let pages = strides.iter().filter_map(present);
        pages.map(|pages| pages.present_bytes).sum()
    }

    fn is_live(&mut self, stride: Stride) -> bool {
        let Of::Block(block) = stride.of else {
            return true;
        };
        let end = stride.start + stride.bytes;
        recycler::usable_size(block as *const u8).is_some_and(|bytes| block + bytes >= end)
    }

    fn room_bytes(&mut self) -> u64 {
        swap::room_bytes()
    }

    fn announce(&mut self, stride: Stride) {
        // What was written of a file is not to be had so: the kernel would read the file.
        if matches!(stride.of, Of::Block(_) | Of::Heap) {
            paging::announce(stride.start, stride.bytes);
        }
    }

    fn page_out(&mut self, stride: Stride) -> u64 {
        let (start, bytes) = (stride.start, stride.bytes);
        match stride.of {
            Of::Block(_) | Of::Heap => paging::out(start, bytes),
            Of::Written => paging::out_written(start, bytes),
            Of::Library => {
                paging::out_of_file(start, bytes);
                0
            }
        }
    }

    fn page_back(&mut self, stride: Stride) -> u64 {
        paging::back(stride.start, stride.bytes)
    }
}

pub fn cut(of: Of, start: usize, bytes: usize) -> impl Iterator<Item = Stride> {
    (0..bytes).step_by(STRIDE_BYTES).map(move |at| Stride {
        of,
        start: start + at,
        bytes: STRIDE_BYTES.min(bytes - at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_cut_into_strides_that_are_live_as_long_as_it_is() {
        const MIB: usize = 1 << 20;
        let pointer = recycler::alloc_early(20 * MIB, false);
        let block = pointer as usize;
        let stride = |at: usize, bytes: usize| Stride {
            of: Of::Block(block),
            start: block + at * MIB,
            bytes: bytes * MIB,
        };
        let strides = [stride(16, 4), stride(8, 8), stride(0, 8)];
        let all = Blocks.strides().into_iter();
        let own: Vec<_> = all.filter(|stride| stride.of == Of::Block(block)).collect();
        assert_eq!(own, strides);
        assert!(strides.iter().all(|stride| Blocks.is_live(*stride)));
        assert!(
            !Blocks.is_live(stride(16, 5)),
            "it reaches behind the block"
        );
        assert!(Blocks.live_bytes() >= 20 << 20);
        assert!(recycler::free(pointer));
        assert!(!strides.iter().any(|stride| Blocks.is_live(*stride)));
    }
}
