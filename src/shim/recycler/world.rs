//! A program's view of the recycler over `fake`: blocks with contents, steps, and the audit of the books.

use super::amount::Pages;
use super::engine::Recycler;
use super::fake::{Fake, PAGE};
use super::free::Freed;
use super::list::{ByAge, List, WithSlack};
use super::marks::Mark;
use super::pagemap::Pagemap;
use super::realloc::Resized;
use super::space::Space;
use super::steps::{Part, Step};
use super::unit::{Kind, UNIT_BYTES};
use std::rc::Rc;

pub const DECAY_MS: u32 = 300;
pub const MIB: usize = 1 << 20;

pub struct Block {
    pub start: usize,
    pub bytes: usize,
    pub value: u64,
    /// Its user put a mark on it that cannot be taken off.
    pub lasting: bool,
}

pub struct World {
    pub recycler: Rc<Recycler<Fake>>,
    pub blocks: Vec<Block>,
    pub next_value: u64,
    /// No other thread takes what this one frees.
    pub alone: bool,
}

impl World {
    pub fn new() -> Self {
        let pagemap: &'static Pagemap = Box::leak(Box::new(Pagemap::new()));
        let recycler = Recycler::new(Fake::default(), pagemap);
        recycler.configure(PAGE.ilog2(), None);
        recycler.state.lock().governed = true;
        let recycler = Rc::new(recycler);
        let inside = Rc::downgrade(&recycler);
        let is_free = |all: Rc<Recycler<Fake>>| all.state.try_lock().is_some();
        let probe = move || inside.upgrade().is_none_or(is_free);
        recycler.map.watch_lock(probe);
        World {
            recycler,
            blocks: Vec::new(),
            next_value: 1,
            alone: true,
        }
    }

    /// Another thread's view of the same recycler, with blocks of its own.
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
        let block = world.take(0).expect("it was just made");
        world.free(block);
        assert!(world.alloc(3 * MIB, false));
        world
    }

    pub fn map(&self) -> &Fake {
        &self.recycler.map
    }

    /// The program fills its block with a value of its own, and expects to find it later.
    pub fn fill(&mut self, start: usize, bytes: usize) {
        let value = self.next_value;
        self.next_value += 1;
        self.map().write(start, bytes, value);
        self.blocks.push(Block {
            start,
            bytes,
            value,
            lasting: false,
        });
    }

    pub fn expect(&self, block: &Block, bytes: usize) {
        for page in (block.start..block.start + bytes).step_by(PAGE) {
            assert_eq!(
                self.map().read(page),
                block.value,
                "a block lost what was in it"
            );
        }
    }

    pub fn alloc(&mut self, bytes: usize, zeroed: bool) -> bool {
        let Some(start) = self.recycler.alloc(bytes, zeroed) else {
            return false;
        };
        assert_eq!(start % UNIT_BYTES, 0);
        assert!(self
            .recycler
            .size_at(start)
            .is_some_and(|usable| usable >= bytes));
        assert_eq!(
            self.map().marks_on(start, bytes),
            [],
            "marks of another user"
        );
        if zeroed {
            for page in (start..start + bytes).step_by(PAGE) {
                assert_eq!(self.map().read(page), 0, "calloc's pages read as zero");
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
            let freed = self.recycler.free_block(inside);
            assert_eq!(freed, Freed::NotOurs, "a block's last unit is no block");
        }
        assert_eq!(self.recycler.free_block(block.start), Freed::Done);
        if self.alone {
            let again = self.recycler.free_block(block.start);
            assert_eq!(again, Freed::NotOurs, "a freed block is no longer ours");
        }
    }

    pub fn resize(&mut self, block: Block, bytes: usize) {
        match self.recycler.resize(block.start, bytes) {
            Resized::Done(start) => {
                let moved = Block { start, ..block };
                self.expect(&moved, block.bytes.min(bytes));
                let old = block.bytes.next_multiple_of(PAGE);
                if old < bytes {
                    let marks = self.map().marks_on(start + old, bytes - old);
                    // Its own come back, when it was shorter meanwhile and they cannot be taken off.
                    let is_own =
                        |(_, mark): &(usize, Mark)| block.lasting && *mark == Mark::Lasting;
                    assert!(marks.iter().all(is_own), "marks of another user: {marks:?}");
                }
                self.fill(start, bytes);
                if let Some(resized) = self.blocks.last_mut() {
                    resized.lasting = block.lasting;
                }
            }
            Resized::Failed => self.blocks.push(block),
            Resized::NotOurs => panic!("a live block is ours"),
            Resized::GivenUp => panic!("the recycler works"),
        }
    }

    /// What we cannot take off is not played where nothing tells it: all over units that lie alone.
    pub fn mark(&self, block: &Block, part: Part, mark: Mark) {
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
        if mark != Mark::Lasting || count == 1 || !whole_units {
            self.map()
                .mark(block.start + skip * PAGE, count * PAGE, mark);
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
                    self.resize(block, bytes);
                }
            }
            Step::Mark { which, part, mark } => {
                if let Some(mut block) = self.take(which) {
                    self.mark(&block, part, mark);
                    block.lasting |= mark == Mark::Lasting;
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
                self.recycler.purge_excess();
            }
            Step::Fork => {
                // SAFETY: the recycler is this thread's alone, as that of a child is.
                assert!(unsafe { self.recycler.after_fork_in_child() });
                assert!(self.recycler.settle());
                self.recycler.state.lock().governed = true;
            }
        }
    }

    /// The books agree with each other and with the map.
    pub fn audit(&self) {
        let state = self.recycler.lock();
        let space = &state.space;
        let ledger = &space.ledger;
        assert_eq!(ledger.moving(), Pages::NONE, "nothing is under way");
        let mut cached = (Pages::NONE, 0);
        for (kind, pool) in [(Kind::Cached, &space.cached), (Kind::Empty, &space.empty)] {
            let (mut units, mut next) = (0, pool.oldest());
            while let Some(head) = next {
                let extent = space
                    .extent_at(head, kind)
                    .expect("a pool holds extents of its kind");
                units += u64::from(extent.len);
                if kind == Kind::Cached {
                    cached.0 += space.populated(extent);
                    assert!(extent
                        .units()
                        .all(|id| space.unit(id).populated() > Pages::NONE));
                } else {
                    assert_eq!(space.populated(extent), Pages::NONE);
                }
                next = List::<ByAge>::after(space.pagemap, head);
            }
            assert_eq!(units, pool.units());
            cached.1 += units;
        }
        assert_eq!(cached.0, ledger.cached());
        assert_eq!(self.queued_slack(space), ledger.slack());
        assert_eq!(space.pinned.first(), None, "nobody returns slack");
        let pages = |block: &Block| Pages::new(block.bytes.div_ceil(PAGE) as u64);
        assert_eq!(self.blocks.iter().map(pages).sum::<Pages>(), ledger.live());
        assert_eq!(self.blocks.len() as u64, ledger.live_blocks());
        let units = |block: &Block| block.bytes.div_ceil(UNIT_BYTES) as u64;
        let live: u64 = self.blocks.iter().map(units).sum();
        assert!(self.map().mapped_units() as u64 >= live + cached.1);
    }

    pub fn queued_slack(&self, space: &Space) -> Pages {
        let (mut slack, mut next) = (Pages::NONE, space.with_slack.first());
        while let Some(head) = next {
            let extent = space
                .extent_at(head, Kind::Live)
                .expect("slack is behind live blocks");
            slack += space.slack_of(extent, space.need_of(extent));
            next = List::<WithSlack>::after(space.pagemap, head);
        }
        slack
    }

    /// No refusals: the books are exact.
    pub fn audit_exactly(&self) {
        self.audit();
        let state = self.recycler.lock();
        let ledger = &state.space.ledger;
        assert_eq!(
            state.space.excess(),
            Pages::NONE,
            "the budget is kept: {ledger:?}"
        );
        assert!(Pages::new(self.map().resident() as u64) <= ledger.footprint());
        let units = |block: &Block| block.bytes.div_ceil(UNIT_BYTES) as u64;
        let live: u64 = self.blocks.iter().map(units).sum();
        let free = state.space.cached.units() + state.space.empty.units();
        assert_eq!(self.map().mapped_units() as u64, live + free);
    }

    pub fn finish(&mut self) {
        self.map().refusals.bits.set(0);
        while let Some(block) = self.take(0) {
            self.free(block);
        }
        self.recycler.trim();
        self.audit();
    }
}
