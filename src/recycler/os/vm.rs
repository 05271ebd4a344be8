//! What the recycler asks of the system. The kernel answers in `kernel.rs`, a model of it in the tests.

use crate::core::pagemap::Metadata;

/// How a move of pages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// The pages are at the target; the source is mapped and empty.
    Done,
    /// The pages are at the target; the source is no longer ours.
    DoneSourceGone,
    /// Nothing moved, both ranges are as they were; the target is mapped and empty.
    Refused,
    /// Nothing moved, and the target is no longer ours.
    TargetLost,
}

/// How mapping a range anew ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapOutcome {
    /// It has pristine flags, and nothing is in it.
    Done,
    /// It is as it was.
    Refused,
    /// Nothing of ours is there any more.
    Lost,
}

/// Map operations on private anonymous memory. Addresses and sizes are multiples of `UNIT_BYTES` unless said
/// otherwise.
///
/// A range is **owned** by the thread that alone may say what is done to it: its extent is `Busy` or `Purging` in this
/// thread's hands, or it is a live block that the program has given back (`free`) or away (`realloc`), or the
/// system mapped it just now and nobody knows of it. Taking an extent out of a pool under the lock makes it so; the lock
/// need not be held from then on.
///
/// # Safety
/// `reserve` and `reserve_at` answer with memory that nobody else has, which can be read and written, and reads as
/// zero. No method touches memory beyond the ranges that it is given. The answer of `move_pages` tells truly where the
/// pages are, that of `renew` whether the range is still ours. Programs are given this memory as malloc's.
pub unsafe trait Vm: Metadata {
    /// An address as the system gives them to those who name none; 0 when it gives none.
    fn default_address(&self) -> usize;
    /// A new mapping, near `hint` (0: anywhere).
    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize>;
    /// A new mapping at this address, or none when something is there.
    fn reserve_at(&self, address: usize, bytes: usize) -> bool;
    /// Replaces an empty mapping by one with pristine flags.
    ///
    /// # Safety
    /// The caller owns the range, and nobody needs what is in it.
    unsafe fn remap_fresh(&self, address: usize, bytes: usize) -> RemapOutcome;
    /// Unmaps.
    ///
    /// # Safety
    /// The caller owns the range, and from now on counts on nothing being there.
    unsafe fn unmap(&self, address: usize, bytes: usize) -> bool;
    /// Drops the pages (page granularity); the mapping stays and reads as zero.
    ///
    /// # Safety
    /// The caller owns the pages, and nobody needs what is in them.
    unsafe fn discard(&self, address: usize, bytes: usize) -> bool;
    /// Moves the pages; what was mapped at the target is gone.
    ///
    /// # Safety
    /// The caller owns both ranges, which do not overlap; nobody needs what is in the target.
    unsafe fn move_pages(&self, from: usize, to: usize, bytes: usize) -> MoveOutcome;
    /// How many mappings a process may have.
    fn max_map_count(&self) -> u32;
    /// Blocks that fill their units are to ask for huge pages, which fresh mappings have not.
    fn full_blocks_use_huge_pages(&self) -> bool;
    /// What a fault may bring at most, where that is more than a page; a power of two below `UNIT_BYTES`.
    fn fault_bytes(&self) -> usize;
    /// Asks for huge pages.
    ///
    /// # Safety
    /// The caller owns the range.
    unsafe fn advise_huge(&self, address: usize, bytes: usize);
    /// True when one mapping covers the range (page granularity): what a user did to a part of it, but not
    /// to all of it, would have split the mapping. Changes nothing, whatever is there.
    fn is_one_vma(&self, address: usize, bytes: usize) -> bool;
    /// Undoes what a user may have done to a range: protection, locks, memory policy, advice; that on huge
    /// pages only where every mapping asks. False when the system refuses, when new mappings are to be locked, or when
    /// it is not private and anonymous. For a moment forked children do not get what is in it; refused, they may never.
    ///
    /// # Safety
    /// The caller owns the range (page granularity), and children need nothing that is in it.
    unsafe fn reset_attributes(&self, address: usize, bytes: usize) -> bool;
    /// Takes guards off the range: they split no mapping. Costs a look at each page.
    ///
    /// # Safety
    /// The caller owns the range (page granularity).
    unsafe fn remove_guards(&self, address: usize, bytes: usize);
    /// Makes a range (page granularity) read as zero, without touching pages that are not resident.
    ///
    /// # Safety
    /// The caller owns the range, and it is mapped for reading and writing.
    unsafe fn zero(&self, address: usize, bytes: usize);
    /// # Safety
    /// Both ranges are mapped and do not overlap; the caller owns the target, and nobody writes to the source meanwhile.
    unsafe fn copy(&self, from: usize, to: usize, bytes: usize);
    fn now_ms(&self) -> u32;
    /// The processor that the calling thread runs on; always the same where nobody tells.
    fn cpu(&self) -> u32;
    /// Another thread is in a system call that the calling one waits for.
    fn yield_now(&self);
}
