//! What a forked child makes of the recycler. No lock is held across the fork, and nothing waited for without end.
//!
//! The image that a child gets is a moment of the parent: of each thread's writes it holds all up to some
//! point, because the kernel copies with the address space locked, and a thread whose write comes too late
//! waits for that lock in a page fault. So the child may believe the lock's word. Free, the books are whole,
//! but for extents that threads had in their hands. Held by a thread that the child does not have, they
//! may be half written, and the child gives the recycler up: its live blocks stay what they are. Threads are asked
//! to keep out of the books for the moment of a fork, so this is rare.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::extent_list::{InFlightInParent, List};
use crate::core::page_ledger::Column;
use crate::core::unit::{Flags, FreeKind, Kind};
use crate::os::vm::Vm;
use crate::state::recycler::{Governor, Ownership, Recycler, State};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

impl<M: Vm> Recycler<M> {
    /// False: the recycler is given up, and serves no more.
    ///
    /// # Safety
    /// Only in the child of a fork, before it has other threads.
    pub unsafe fn mark_inherited(&self) -> bool {
        self.wants_governor_thread.store(false, Relaxed);
        self.state.resume_after_fork();
        self.probe_limit.reset();
        self.reset_limit.reset();
        // SAFETY: a child has no other thread before fork returns in it: nobody releases this lock meanwhile.
        let orphan = unsafe { self.state.take_over_after_fork() };
        if orphan.is_some() || self.ownership.load(Relaxed) == Ownership::Unusable {
            self.ownership.store(Ownership::Unusable, Relaxed);
            return false;
        }
        self.ownership.store(Ownership::Inherited, Relaxed);
        true
    }

    /// Makes what a child inherited its own, at its first request: most children execute another program and
    /// never make one. False: the recycler is given up, and its books are not to be looked at.
    #[inline]
    pub fn adopt_after_fork(&self) -> bool {
        match self.ownership.load(Acquire) {
            Ownership::Own => true,
            Ownership::Unusable => false,
            Ownership::Inherited => {
                self.adopt_inherited();
                true
            }
        }
    }

    #[cold]
    fn adopt_inherited(&self) {
        let mut state = self.lock();
        if self.ownership.load(Relaxed) != Ownership::Inherited {
            return;
        }
        state.finish_pinned();
        let ledger = &mut state.space.ledger;
        let (moving, purging) = (ledger.moving(), ledger.purging());
        ledger.transfer(Column::Moving, Column::System, moving);
        ledger.transfer(Column::Purging, Column::System, purging);
        let mut orphans = state.take_in_flight();
        state.space.tolerance.near_limit = false;
        state.governor = Governor::NotStarted;
        // Other threads of the child begin with the lock: the books are settled, what was the parent's goes meanwhile.
        self.ownership.store(Ownership::Own, Release);
        while let Some(head) = orphans.first() {
            let unit = self.pagemap.unit(head);
            orphans.remove(self.pagemap, unit);
            let len = unit.len();
            state = self.unmap(state, Extent::new(head, len));
        }
        drop(state);
        self.purge_all();
    }

    /// The end of a block whose recycler is given up.
    pub fn free_without_state(&self, extent: Extent) {
        let (start, bytes) = (extent.start(), extent.bytes());
        self.pagemap.unit(extent.head).set_kind(Kind::None);
        // SAFETY: the program gave the block back, and no book leads to it any more.
        if !unsafe { self.map.unmap(start, bytes) } {
            // SAFETY: as it was not unmapped it is still there, and nobody's.
            unsafe { self.map.discard(start, bytes) };
        }
    }
}

impl State {
    /// Takes the extents that were in the hands of the parent's threads. What these were unmapping is the calling
    /// thread's, which is to go on; of the rest nobody can tell whose the addresses are by now, and they are left alone.
    fn take_in_flight(&mut self) -> List<InFlightInParent> {
        let mut orphans = List::new();
        let mut pages = Pages::NONE;
        let space = &mut self.space;
        space.pagemap.walk(|head, unit| {
            let extent = Extent::new(head, unit.len());
            match unit.kind() {
                Kind::Purging => {
                    orphans.push_last(space.pagemap, head, unit);
                    pages += space.populated(extent);
                }
                Kind::Busy => space.forget(extent),
                Kind::Gone => {
                    space.forget(Extent::unit(head));
                    return 1;
                }
                Kind::None | Kind::Stuck => return 1,
                Kind::Live | Kind::Cached | Kind::Empty | Kind::Hole => {}
            }
            extent.len
        });
        space
            .ledger
            .transfer(Column::System, Column::Purging, pages);
        orphans
    }

    /// Ends what threads of the parent had begun on live blocks.
    pub fn finish_pinned(&mut self) {
        while let Some(head) = self.space.pinned.first() {
            let unit = self.space.unit(head);
            self.space.unpin(head);
            let extent = Extent::new(head, unit.len());
            if unit.has(Flags::FREED) {
                unit.remove_flags(Flags::FREED);
                self.finish_freed(extent);
            } else {
                // Its slack may or may not be gone: it is offered again.
                let full = self.space.geometry.pages_per_unit();
                self.space.restore_slack(extent, full, Column::System);
            }
        }
    }

    fn finish_freed(&mut self, extent: Extent) {
        if self.space.unit(extent.head).has(Flags::ALTERED) {
            // Its marks may reach nobody: it goes with the orphans.
            self.space.end_block(extent, Column::Purging);
            self.space.pagemap.label(extent, Kind::Purging);
        } else {
            self.space.end_block(extent, Column::Cached);
            self.space.insert_free(extent, FreeKind::Cached);
        }
    }
}
