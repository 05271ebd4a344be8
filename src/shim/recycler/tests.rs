//! Properties of the recycler over the model of the kernel in `fake`.

use super::amount::{Bytes, Pages};
use super::engine::Recycler;
use super::fake::{Fake, PAGE};
use super::resize::Resized;
use super::space::Space;
use super::stats::Fallback;
use super::table::Table;
use super::unit::{kind, UNIT_BYTES};
use proptest::prelude::*;
use std::sync::atomic::Ordering::Relaxed;

const DECAY_MS: u32 = 300;

#[derive(Clone, Copy, Debug)]
enum Step {
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
    /// The program puts a flag on a page of a block.
    Mark {
        which: usize,
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

fn bytes() -> impl Strategy<Value = usize> {
    let pages = prop_oneof![8 => 8usize..80, 2 => 80usize..2000, 2 => Just(32), 1 => Just(64)];
    (pages, 0..PAGE).prop_map(|(pages, less)| pages * PAGE - less * usize::from(pages % 3 == 0))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (bytes(), any::<bool>()).prop_map(|(bytes, zeroed)| Step::Alloc { bytes, zeroed }),
        7 => any::<usize>().prop_map(|which| Step::Free { which }),
        3 => (any::<usize>(), bytes()).prop_map(|(which, bytes)| Step::Resize { which, bytes }),
        1 => any::<usize>().prop_map(|which| Step::Mark { which }),
        1 => (0u32..400).prop_map(|ms| Step::Wait { ms }),
        1 => Just(Step::Trim),
        1 => any::<bool>().prop_map(|near| Step::Pressure { near }),
        1 => Just(Step::Fork),
    ]
}

struct Block {
    start: usize,
    bytes: usize,
    value: u64,
}

struct World {
    recycler: Recycler<Fake>,
    blocks: Vec<Block>,
    next_value: u64,
}

impl World {
    fn new() -> Self {
        let table: &'static Table = Box::leak(Box::new(Table::new()));
        let recycler = Recycler::new(Fake::default(), table);
        recycler.configure(PAGE.ilog2(), None);
        recycler.state.lock().governed = true;
        World {
            recycler,
            blocks: Vec::new(),
            next_value: 1,
        }
    }

    /// One block of 3 MiB on recycled pages of 4 MiB.
    fn with_slack() -> Self {
        let mut world = World::new();
        assert!(world.alloc(4 * MIB, false));
        let block = world.take(0).expect("it was just made");
        world.free(block);
        assert!(world.alloc(3 * MIB, false));
        world
    }

    fn map(&self) -> &Fake {
        &self.recycler.map
    }

    /// The program fills its block with a value of its own, and expects to find it later.
    fn fill(&mut self, start: usize, bytes: usize) {
        let value = self.next_value;
        self.next_value += 1;
        self.map().write(start, bytes, value);
        self.blocks.push(Block {
            start,
            bytes,
            value,
        });
    }

    fn expect(&self, block: &Block, bytes: usize) {
        for page in (block.start..block.start + bytes).step_by(PAGE) {
            assert_eq!(
                self.map().read(page),
                block.value,
                "a block lost what was in it"
            );
        }
    }

    fn alloc(&mut self, bytes: usize, zeroed: bool) -> bool {
        let Some(start) = self.recycler.alloc(bytes, zeroed) else {
            return false;
        };
        assert_eq!(start % UNIT_BYTES, 0);
        assert!(self
            .recycler
            .usable_size(start)
            .is_some_and(|usable| usable >= bytes));
        if zeroed {
            for page in (start..start + bytes).step_by(PAGE) {
                assert_eq!(self.map().read(page), 0, "calloc's pages read as zero");
            }
        }
        self.fill(start, bytes);
        true
    }

    fn take(&mut self, which: usize) -> Option<Block> {
        let count = self.blocks.len();
        (count > 0).then(|| self.blocks.swap_remove(which % count))
    }

    fn free(&mut self, block: Block) {
        self.expect(&block, block.bytes);
        assert!(self.recycler.free(block.start));
        assert!(
            !self.recycler.free(block.start),
            "a freed block is no longer ours"
        );
    }

    fn resize(&mut self, block: Block, bytes: usize) {
        match self.recycler.resize(block.start, bytes) {
            Resized::Done(start) => {
                let moved = Block { start, ..block };
                self.expect(&moved, block.bytes.min(bytes));
                self.fill(start, bytes);
            }
            Resized::Failed => self.blocks.push(block),
            Resized::NotOurs => panic!("a live block is ours"),
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Alloc { bytes, zeroed } => drop(self.alloc(bytes, zeroed)),
            Step::Free { which } => {
                if let Some(block) = self.take(which) {
                    self.free(block);
                }
            }
            Step::Resize { which, bytes } => {
                if let Some(block) = self.take(which) {
                    self.resize(block, bytes);
                }
            }
            Step::Mark { which } => {
                if let Some(block) = self.take(which) {
                    self.map().split_mapping(block.start + which % block.bytes);
                    self.blocks.push(block);
                }
            }
            Step::Wait { ms } => {
                self.map().now.set(self.map().now.get().wrapping_add(ms));
                self.recycler.decay(DECAY_MS);
            }
            Step::Trim => drop(self.recycler.trim()),
            Step::Pressure { near } => {
                self.recycler.lock().space.tolerance.near_limit = near;
                self.recycler.settle();
            }
            Step::Fork => {
                self.recycler.fork_prepare();
                // SAFETY: prepared just above.
                unsafe { self.recycler.fork_child() };
                drop(self.recycler.lock());
                self.recycler.state.lock().governed = true;
            }
        }
    }

    /// The books agree with each other and with the map.
    fn audit(&self) {
        let state = self.recycler.lock();
        let space = &state.space;
        let ledger = &space.ledger;
        assert_eq!(ledger.moving(), Pages::NONE, "nothing is under way");
        assert_eq!(state.in_flight, 0);
        let mut cached = (Pages::NONE, 0);
        for (kind, pool) in [(kind::CACHED, &space.cached), (kind::EMPTY, &space.empty)] {
            let (mut units, mut head) = (0, pool.oldest());
            while head != 0 {
                let run = space
                    .span_at(head, kind)
                    .expect("a pool holds spans of its kind");
                units += u64::from(run.len);
                if kind == kind::CACHED {
                    cached.0 += space.populated(run);
                    assert!(run
                        .units()
                        .all(|id| space.unit(id).populated() > Pages::NONE));
                } else {
                    assert_eq!(space.populated(run), Pages::NONE);
                }
                head = space.unit(head).newer();
            }
            assert_eq!(units, pool.units());
            cached.1 += units;
        }
        assert_eq!(cached.0, ledger.cached());
        assert_eq!(self.queued_slack(space), ledger.slack());
        assert_eq!(space.pinned.first(), 0, "nobody returns slack");
        let pages = |block: &Block| Pages(block.bytes.div_ceil(PAGE) as u64);
        assert_eq!(self.blocks.iter().map(pages).sum::<Pages>(), ledger.live());
        assert_eq!(self.blocks.len() as u64, ledger.live_blocks());
        let units = |block: &Block| block.bytes.div_ceil(UNIT_BYTES) as u64;
        let live: u64 = self.blocks.iter().map(units).sum();
        assert!(self.map().mapped_units() as u64 >= live + cached.1);
    }

    fn queued_slack(&self, space: &Space) -> Pages {
        let (mut slack, mut head) = (Pages::NONE, space.slack_queue.first());
        while head != 0 {
            let run = space
                .span_at(head, kind::LIVE)
                .expect("slack is behind live blocks");
            slack += space.slack_of(run, space.need_of(run));
            head = space.unit(head).next();
        }
        slack
    }

    /// No refusals: the books are exact.
    fn audit_exactly(&self) {
        self.audit();
        let state = self.recycler.lock();
        let ledger = &state.space.ledger;
        assert_eq!(
            state.space.excess(),
            Pages::NONE,
            "the budget is kept: {ledger:?}"
        );
        assert!(Pages(self.map().resident() as u64) <= ledger.footprint());
        let units = |block: &Block| block.bytes.div_ceil(UNIT_BYTES) as u64;
        let live: u64 = self.blocks.iter().map(units).sum();
        let free = state.space.cached.units() + state.space.empty.units();
        assert_eq!(self.map().mapped_units() as u64, live + free);
    }

    fn finish(&mut self) {
        self.map().refusals.bits.set(0);
        while let Some(block) = self.take(0) {
            self.free(block);
        }
        self.recycler.trim();
        self.audit();
    }
}

/// `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig {
            cases: 150,
            ..default
        },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn blocks_keep_their_contents_and_the_budget_holds(
        steps in prop::collection::vec(step(), 1..120),
        old_kernel in any::<bool>(),
    ) {
        let mut world = World::new();
        world.map().old_kernel.set(old_kernel);
        for step in steps {
            world.run(step);
            world.audit_exactly();
        }
        world.finish();
        prop_assert_eq!(world.map().resident(), 0);
        prop_assert_eq!(world.map().mapped_units(), 0);
    }

    #[test]
    fn refusals_of_the_kernel_lose_no_page_and_no_byte(
        steps in prop::collection::vec((step(), any::<u64>(), any::<u64>()), 1..120),
        old_kernel in any::<bool>(),
    ) {
        let mut world = World::new();
        world.map().old_kernel.set(old_kernel);
        for (step, some, others) in steps {
            // A quarter of the calls is refused.
            world.map().refusals.bits.set(some & others);
            world.run(step);
            world.map().refusals.bits.set(0);
            world.audit();
        }
        world.finish();
        let stuck = world.recycler.state.lock().tally.fallbacks[Fallback::Stuck as usize];
        let lost = world.recycler.state.lock().tally.fallbacks[Fallback::TargetLost as usize];
        if stuck == 0 {
            prop_assert_eq!(world.map().resident(), 0);
        }
        if stuck + lost == 0 {
            prop_assert_eq!(world.map().mapped_units(), 0);
        }
    }
}

const MIB: usize = 1 << 20;

#[test]
fn a_freed_block_serves_the_next_of_its_size_without_a_fresh_page() {
    let mut world = World::new();
    assert!(world.alloc(6 * MIB, false));
    let block = world.take(0).expect("it was just made");
    let start = block.start;
    world.free(block);
    assert!(world.alloc(6 * MIB, false));
    assert_eq!(world.blocks[0].start, start);
    assert_eq!(world.recycler.stats().fresh_bytes_total, 6 * MIB as u64);
}

#[test]
fn a_large_block_is_gathered_from_small_ones_and_raises_no_peak() {
    let mut world = World::new();
    for _ in 0..100 {
        assert!(world.alloc(4 * MIB, false));
    }
    // Every other block is freed, so no two free ones are neighbours.
    for index in (0..100).rev().step_by(2) {
        let block = world.blocks.remove(index);
        world.free(block);
    }
    world.recycler.lock().space.tolerance.near_limit = true;
    assert!(world.alloc(200 * MIB, false));
    let stats = world.recycler.stats();
    assert_eq!(stats.peak_live_bytes, 400 * MIB as u64);
    assert_eq!(stats.fresh_bytes_total, 400 * MIB as u64);
    assert_eq!(stats.moved_bytes_total, 200 * MIB as u64);
    assert_eq!(world.map().peak_resident.get() * PAGE, 400 * MIB);
}

#[test]
fn many_small_blocks_do_not_keep_the_tails_of_the_large_one_before_them() {
    let mut world = World::new();
    world.recycler.lock().space.tolerance.near_limit = true;
    assert!(world.alloc(200 * MIB, false));
    let block = world.take(0).expect("it was just made");
    world.free(block);
    for _ in 0..160 {
        assert!(world.alloc(MIB + MIB / 8, false));
    }
    assert!(world.map().peak_resident.get() * PAGE <= 200 * MIB);
}

#[test]
fn growing_moves_pages_and_copies_nothing() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    assert!(world.alloc(2 * MIB, false));
    for step in 2..40 {
        let block = world.blocks.remove(0);
        world.resize(block, step * 3 * MIB);
        let last = world.blocks.pop().expect("it was just put back");
        world.blocks.insert(0, last);
    }
    let fallbacks = world.recycler.stats().fallbacks;
    assert_eq!(fallbacks[Fallback::ReallocCopied as usize], 0);
    assert_eq!(fallbacks[Fallback::MoveRefused as usize], 0);
    assert_eq!(
        world.recycler.stats().fresh_bytes_total,
        (39 * 3 + 2) * MIB as u64
    );
}

#[test]
fn pages_unused_for_the_decay_time_go_back_and_younger_ones_stay() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, false));
    assert!(world.alloc(4 * MIB, false));
    let old = world.take(0).expect("two blocks");
    world.free(old);
    world.map().now.set(200);
    let young = world.take(0).expect("one block");
    world.free(young);
    world.map().now.set(DECAY_MS);
    assert_eq!(world.recycler.decay(DECAY_MS), Some(DECAY_MS / 4));
    assert_eq!(world.map().resident() * PAGE, 4 * MIB);
    world.map().now.set(500);
    assert_eq!(world.recycler.decay(DECAY_MS), None);
    assert_eq!(world.map().resident(), 0);
}

#[test]
fn a_block_that_the_program_marked_is_not_handed_on_with_the_mark() {
    let mut world = World::new();
    assert!(world.alloc(3 * MIB, false));
    let block = world.take(0).expect("it was just made");
    world.map().split_mapping(block.start);
    world.free(block);
    assert_eq!(
        world.recycler.stats().fallbacks[Fallback::OddFlags as usize],
        1
    );
    assert_eq!(world.map().resident(), 0);
}

#[test]
fn without_a_governor_little_is_kept_and_more_calls_for_one() {
    for ungovernable in [false, true] {
        let mut world = World::new();
        {
            let mut state = world.recycler.state.lock();
            (state.governed, state.ungovernable) = (false, ungovernable);
        }
        for _ in 0..5 {
            assert!(world.alloc(5 * MIB, false));
        }
        assert!(!world.recycler.heavy.load(Relaxed));
        while let Some(block) = world.take(0) {
            world.free(block);
        }
        assert!(world.recycler.heavy.load(Relaxed));
        let little = world.recycler.stats().cached_bytes <= 16 * MIB as u64;
        assert_eq!(little, ungovernable);
    }
}

#[test]
fn a_block_freed_while_its_slack_was_on_its_way_is_free_in_a_forked_child() {
    let mut world = World::with_slack();
    let block = world.take(0).expect("it was just made");
    {
        let mut state = world.recycler.lock();
        assert!(state.pin_slack(|_| true, 0).is_some());
        state.in_flight += 1;
    }
    assert!(world.recycler.free(block.start));
    assert_eq!(world.recycler.stats().live_blocks, 1);
    // What `fork_prepare` does once it has waited long enough.
    world.recycler.state.acquire();
    // SAFETY: the lock was acquired above, as fork_prepare does.
    unsafe { world.recycler.fork_child() };
    assert_eq!(world.recycler.stats().live_blocks, 0);
    world.finish();
    assert_eq!(world.map().resident(), 0);
}

#[test]
fn slack_behind_refused_slack_goes_back_all_the_same() {
    let mut world = World::new();
    for _ in 0..2 {
        assert!(world.alloc(4 * MIB, false));
    }
    while let Some(block) = world.take(0) {
        world.free(block);
    }
    for _ in 0..2 {
        assert!(world.alloc(3 * MIB, false));
    }
    world.map().refusals.bits.set(1);
    assert_eq!(world.recycler.trim(), Bytes(2 * MIB as u64));
    world.finish();
}

#[test]
fn slack_that_the_system_refuses_to_take_is_not_said_to_be_returned() {
    let mut world = World::with_slack();
    world.map().refusals.bits.set(u64::MAX);
    assert_eq!(world.recycler.trim(), Bytes(0));
    assert_eq!(world.recycler.decay(DECAY_MS), None, "it is not waited for");
    world.map().refusals.bits.set(0);
    let stats = world.recycler.stats();
    assert_eq!(stats.slack_bytes, MIB as u64);
    assert_eq!(stats.returned_bytes_total, 0);
    assert_eq!(stats.fallbacks[Fallback::DiscardRefused as usize], 1);
    assert_eq!(world.recycler.trim(), Bytes(MIB as u64));
    world.finish();
}

#[test]
fn a_forked_child_starts_with_an_empty_cache() {
    let mut world = World::new();
    assert!(world.alloc(8 * MIB, false));
    let block = world.take(0).expect("it was just made");
    world.free(block);
    world.run(Step::Fork);
    assert_eq!(world.recycler.stats().cached_bytes, 0);
    assert_eq!(world.map().resident(), 0);
}
