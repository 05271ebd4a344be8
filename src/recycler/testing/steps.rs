//! What a program may do next, for the properties of the recycler.

use crate::testing::marks::Mark;
use crate::testing::model::PAGE;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Alloc {
        bytes: usize,
        zeroed: bool,
    },
    FreeKind {
        which: usize,
    },
    Resize {
        which: usize,
        bytes: usize,
    },
    /// The program marks a part of a block.
    Mark {
        which: usize,
        part: Part,
        mark: Mark,
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
    /// As far as the first boundary of units inside the block.
    FirstUnit,
    /// From the first boundary of units inside the block to the last.
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

fn marking() -> impl Strategy<Value = Step> {
    let part = prop::sample::select(&Part::ALL);
    let mark = prop_oneof![3 => Just(Mark::Plain), 2 => Just(Mark::File), 1 => Just(Mark::Lasting)];
    (any::<usize>(), part, mark).prop_map(|(which, part, mark)| Step::Mark { which, part, mark })
}

pub fn bytes() -> impl Strategy<Value = usize> {
    let pages = prop_oneof![8 => 8usize..80, 2 => 80usize..2000, 2 => Just(32), 1 => Just(64)];
    (pages, 0..PAGE).prop_map(|(pages, less)| pages * PAGE - less * usize::from(pages % 3 == 0))
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (bytes(), any::<bool>()).prop_map(|(bytes, zeroed)| Step::Alloc { bytes, zeroed }),
        7 => any::<usize>().prop_map(|which| Step::FreeKind { which }),
        3 => (any::<usize>(), bytes()).prop_map(|(which, bytes)| Step::Resize { which, bytes }),
        2 => marking(),
        1 => (0u32..400).prop_map(|ms| Step::Wait { ms }),
        1 => Just(Step::Trim),
        1 => any::<bool>().prop_map(|near| Step::Pressure { near }),
        1 => Just(Step::Fork),
    ]
}
