//! Makes the recycler usable in a forked child. No lock is held across the fork.
//!
//! A child's memory is a consistent snapshot: for each thread of the parent it contains all writes
//! up to some point (docs/design/fork.md). So the child can trust the value of the lock. If it is
//! free, the state is consistent, except for extents that threads of the parent owned. If a thread
//! of the parent holds it, the state may be half written; the child then gives the recycler up, and
//! its live blocks stay valid. The parent quiesces before a fork, so this is rare.

use crate::core::extent_pool::{InFlightInParent, List};
use crate::core::geometry::Pages;
use crate::core::page_ledger::Column;
use crate::core::unit::{Extent, Flags, FreeKind, Kind};
use crate::os::vm::Vm;
use crate::state::recycler::{Governor, Ownership, Recycler, State};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

impl<V: Vm> Recycler<V> {
    /// False: the recycler is given up and serves no more requests.
    ///
    /// # Safety
    /// The caller is the only thread of a forked child.
    pub unsafe fn mark_inherited(&self) -> bool {
        self.wants_governor_thread.store(false, Relaxed);
        self.governor.store(Governor::NotStarted, Relaxed);
        self.state.resume_after_fork();
        self.probe_limit.reset();
        self.reset_limit.reset();
        // SAFETY: the child has no other thread that could release the lock.
        let orphan = unsafe { self.state.take_over_after_fork() };
        if orphan.is_some() || self.ownership.load(Relaxed) == Ownership::Unusable {
            self.ownership.store(Ownership::Unusable, Relaxed);
            return false;
        }
        self.ownership.store(Ownership::Inherited, Relaxed);
        true
    }

    /// Adopts the inherited state at the child's first request: most children execute another
    /// program and never make one. False: the recycler is given up, and its state must not be read.
    #[cold]
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
        state.unmapping_units = 0;
        let mut in_flight = state.take_in_flight();
        state.space.tolerance.near_limit = false;
        // The state is consistent from here on, so other threads of the child may lock it. This
        // thread unmaps the extents that the parent's threads were unmapping.
        self.ownership.store(Ownership::Own, Release);
        while let Some(head) = in_flight.first() {
            let unit = self.pagemap.unit(head);
            in_flight.remove(self.pagemap, unit);
            let extent = Extent::new(head, unit.len());
            state = self.unmap(state, extent);
        }
        drop(state);
        self.purge_all();
    }

    /// Frees a block after the recycler was given up.
    pub fn free_without_state(&self, extent: Extent) {
        let (start, bytes) = (extent.start(), extent.bytes());
        // Each unit: later mappings of other code at these addresses are not the recycler's.
        self.pagemap.set_kind_of_each(extent, Kind::None);
        // SAFETY: the program passed the block to `free`, and the pagemap no longer contains it.
        if !unsafe { self.vm.unmap(start, bytes) } {
            // SAFETY: the program passed the block to `free`, and the range is still mapped.
            unsafe { self.vm.discard(start, bytes) };
        }
    }
}

impl State {
    /// Takes the extents that threads of the parent owned. The calling thread unmaps the `Purging`
    /// ones. The addresses of the others may belong to another thread by now: they are forgotten.
    fn take_in_flight(&mut self) -> List<InFlightInParent> {
        let mut in_flight = List::new();
        let mut pages = Pages::NONE;
        let space = &mut self.space;
        space.pagemap.walk(|head, unit| {
            let extent = Extent::new(head, unit.len());
            match unit.kind() {
                Kind::Purging => {
                    in_flight.push_last(space.pagemap, head, unit);
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
        in_flight
    }

    /// Completes what threads of the parent began on pinned blocks.
    pub fn finish_pinned(&mut self) {
        while let Some(head) = self.space.pinned.first() {
            let unit = self.space.unit(head);
            self.space.unpin(head);
            let extent = Extent::new(head, unit.len());
            if unit.has(Flags::FREED) {
                unit.remove_flags(Flags::FREED);
                self.finish_freed(extent);
            } else {
                // Its slack may be purged or not, so it is recorded as slack again.
                let full = self.space.geometry.pages_per_unit();
                self.space.restore_slack(extent, full, Column::System);
            }
        }
    }

    fn finish_freed(&mut self, extent: Extent) {
        if self.space.unit(extent.head).has(Flags::ALTERED) {
            // Its attributes must not reach another block: it is unmapped with the in-flight
            // extents.
            self.space.end_block(extent, Column::Purging);
            self.space.pagemap.label(extent, Kind::Purging);
        } else {
            self.space.end_block(extent, Column::Cached);
            self.space.insert_free(extent, FreeKind::Cached);
        }
    }
}
