//! The operations on virtual memory that the recycler needs. `linux.rs` implements them with system
//! calls; the tests implement them with a model that can refuse each call.

use crate::core::pagemap::Metadata;

/// The result of moving pages from a source range to a target range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// The pages are at the target. The source is mapped and has no pages.
    Done,
    /// The pages are at the target. The source is unmapped, and another thread may map it.
    DoneSourceGone,
    /// No page moved. The source is unchanged; the target is mapped and has no pages.
    Refused,
    /// No page moved. The target is unmapped, and another thread may map it.
    TargetLost,
}

/// The result of replacing a mapping by a fresh one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapOutcome {
    /// The range is mapped with default attributes and has no pages.
    Done,
    /// The range is unchanged.
    Refused,
    /// The range is unmapped, and another thread may map it.
    Lost,
}

/// Operations on private anonymous memory. Addresses and sizes are multiples of `UNIT_BYTES` unless
/// a method says otherwise.
///
/// A thread **owns** a range while no other thread may access or change it. This holds in three
/// cases:
/// - the thread set the extent to `Busy` or `Purging`, under the lock; it may then release the
///   lock;
/// - the program passed the live block to `free` or `realloc` in this thread;
/// - the system has just mapped the range, and no other thread has its address.
///
/// # Safety
/// The allocator hands this memory to programs, so an implementation must guarantee:
/// - `reserve` and `reserve_at` return memory that is unused, readable, writable, and zero;
/// - no method changes memory outside the ranges in its arguments;
/// - `MoveOutcome` and `RemapOutcome` state the actual result.
pub unsafe trait Vm: Metadata {
    /// An address near those that the system chooses for mappings without a hint; 0 if mapping
    /// fails.
    fn default_address(&self) -> usize;
    /// Makes a new mapping, near `hint` (0: anywhere).
    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize>;
    /// Makes a new mapping at this address. False: the range is in use, or the system refuses.
    fn reserve_at(&self, address: usize, bytes: usize) -> bool;
    /// Replaces a mapping by a fresh one with default attributes.
    ///
    /// # Safety
    /// The caller owns the range, and its contents are not needed.
    unsafe fn remap_fresh(&self, address: usize, bytes: usize) -> RemapOutcome;
    /// Unmaps a range. False: the system refuses.
    ///
    /// # Safety
    /// The caller owns the range, and no code accesses it after the call.
    unsafe fn unmap(&self, address: usize, bytes: usize) -> bool;
    /// Drops the pages (page granularity). The range stays mapped and reads as zero.
    ///
    /// # Safety
    /// The caller owns the pages, and their contents are not needed.
    unsafe fn discard(&self, address: usize, bytes: usize) -> bool;
    /// Lets the system drop the pages when memory is short, until they are written again. They read as before or as
    /// zero. The system may refuse.
    ///
    /// # Safety
    /// The caller owns the range, and its contents are not needed.
    unsafe fn offer(&self, address: usize, bytes: usize);
    /// Moves the pages of a range. The mapping at the target is replaced.
    ///
    /// # Safety
    /// The caller owns both ranges. They do not overlap, and the contents of the target are not
    /// needed.
    unsafe fn move_pages(&self, from: usize, to: usize, bytes: usize) -> MoveOutcome;
    /// The system may refuse memory to this process: a limit is set.
    fn is_limited(&self) -> bool;
    /// The bytes that the process may still map under its limits.
    fn left_bytes(&self) -> u64;
    /// The number of VMAs that a process may have.
    fn max_map_count(&self) -> u32;
    /// Blocks that fill their units request huge pages, which fresh mappings do not request.
    fn full_blocks_use_huge_pages(&self) -> bool;
    /// The most that one page fault can populate, if that is more than a page: a power of two below
    /// `UNIT_BYTES`.
    fn fault_bytes(&self) -> usize;
    /// Requests huge pages.
    ///
    /// # Safety
    /// The caller owns the range.
    unsafe fn advise_huge(&self, address: usize, bytes: usize);
    /// True if one VMA covers the range (page granularity). An attribute that a program sets on a
    /// part of the range splits the VMA. The call changes nothing, whatever is mapped there.
    fn is_one_vma(&self, address: usize, bytes: usize) -> bool;
    /// Restores the default protection, memory lock, memory policy and advice. The advice on huge
    /// pages is restored only where every mapping requests them.
    ///
    /// False: the system refuses, `mlockall(MCL_FUTURE)` locks new mappings, or the range is shared
    /// or maps a file. A child forked during the call may lack the contents of the range. After a
    /// refusal later children may lack them, too.
    ///
    /// # Safety
    /// The caller owns the range (page granularity), and no child needs its contents.
    unsafe fn reset_attributes(&self, address: usize, bytes: usize) -> bool;
    /// Removes guard regions, which do not split a VMA. The kernel visits each page.
    ///
    /// # Safety
    /// The caller owns the range (page granularity).
    unsafe fn remove_guards(&self, address: usize, bytes: usize);
    /// Makes a range (page granularity) read as zero, without faulting in pages that are not
    /// resident.
    ///
    /// # Safety
    /// The caller owns the range, and it is mapped readable and writable.
    unsafe fn zero(&self, address: usize, bytes: usize);
    /// Faults in one page that is not resident.
    ///
    /// # Safety
    /// The caller owns the page, and it is mapped readable and writable.
    unsafe fn fault_in(&self, address: usize);
    /// Copies bytes.
    ///
    /// # Safety
    /// Both ranges are mapped and do not overlap. The caller owns the target, and no thread writes
    /// to the source.
    unsafe fn copy(&self, from: usize, to: usize, bytes: usize);
    /// Milliseconds (wrapping).
    fn now_ms(&self) -> u32;
    /// The processor that runs the calling thread; constant where the system does not report it.
    fn cpu(&self) -> u32;
    /// Yields the processor to a thread whose system call the caller waits for.
    fn yield_now(&self);

    /// Sleeps a moment, so that threads of a lower priority run, too.
    fn sleep(&self) {
        self.yield_now();
    }
}
