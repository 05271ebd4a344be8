//! The recycler on a kernel where one fault populates several pages.

use crate::testing::model::PAGE;
use crate::testing::steps::Step;
use crate::testing::tests::strategies::step;
use crate::testing::world::{World, DECAY_MS, MIB};
use proptest::prelude::*;

const FOLIO: usize = MIB / PAGE;

fn world() -> World {
    let world = World::new();
    world.vm().folio_pages.set(FOLIO);
    world
}

proptest! {
    #[test]
    fn pages_that_a_fault_populates_behind_a_block_count_as_slack(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = world();
        // Near a limit, slack is purged before the program touches the block. The ledger would then
        // count fewer pages than the next fault populates.
        for step in steps.into_iter().filter(|step| !matches!(step, Step::Pressure { .. })) {
            world.run(step);
            world.audit_exactly();
        }
        world.finish();
        prop_assert_eq!(world.vm().resident(), 0);
    }
}

#[test]
fn rest_of_a_folio_is_slack_and_is_purged_when_it_expires() {
    let mut world = world();
    assert!(world.alloc(2 * MIB + PAGE, false));
    assert_eq!(world.recycler.stats().slack_bytes, (MIB - PAGE) as u64);
    assert_eq!(world.vm().resident(), 3 * MIB / PAGE);
    world.run(Step::Wait { ms: 2 * DECAY_MS });
    assert_eq!(world.recycler.stats().slack_bytes, 0);
    assert_eq!(world.vm().resident() * PAGE, 2 * MIB + PAGE);
    world.audit_exactly();
}
