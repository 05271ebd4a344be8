//! Random steps for the property tests.

use crate::testing::model::PAGE;
use crate::testing::steps::{Part, Step};
use crate::testing::vma_changes::VmaChange;
use proptest::prelude::*;

fn vma_change() -> impl Strategy<Value = Step> {
    let part = prop::sample::select(&Part::ALL);
    let change = prop_oneof![3 => Just(VmaChange::Resettable), 2 => Just(VmaChange::File), 1 => Just(VmaChange::Permanent)];
    (any::<usize>(), part, change).prop_map(|(which, part, change)| Step::ChangeVma {
        which,
        part,
        change,
    })
}

pub fn bytes() -> impl Strategy<Value = usize> {
    let pages = prop_oneof![8 => 8usize..80, 2 => 80usize..2000, 2 => Just(32), 1 => Just(64)];
    (pages, 0..PAGE).prop_map(|(pages, less)| pages * PAGE - less * usize::from(pages % 3 == 0))
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (bytes(), any::<bool>()).prop_map(|(bytes, zeroed)| Step::Alloc { bytes, zeroed }),
        7 => any::<usize>().prop_map(|which| Step::Free { which }),
        3 => (any::<usize>(), bytes()).prop_map(|(which, bytes)| Step::Resize { which, bytes }),
        2 => vma_change(),
        1 => (0u32..400).prop_map(|ms| Step::Wait { ms }),
        1 => Just(Step::Trim),
        1 => any::<bool>().prop_map(|near| Step::Pressure { near }),
        1 => Just(Step::Fork),
    ]
}
