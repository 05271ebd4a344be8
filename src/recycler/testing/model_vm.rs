//! The recycler's system calls on the model kernel, each of which can be refused.

use crate::core::unit::UNIT_BYTES;
use crate::os::vm::{MoveOutcome, RemapOutcome, Vm};
use crate::testing::model::{pages_of, ModelKernel, LOWEST, PAGE};
use crate::testing::scheduler::pause;
use crate::testing::vma_changes::VmaChange;

/// Lets other threads run before and after a call.
struct Call;

impl Call {
    fn begin(memory: &ModelKernel) -> Call {
        memory.assert_unlocked();
        pause();
        Call
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        pause();
    }
}

// SAFETY: the addresses are plain numbers, and no memory is accessed through them.
unsafe impl Vm for ModelKernel {
    fn default_address(&self) -> usize {
        LOWEST
    }

    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize> {
        let _call = Call::begin(self);
        if self.refusals.next() {
            return None;
        }
        let free = |start: usize| {
            Self::units(start, bytes).all(|unit| !self.mapped.borrow().contains_key(&unit))
        };
        self.next
            .set(self.next.get().max(LOWEST) + bytes + UNIT_BYTES);
        let start = if hint != 0 && free(hint) {
            hint
        } else {
            self.next.get() - bytes
        };
        self.map(start, bytes);
        Some(start)
    }

    fn reserve_at(&self, address: usize, bytes: usize) -> bool {
        let _call = Call::begin(self);
        if bytes == PAGE {
            self.reference_page.set(Some(address));
            return !self.refusals.next();
        }
        let taken = Self::units(address, bytes).any(|u| self.mapped.borrow().contains_key(&u));
        if taken || self.refusals.next() {
            return false;
        }
        self.map(address, bytes);
        true
    }

    unsafe fn remap_fresh(&self, address: usize, bytes: usize) -> RemapOutcome {
        let _call = Call::begin(self);
        let refused = self.refusals.next();
        if refused && !(self.old_kernel.get() && self.refusals.next()) {
            return RemapOutcome::Refused;
        }
        for unit in Self::units(address, bytes) {
            self.mapped.borrow_mut().remove(&unit);
        }
        self.drop_pages(address, bytes);
        if refused {
            self.vma_changes.forget(pages_of(address, bytes), |_| true);
            return RemapOutcome::Lost;
        }
        self.map(address, bytes);
        RemapOutcome::Done
    }

    unsafe fn unmap(&self, address: usize, bytes: usize) -> bool {
        let _call = Call::begin(self);
        self.assert_mapped(address, bytes);
        if self.refusals.next() {
            return false;
        }
        for unit in Self::units(address, bytes) {
            self.mapped.borrow_mut().remove(&unit);
        }
        self.vma_changes.forget(pages_of(address, bytes), |_| true);
        self.drop_pages(address, bytes);
        true
    }

    unsafe fn discard(&self, address: usize, bytes: usize) -> bool {
        let _call = Call::begin(self);
        self.assert_mapped(address, bytes);
        if self.refusals.next() {
            return false;
        }
        self.drop_pages(address, bytes);
        true
    }

    unsafe fn offer(&self, address: usize, bytes: usize) {
        self.assert_unlocked();
        self.assert_mapped(address, bytes);
        self.offered.set(self.offered.get() + bytes);
    }

    unsafe fn move_pages(&self, from: usize, to: usize, bytes: usize) -> MoveOutcome {
        let _call = Call::begin(self);
        self.assert_mapped(from, bytes);
        self.assert_mapped(to, bytes);
        let page = |address: usize| address / PAGE;
        let there = self
            .pages
            .borrow()
            .range(page(to)..page(to + bytes))
            .next()
            .is_some();
        assert!(!there, "the target has resident pages");
        if self.old_kernel.get() && !self.are_one_vma(from, bytes) {
            return MoveOutcome::Refused;
        }
        if self.refusals.next() {
            // One call of the model loses the target or the source, never both.
            if self.old_kernel.get() || !self.refusals.next() {
                return MoveOutcome::Refused;
            }
            for unit in Self::units(to, bytes) {
                self.mapped.borrow_mut().remove(&unit);
            }
            return MoveOutcome::TargetLost;
        }
        let mut pages = self.pages.borrow_mut();
        for index in 0..bytes / PAGE {
            if let Some(value) = pages.remove(&(page(from) + index)) {
                pages.insert(page(to) + index, value);
            }
        }
        self.vma_changes.forget(pages_of(to, bytes), |_| true);
        self.vma_changes.copy(pages_of(from, bytes), page(to));
        self.vma_changes
            .forget(pages_of(from, bytes), |change| change == VmaChange::Guard);
        for (from, to) in Self::units(from, bytes).zip(Self::units(to, bytes)) {
            let moved = self.mapped.borrow()[&from] + from as isize - to as isize;
            self.mapped.borrow_mut().insert(to, moved);
        }
        if self.old_kernel.get() && self.refusals.next() {
            for unit in Self::units(from, bytes) {
                self.mapped.borrow_mut().remove(&unit);
            }
            return MoveOutcome::DoneSourceGone;
        }
        MoveOutcome::Done
    }

    fn is_limited(&self) -> bool {
        self.units_allowed.get().is_some()
    }

    fn left_bytes(&self) -> u64 {
        self.assert_unlocked();
        let allowed = self.units_allowed.get().unwrap_or(usize::MAX);
        let left = allowed.saturating_sub(self.mapped_units());
        left.saturating_mul(UNIT_BYTES) as u64
    }

    fn max_map_count(&self) -> u32 {
        self.mappings_allowed.get().unwrap_or(u32::MAX)
    }

    fn full_blocks_use_huge_pages(&self) -> bool {
        true
    }

    fn fault_bytes(&self) -> usize {
        self.folio_pages.get() * PAGE
    }

    unsafe fn advise_huge(&self, address: usize, bytes: usize) {
        self.assert_unlocked();
        self.advised_huge.set(true);
        self.assert_mapped(address, bytes);
    }

    fn is_one_vma(&self, address: usize, bytes: usize) -> bool {
        assert!(bytes > 0, "the kernel refuses an empty range");
        self.assert_unlocked();
        self.are_one_vma(address, bytes)
    }

    unsafe fn reset_attributes(&self, address: usize, bytes: usize) -> bool {
        self.assert_unlocked();
        self.assert_mapped(address, bytes);
        if self.refusals.next() {
            return false;
        }
        self.vma_changes.forget(pages_of(address, bytes), |change| {
            change == VmaChange::Resettable
        });
        let changes = self.vma_changes_on(address, bytes);
        changes.iter().all(|(_, change)| *change != VmaChange::File)
    }

    unsafe fn remove_guards(&self, address: usize, bytes: usize) {
        self.assert_unlocked();
        self.assert_mapped(address, bytes);
        self.yields_before_guards.set(self.yields.get());
        self.vma_changes.forget(pages_of(address, bytes), |change| {
            change == VmaChange::Guard
        });
    }

    unsafe fn zero(&self, address: usize, bytes: usize) {
        self.assert_unlocked();
        self.assert_mapped(address, bytes);
        for page in address / PAGE..(address + bytes) / PAGE {
            if let Some(value) = self.pages.borrow_mut().get_mut(&page) {
                *value = 0;
            }
        }
    }

    unsafe fn fault_in(&self, address: usize) {
        self.assert_unlocked();
        self.assert_mapped(address, 1);
        self.fault(address / PAGE);
    }

    unsafe fn copy(&self, from: usize, to: usize, bytes: usize) {
        self.assert_mapped(from, bytes);
        self.assert_mapped(to, bytes);
        let mut pages = self.pages.borrow_mut();
        for index in 0..bytes.div_ceil(PAGE) {
            if let Some(value) = pages.get(&(from / PAGE + index)).copied() {
                pages.insert(to / PAGE + index, value);
            }
        }
    }

    fn cpu(&self) -> u32 {
        self.cpu.get()
    }

    fn now_ms(&self) -> u32 {
        self.now.get()
    }

    fn yield_now(&self) {
        self.yields.set(self.yields.get() + 1);
        if let Some(act) = self.at_yield.borrow().as_ref() {
            act();
        }
        pause();
    }
}
