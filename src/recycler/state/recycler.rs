//! The recycler over any map: its state, its lock, and the look at a block.
//!
//! An extent is in one thread's hands (`Busy`, `Purging` on its way out, a block that is not published yet, or a live one
//! `PINNED` while its slack goes back) while that thread is in a system call, so the lock is never held across one: the model of the kernel in the tests looks, at each call.

use crate::core::amount::Bytes;
use crate::core::extent::Extent;
use crate::core::geometry::Geometry;
use crate::core::pagemap::Pagemap;
use crate::core::unit::{id_of, Cpu, Kind, UnitId, UNIT_BYTES};
use crate::os::throttle::ConcurrencyLimit;
use crate::os::vm::Vm;
use crate::policy::age::later;
use crate::state::address_window::AddressWindow;
use crate::state::counters::Counters;
use crate::state::space::Space;
use crate::state::vma_count::VmaCount;
use flarena_shared::defaults::GOVERNOR_START_LARGE_BYTES;
use flarena_sys::sync::lock::{Guard, Lock};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering::Relaxed,
};

/// After a fork nothing is left to do: the books are this process's.
pub const SETTLED: u8 = 0;
/// The books are the parent's: `settle` makes them the child's.
pub const INHERITED: u8 = 1;
/// The books are not to be trusted, in this process and its children.
pub const GIVEN_UP: u8 = 2;

/// One in a call, and one on its way there. Two processors served as many blocks with one to four.
const CONCURRENT_PROBES: u32 = 2;

pub struct State {
    pub space: Space,
    pub counters: Counters,
    pub window: AddressWindow,
    /// A governor ages the cache; it is started when large blocks hold much.
    pub governed: bool,
    /// The system refused a thread: until there is one nothing ages the cache.
    pub ungovernable: bool,
    /// Moves that lost their target; after a few of them moving stops.
    pub lost_targets: u32,
    pub vma_count: VmaCount,
    /// The slack that is left is not to be had: the program locked it.
    pub slack_refused: bool,
}

pub struct Recycler<M: Vm> {
    pub map: M,
    pub pagemap: &'static Pagemap,
    pub state: Lock<State>,
    page_shift: AtomicU32,
    /// Large blocks once held `GOVERNOR_START_LARGE_BYTES`, or left `GOVERNOR_START_CACHED_BYTES` behind.
    pub wants_governor_thread: AtomicBool,
    /// `SETTLED`, or what a fork made of the books.
    pub forked: AtomicU8,
    /// A page before the window that is nobody's ever; 0: there is none.
    pub reference_page: AtomicUsize,
    /// How often attributes were reset.
    pub resets: AtomicU64,
    /// Freed blocks of several mappings whose marks were to be taken off.
    pub multi_vma_frees: AtomicU64,
    /// For questions about a block's mapping.
    pub probe_limit: ConcurrencyLimit,
    /// For frees that set marks back.
    pub reset_limit: ConcurrencyLimit,
    /// When a call of the program last aged the cache, where no governor does.
    pub decayed_ms: AtomicU32,
}

pub type Locked<'a> = Guard<'a, State>;

impl State {
    /// Mappings run short: nothing is to move.
    pub fn has_too_many_vmas(&mut self, allowed: u32) -> bool {
        self.vma_count.is_near_limit(&self.space, allowed)
    }
}

impl<M: Vm> Recycler<M> {
    pub const fn new(map: M, pagemap: &'static Pagemap) -> Self {
        let state = State {
            space: Space::new(pagemap),
            counters: Counters::new(),
            window: AddressWindow::new(),
            governed: false,
            ungovernable: false,
            lost_targets: 0,
            vma_count: VmaCount::new(),
            slack_refused: false,
        };
        Recycler {
            map,
            pagemap,
            state: Lock::new(state),
            page_shift: AtomicU32::new(12),
            wants_governor_thread: AtomicBool::new(false),
            forked: AtomicU8::new(SETTLED),
            reference_page: AtomicUsize::new(0),
            resets: AtomicU64::new(0),
            multi_vma_frees: AtomicU64::new(0),
            probe_limit: ConcurrencyLimit::new(CONCURRENT_PROBES),
            reset_limit: ConcurrencyLimit::new(1),
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

    /// The lock, with the time of the operation that takes it.
    pub fn lock(&self) -> Locked<'_> {
        self.lock_at(self.map.now_ms())
    }

    /// For an operation that had to know the time before.
    #[inline]
    pub fn lock_at(&self, now_ms: u32) -> Locked<'_> {
        let cpu = Cpu::new(self.map.cpu());
        let mut state = self.state.lock();
        state.space.now_ms = later(state.space.now_ms, now_ms);
        state.space.cpu = cpu;
        state.space.fault_bytes = Bytes::new(self.map.fault_bytes() as u64);
        state
    }

    /// Debug builds compare the ledger with the pagemap, which was written independently of it.
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
            self.wants_governor_thread.store(true, Relaxed);
        }
    }

    /// The live block that begins at this address.
    #[inline]
    pub fn find(&self, start: usize) -> Option<Extent> {
        if !start.is_multiple_of(UNIT_BYTES) {
            return None;
        }
        let head = u32::try_from(start / UNIT_BYTES).ok()?;
        let unit = self.pagemap.find(head)?;
        unit.begins_block().then(|| Extent::new(head, unit.len()))
    }

    /// True for an address in memory of ours: no other allocator can have handed it out. Of an extent in the
    /// hands of a thread this is not known, as its addresses may be somebody else's already.
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

    /// The units between a block's first and last keep the kind that they had before.
    #[cold]
    fn is_inside_block(&self, id: UnitId) -> bool {
        let _state = self.state.lock();
        let before = (0..=id)
            .rev()
            .map_while(|id| Some((id, self.pagemap.find(id)?)));
        let mut ours = before.take_while(|(_, unit)| unit.kind() != Kind::None);
        let head = ours.find(|(_, unit)| unit.begins_block());
        head.is_some_and(|(head, unit)| id < head + unit.len())
    }

    pub fn size_at(&self, start: usize) -> Option<usize> {
        let extent = self.find(start)?;
        Some(self.geometry().size(self.pagemap.unit(extent.head).pages()))
    }
}
