//! A program that uses a recycler on the model kernel: it owns blocks with contents and runs steps.
//! `audit.rs` checks the recycler's records against them.

use crate::core::geometry::Contents;
use crate::core::pagemap::Pagemap;
use crate::core::unit::UNIT_BYTES;
use crate::ops::free::FreeOutcome;
use crate::ops::realloc::Realloc;
use crate::state::recycler::{Governor, Recycler};
use crate::testing::model::{ModelKernel, PAGE};
use crate::testing::steps::{Part, Step};
use crate::testing::vma_changes::VmaChange;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

pub const DECAY_MS: u32 = 300;
pub const MIB: usize = 1 << 20;

pub struct Block {
    pub start: usize,
    pub bytes: usize,
    pub value: u64,
    /// The program made a permanent change to its VMA.
    pub has_permanent_change: bool,
}

pub struct World {
    pub recycler: Rc<Recycler<ModelKernel>>,
    pub blocks: Vec<Block>,
    pub next_value: u64,
    /// No other thread can reuse a block that this one frees.
    pub alone: bool,
}

impl World {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let pagemap: &'static Pagemap = Box::leak(Box::new(Pagemap::new()));
        let recycler = Recycler::new(ModelKernel::default(), pagemap);
        recycler.set_page_shift(PAGE.ilog2());
        recycler.governor.store(Governor::Running, Relaxed);
        let recycler = Rc::new(recycler);
        let inside = Rc::downgrade(&recycler);
        let is_free = |all: Rc<Recycler<ModelKernel>>| all.state.try_lock().is_some();
        let probe = move || inside.upgrade().is_none_or(is_free);
        recycler.vm.watch_lock(probe);
        World {
            recycler,
            blocks: Vec::new(),
            next_value: 1,
            alone: true,
        }
    }

    /// Another thread that uses the same recycler and owns other blocks.
    pub fn beside(&self, thread: u64) -> Self {
        World {
            recycler: Rc::clone(&self.recycler),
            blocks: Vec::new(),
            next_value: (thread + 1) << 32,
            alone: false,
        }
    }

    /// One block of 3 MiB on recycled pages of 4 MiB.
    pub fn with_slack() -> Self {
        let mut world = World::new();
        assert!(world.alloc(4 * MIB, false));
        let block = world.take(0).expect("it was just allocated");
        world.free(block);
        assert!(world.alloc(3 * MIB, false));
        world
    }

    pub fn vm(&self) -> &ModelKernel {
        &self.recycler.vm
    }

    /// The program fills its block with a unique value, which later checks expect.
    pub fn fill(&mut self, start: usize, bytes: usize) {
        let value = self.next_value;
        self.next_value += 1;
        self.vm().write(start, bytes, value);
        self.blocks.push(Block {
            start,
            bytes,
            value,
            has_permanent_change: false,
        });
    }

    pub fn expect(&self, block: &Block, bytes: usize) {
        for page in (block.start..block.start + bytes).step_by(PAGE) {
            assert_eq!(
                self.vm().read(page),
                block.value,
                "the block keeps its contents"
            );
        }
    }

    pub fn alloc(&mut self, bytes: usize, zeroed: bool) -> bool {
        let contents = if zeroed {
            Contents::Zeroed
        } else {
            Contents::Any
        };
        let Some(start) = self.recycler.alloc_block(bytes, contents) else {
            return false;
        };
        assert_eq!(start % UNIT_BYTES, 0);
        assert!(self
            .recycler
            .size_at(start)
            .is_some_and(|usable| usable >= bytes));
        assert_eq!(
            self.vm().vma_changes_on(start, bytes),
            [],
            "a new block has default attributes"
        );
        if zeroed {
            for page in (start..start + bytes).step_by(PAGE) {
                assert_eq!(self.vm().read(page), 0, "calloc's pages read as zero");
            }
        }
        self.fill(start, bytes);
        true
    }

    pub fn take(&mut self, which: usize) -> Option<Block> {
        let count = self.blocks.len();
        (count > 0).then(|| self.blocks.swap_remove(which % count))
    }

    pub fn free(&mut self, block: Block) {
        self.expect(&block, block.bytes);
        let inside = block.start + (block.bytes - 1) / UNIT_BYTES * UNIT_BYTES;
        for unit in (block.start..=inside).step_by(UNIT_BYTES) {
            assert!(self.recycler.holds(unit));
        }
        if inside != block.start {
            assert_eq!(
                self.free_at(inside),
                None,
                "an address inside a block is refused"
            );
        }
        assert_eq!(self.free_at(block.start), Some(FreeOutcome::Done));
        if self.alone {
            assert_eq!(self.free_at(block.start), None, "a second free is refused");
        }
    }

    /// `None`: no block begins there.
    pub fn free_at(&self, start: usize) -> Option<FreeOutcome> {
        let extent = self.recycler.find(start)?;
        Some(self.recycler.free_block(extent))
    }

    pub fn realloc(&mut self, block: Block, bytes: usize) {
        let extent = self.recycler.find(block.start).expect("the block is live");
        match self.recycler.resize(extent, bytes) {
            Realloc::Done(start) => {
                let moved = Block { start, ..block };
                self.expect(&moved, block.bytes.min(bytes));
                let old = block.bytes.next_multiple_of(PAGE);
                if old < bytes {
                    let changes = self.vm().vma_changes_on(start + old, bytes - old);
                    // A block that shrank and grows again may keep its permanent change.
                    let is_permitted = |(_, change): &(usize, VmaChange)| {
                        block.has_permanent_change && *change == VmaChange::Permanent
                    };
                    assert!(
                        changes.iter().all(is_permitted),
                        "the grown part has changes of another block: {changes:?}"
                    );
                }
                self.fill(start, bytes);
                if let Some(resized) = self.blocks.last_mut() {
                    resized.has_permanent_change = block.has_permanent_change;
                }
            }
            Realloc::Failed => self.blocks.push(block),
            Realloc::MoveToBackend => panic!("the recycler has given up"),
            Realloc::NotOurs => panic!("the block is live"),
        }
    }

    /// Skips a permanent change on whole units: no probe can detect it where it splits no VMA.
    pub fn change_vma(&self, block: &Block, part: Part, change: VmaChange) {
        let pages = block.bytes.div_ceil(PAGE);
        let unit = UNIT_BYTES / PAGE;
        let before_last = (pages - 1) / unit * unit;
        let (skip, count) = match part {
            Part::Whole => (0, pages),
            Part::FirstPage => (0, 1),
            Part::LastPage => (pages - 1, 1),
            Part::SecondHalf => (pages / 2, pages - pages / 2),
            Part::FirstUnit => (0, before_last.min(unit)),
            Part::UnitsBetween => (unit, before_last.saturating_sub(unit)),
        };
        let whole_units = (skip + count).is_multiple_of(unit);
        if change != VmaChange::Permanent || count == 1 || !whole_units {
            self.vm()
                .change_vma(block.start + skip * PAGE, count * PAGE, change);
        }
    }

    pub fn run(&mut self, step: Step) {
        match step {
            Step::Alloc { bytes, zeroed } => drop(self.alloc(bytes, zeroed)),
            Step::Free { which } => {
                if let Some(block) = self.take(which) {
                    self.free(block);
                }
            }
            Step::Resize { which, bytes } => {
                if let Some(block) = self.take(which) {
                    self.realloc(block, bytes);
                }
            }
            Step::ChangeVma {
                which,
                part,
                change,
            } => {
                if let Some(mut block) = self.take(which) {
                    self.change_vma(&block, part, change);
                    block.has_permanent_change |= change == VmaChange::Permanent;
                    self.blocks.push(block);
                }
            }
            Step::Wait { ms } => {
                self.vm().now.set(self.vm().now.get().wrapping_add(ms));
                self.recycler.decay_round(DECAY_MS);
            }
            Step::Trim => drop(self.recycler.purge_all()),
            Step::Pressure { near } => {
                self.recycler.lock().space.tolerance.near_limit = near;
                self.recycler.purge_excess();
            }
            Step::Fork => {
                // SAFETY: no other thread uses this recycler, as in a forked child.
                assert!(unsafe { self.recycler.mark_inherited() });
                assert!(self.recycler.adopt_after_fork());
                self.recycler.governor.store(Governor::Running, Relaxed);
            }
        }
    }

    pub fn finish(&mut self) {
        self.vm().refusals.bits.set(0);
        while let Some(block) = self.take(0) {
            self.free(block);
        }
        self.recycler.purge_all();
        self.audit();
    }
}
