//! The recycler: its state under one lock, and the read-only functions on it.
//!
//! `ops` has the functions that change it.
//!
//! Invariant: no thread holds the lock during a system call. Before one, the thread makes the
//! extent `Busy` or `Purging`, or pins the live block, and so owns it. After the call it takes the
//! lock again and records the result. The model kernel of the tests checks this at each call.

use crate::core::geometry::{Bytes, Geometry, Pages};
use crate::core::pagemap::Pagemap;
use crate::core::unit::{address, id_of, Cpu, Extent, Kind, UnitId, UNIT_BYTES};
use crate::os::throttle::ConcurrencyLimit;
use crate::os::vm::Vm;
use crate::policy::age::FUTURE_MS;
use crate::policy::room::Room;
use crate::state::address_window::AddressWindow;
use crate::state::space::Space;
use crate::state::stats::{Counters, Fallback, Stats};
use crate::state::vma_count::VmaCount;
use flarena_shared::defaults::GOVERNOR_START_LARGE_BYTES;
use flarena_sys::attention;
use flarena_sys::sync::lock::{Guard, Lock};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering, Ordering::Acquire,
    Ordering::Relaxed,
};

/// One thread in a probe and one that is about to enter it. Higher limits, up to four, give no more
/// probes per second on two CPUs.
const CONCURRENT_PROBES: u32 = 2;

/// Waits until another thread has recorded an unmapping, about five seconds. That thread needs at
/// most one system call.
pub const MAX_WAITS: u32 = 30_000;
/// Of these, the ones that yield. A thread of a lower priority runs only while this one sleeps.
const YIELDS: u32 = 32;

/// The governor as the recycler sees it. A governor purges old cached pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Governor {
    NotStarted,
    Running,
    /// There is none, and none will start soon: the recycler caches little.
    Unavailable,
}

/// The process that the state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ownership {
    /// This process.
    Own,
    /// The parent, before a fork. `adopt_after_fork` makes it this process's state.
    Inherited,
    /// No process: at the fork a thread of the parent was changing the state. It is never used
    /// again, in this process and its children.
    Unusable,
}

macro_rules! atomic {
    ($name:ident, $kind:ident: $first:ident, $second:ident, else $last:ident) => {
        pub struct $name(AtomicU8);

        impl $name {
            #[inline]
            pub fn load(&self, order: Ordering) -> $kind {
                match self.0.load(order) {
                    0 => $kind::$first,
                    1 => $kind::$second,
                    _ => $kind::$last,
                }
            }

            #[inline]
            pub fn store(&self, value: $kind, order: Ordering) {
                self.0.store(value as u8, order);
            }
        }
    };
}

atomic!(AtomicGovernor, Governor: NotStarted, Running, else Unavailable);
atomic!(AtomicOwnership, Ownership: Own, Inherited, else Unusable);

/// A live block, as `list_blocks` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    pub start: usize,
    pub bytes: usize,
    /// The allocation site, in the caller's encoding. 0: none.
    pub origin: u64,
}

pub struct State {
    pub space: Space,
    pub counters: Counters,
    pub window: AddressWindow,
    /// Moves that lost their target. After a few of them, no more pages move.
    pub lost_targets: u32,
    pub vma_count: VmaCount,
    pub room: Room,
    /// Units that threads are unmapping.
    pub unmapping_units: u32,
    /// The system refused the last slack (the program locked it), so decay does not wait for it.
    pub slack_refused: bool,
}

pub struct Recycler<V: Vm> {
    pub vm: V,
    pub pagemap: &'static Pagemap,
    pub state: Lock<State>,
    page_shift: AtomicU32,
    /// True once all pages reached `GOVERNOR_START_LARGE_BYTES`, or the cached pages
    /// `GOVERNOR_START_CACHED_BYTES`.
    pub wants_governor_thread: AtomicBool,
    pub ownership: AtomicOwnership,
    /// Not part of the state: a signal handler that interrupted the holder of its lock may set it.
    pub governor: AtomicGovernor,
    /// A page before the address window that no block ever owns. 0: there is none.
    pub reference_page: AtomicUsize,
    /// The number of attribute resets.
    pub resets: AtomicU64,
    /// The number of freed blocks of several VMAs that needed a reset of their attributes.
    pub multi_vma_frees: AtomicU64,
    /// Limits the threads that probe a block's VMA at the same time.
    pub probe_limit: ConcurrencyLimit,
    /// Limits the threads that reset attributes at the same time.
    pub reset_limit: ConcurrencyLimit,
    /// The cached bytes after the last free. Allocations since then are not subtracted.
    pub cached_bytes: AtomicU64,
    /// In a process without a governor: the time of the last decay.
    pub decayed_ms: AtomicU32,
}

pub type Locked<'a> = Guard<'a, State>;

impl State {
    /// True if the recycler is near its share of the VMAs that the kernel allows (`allowed`), so
    /// that no pages may move.
    pub fn has_too_many_vmas(&mut self, allowed: u32) -> bool {
        self.vma_count.is_near_limit(&self.space, allowed)
    }
}

impl<V: Vm> Recycler<V> {
    pub const fn new(vm: V, pagemap: &'static Pagemap) -> Self {
        let state = State {
            space: Space::new(pagemap),
            counters: Counters::new(),
            window: AddressWindow::new(),
            lost_targets: 0,
            vma_count: VmaCount::new(),
            room: Room::new(),
            unmapping_units: 0,
            slack_refused: false,
        };
        Recycler {
            vm,
            pagemap,
            state: Lock::new(state),
            page_shift: AtomicU32::new(12),
            wants_governor_thread: AtomicBool::new(false),
            ownership: AtomicOwnership(AtomicU8::new(Ownership::Own as u8)),
            governor: AtomicGovernor(AtomicU8::new(Governor::NotStarted as u8)),
            reference_page: AtomicUsize::new(0),
            resets: AtomicU64::new(0),
            multi_vma_frees: AtomicU64::new(0),
            probe_limit: ConcurrencyLimit::new(CONCURRENT_PROBES),
            reset_limit: ConcurrencyLimit::new(1),
            cached_bytes: AtomicU64::new(0),
            decayed_ms: AtomicU32::new(0),
        }
    }

    pub fn set_page_shift(&self, page_shift: u32) {
        let mut state = self.state.lock();
        state.space.geometry = Geometry { page_shift };
        state.space.tolerance.geometry = Geometry { page_shift };
        self.page_shift.store(page_shift, Relaxed);
    }

    pub fn geometry(&self) -> Geometry {
        Geometry {
            page_shift: self.page_shift.load(Relaxed),
        }
    }

    /// True if the state belongs to this process. Otherwise `adopt_after_fork` must come first.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.ownership.load(Acquire) == Ownership::Own
    }

    /// Takes the lock, and sets the time and the CPU of the operation.
    pub fn lock(&self) -> Locked<'_> {
        self.lock_at(self.vm.now_ms())
    }

    /// The same for an operation that has already read the clock.
    #[inline]
    pub fn lock_at(&self, now_ms: u32) -> Locked<'_> {
        let cpu = Cpu::new(self.vm.cpu());
        let mut state = self.state.lock();
        state.space.now_ms = later(state.space.now_ms, now_ms);
        state.space.cpu = cpu;
        state
    }

    /// Debug builds compare the ledger with the pagemap.
    #[inline]
    pub fn check(&self) {
        #[cfg(debug_assertions)]
        self.state.lock().space.check_ledger();
    }

    pub fn check_governor_threshold(&self, state: &Locked<'_>) {
        let held = state.space.geometry.bytes(state.space.ledger.footprint());
        if held >= Bytes::new(GOVERNOR_START_LARGE_BYTES)
            && !self.wants_governor_thread.load(Relaxed)
        {
            self.want_governor();
        }
    }

    pub fn want_governor(&self) {
        self.wants_governor_thread.store(true, Relaxed);
        attention::set(attention::GOVERNOR);
    }

    /// The live block that begins at this address.
    #[inline]
    pub fn find(&self, start: usize) -> Option<Extent> {
        if !start.is_multiple_of(UNIT_BYTES) {
            return None;
        }
        self.block_at(u32::try_from(start / UNIT_BYTES).ok()?)
    }

    /// The live block that begins with this unit.
    #[inline]
    pub fn block_at(&self, head: UnitId) -> Option<Extent> {
        let unit = self.pagemap.find(head)?;
        unit.begins_block().then(|| Extent::new(head, unit.len()))
    }

    /// True for an address in the recycler's memory, which no other allocator can have returned.
    /// The kind `Busy` alone proves nothing, because the system may have reused the addresses. But
    /// inner units of a live block may have that kind, too.
    pub fn holds(&self, pointer: usize) -> bool {
        let Some(unit) = self.pagemap.find(id_of(pointer)) else {
            return false;
        };
        match unit.kind() {
            Kind::None | Kind::Hole | Kind::Gone => false,
            Kind::Busy => self.is_inside_block(id_of(pointer)),
            _ => true,
        }
    }

    /// True for a unit of a live block. Its inner units keep the kind that they had before the
    /// block was allocated, so the function searches for the block's first unit.
    #[cold]
    fn is_inside_block(&self, id: UnitId) -> bool {
        let _state = self.state.lock();
        let before = (0..=id)
            .rev()
            .map_while(|id| Some((id, self.pagemap.find(id)?)));
        let mut mapped = before.take_while(|(_, unit)| unit.kind() != Kind::None);
        let head = mapped.find(|(_, unit)| unit.begins_block());
        head.is_some_and(|(head, unit)| id < head + unit.len())
    }

    /// The usable size of the live block that begins at this address.
    pub fn size_at(&self, start: usize) -> Option<usize> {
        Some(self.block_bytes(self.find(start)?))
    }

    /// Records the allocation site of a live block. Only the block's owner may call it.
    #[inline]
    pub fn set_origin(&self, start: usize, origin: u64) {
        if let Some(word) = self.pagemap.origin(id_of(start)) {
            word.store(origin, Relaxed);
        }
    }

    /// Appends the live blocks, up to the capacity of `blocks`: no code may allocate while it holds
    /// the lock.
    pub fn list_blocks(&self, blocks: &mut Vec<LiveBlock>) {
        let _locked = self.lock();
        self.pagemap.walk(|head, unit| match unit.kind() {
            Kind::Live => {
                if blocks.len() < blocks.capacity() {
                    let origin = self.pagemap.origin(head);
                    blocks.push(LiveBlock {
                        start: address(head),
                        bytes: self.geometry().size(unit.pages()),
                        origin: origin.map_or(0, |word| word.load(Relaxed)),
                    });
                }
                unit.len()
            }
            Kind::Cached | Kind::Empty | Kind::Hole | Kind::Busy => unit.len(),
            _ => 1,
        });
    }

    pub fn live_bytes(&self) -> Bytes {
        let state = self.state.lock();
        state.space.geometry.bytes(state.space.ledger.live())
    }

    /// One wait for another thread, after `waits` others: yields at first, then sleeps.
    pub fn wait_for_thread(&self, waits: u32) {
        if waits < YIELDS {
            self.vm.yield_now();
        } else {
            self.vm.sleep();
        }
    }

    /// `None` while the lock is held: by code that the caller, a signal handler, has interrupted, or in a
    /// forked child by a thread that it does not have.
    pub fn live_bytes_unless_locked(&self) -> Option<Bytes> {
        let state = self.state.try_lock()?;
        Some(state.space.geometry.bytes(state.space.ledger.live()))
    }

    /// All zero if the state is unusable after a fork.
    pub fn stats(&self) -> Stats {
        if self.ownership.load(Relaxed) == Ownership::Unusable {
            return Stats::default();
        }
        self.stats_of(&self.state.lock())
    }

    /// As `live_bytes_unless_locked`.
    pub fn stats_unless_locked(&self) -> Option<Stats> {
        if self.ownership.load(Relaxed) == Ownership::Unusable {
            return Some(Stats::default());
        }
        Some(self.stats_of(&*self.state.try_lock()?))
    }

    fn stats_of(&self, state: &State) -> Stats {
        let ledger = &state.space.ledger;
        let mut fallbacks = state.counters.fallbacks;
        if let Some(count) = fallbacks.get_mut(Fallback::AttributesReset as usize) {
            *count = self.resets.load(Relaxed);
        }
        let bytes = |pages: Pages| state.space.geometry.bytes(pages).count();
        Stats {
            enabled: true,
            asks_for_huge_pages: false,
            decay_ms: 0,
            live_blocks: ledger.live_blocks,
            live_bytes: bytes(ledger.live()),
            cached_bytes: bytes(ledger.cached() + ledger.moving() + ledger.purging()),
            slack_bytes: bytes(ledger.slack()),
            peak_live_bytes: bytes(ledger.peak_live()),
            recycled_bytes_total: bytes(ledger.totals.recycled),
            moved_bytes_total: bytes(ledger.totals.moved),
            fresh_bytes_total: bytes(ledger.totals.fresh),
            returned_bytes_total: bytes(ledger.totals.returned),
            fallbacks,
        }
    }
}

/// The later of the last operation's time and the clock. An operation reads the clock and then
/// waits for the lock. Meanwhile another operation may read a later time and take the lock first.
fn later(last: u32, clock: u32) -> u32 {
    if last.wrapping_sub(clock) < FUTURE_MS {
        last
    } else {
        clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::geometry::Contents;
    use crate::testing::world::World;

    #[test]
    fn an_older_clock_value_does_not_move_the_time_back() {
        for now in [0, 7, u32::MAX - 5, 1 << 31] {
            for late in [0, 1, FUTURE_MS - 1] {
                assert_eq!(later(now, now.wrapping_sub(late)), now);
            }
            for passed in [1, 300, 1 << 31] {
                let next = now.wrapping_add(passed);
                assert_eq!(later(now, next), next);
            }
        }
    }

    #[test]
    fn a_live_block_keeps_its_origin_and_a_freed_one_is_not_listed() {
        let world = World::new();
        let alloc = |bytes| world.recycler.alloc_block(bytes, Contents::Any).unwrap();
        let (first, second) = (alloc(3 << 20), alloc(1 << 20));
        world.recycler.set_origin(first, 7);
        world.recycler.set_origin(second, 9);
        world.free_at(second);
        let mut blocks = Vec::with_capacity(8);
        world.recycler.list_blocks(&mut blocks);
        let expected = LiveBlock {
            start: first,
            bytes: 3 << 20,
            origin: 7,
        };
        assert_eq!(blocks, [expected]);
    }

    #[test]
    fn no_more_blocks_are_listed_than_the_capacity() {
        let world = World::new();
        for _ in 0..3 {
            let block = world.recycler.alloc_block(1 << 20, Contents::Any);
            assert!(block.is_some());
        }
        let mut blocks = Vec::with_capacity(2);
        world.recycler.list_blocks(&mut blocks);
        assert_eq!(blocks.len(), 2);
    }
}
