//! The steps of a random program that uses the recycler.

use crate::testing::vma_changes::VmaChange;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Alloc {
        bytes: usize,
        zeroed: bool,
    },
    Free {
        which: usize,
    },
    Resize {
        which: usize,
        bytes: usize,
    },
    /// The program changes the VMA of a part of a block.
    ChangeVma {
        which: usize,
        part: Part,
        change: VmaChange,
    },
    Wait {
        ms: u32,
    },
    Trim,
    Pressure {
        near: bool,
    },
    Fork,
}

#[derive(Clone, Copy, Debug)]
pub enum Part {
    Whole,
    FirstPage,
    LastPage,
    SecondHalf,
    /// Up to the first unit boundary inside the block.
    FirstUnit,
    /// From the first unit boundary inside the block to the last.
    UnitsBetween,
}

impl Part {
    pub const ALL: [Part; 6] = [
        Part::Whole,
        Part::FirstPage,
        Part::LastPage,
        Part::SecondHalf,
        Part::FirstUnit,
        Part::UnitsBetween,
    ];
}
