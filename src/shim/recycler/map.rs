//! What the recycler asks of the system. The kernel answers in `kernel.rs`, a model of it in the tests.

use super::pagemap::Metadata;

/// How a move of pages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// The pages are at the target; the source is mapped and empty.
    Done,
    /// The pages are at the target; the source is no longer ours.
    DoneSourceGone,
    /// Nothing moved, both ranges are as they were; the target is mapped and empty.
    Refused,
    /// Nothing moved, and the target is no longer ours.
    TargetLost,
}

/// Map operations on private anonymous memory. Addresses and sizes are multiples of `UNIT_BYTES`
/// unless said otherwise; every range is owned by the caller.
pub trait Map: Metadata {
    /// A new mapping, near `hint` (0: anywhere).
    fn reserve(&self, hint: usize, bytes: usize) -> Option<usize>;
    /// A new mapping at this address, or none when something is there.
    fn reserve_at(&self, address: usize, bytes: usize) -> bool;
    /// Replaces an empty mapping by one with pristine flags.
    fn renew(&self, address: usize, bytes: usize) -> bool;
    /// Unmaps.
    fn release(&self, address: usize, bytes: usize) -> bool;
    /// Drops the pages (page granularity); the mapping stays and reads as zero.
    fn discard(&self, address: usize, bytes: usize) -> bool;
    fn shift(&self, from: usize, to: usize, bytes: usize) -> Shift;
    /// How many mappings a process may have.
    fn mappings_allowed(&self) -> u32;
    /// The system makes huge pages unasked: fresh mappings decline them, and what fills them is to ask.
    fn has_huge_unasked(&self) -> bool;
    /// Asks for huge pages.
    fn advise_huge(&self, address: usize, bytes: usize);
    /// True when one mapping covers the range (page granularity): what a user did to a part of it, but not
    /// to all of it, would have split the mapping.
    fn is_one_mapping(&self, address: usize, bytes: usize) -> bool;
    /// Undoes what a user may have done to a range: protection, locks, memory policy, advice but that on huge
    /// pages. False when the system refuses, or new mappings are to be locked.
    fn reset_attributes(&self, address: usize, bytes: usize) -> bool;
    /// The range holds no file and is shared with nobody. For a moment forked children do not get it.
    fn is_private_anonymous(&self, address: usize, bytes: usize) -> bool;
    /// Takes guards off the range: they split no mapping. Costs a look at each page.
    fn remove_guards(&self, address: usize, bytes: usize);
    /// Makes a range (page granularity) read as zero, without touching pages that are not resident.
    fn zero(&self, address: usize, bytes: usize);
    fn copy(&self, from: usize, to: usize, bytes: usize);
    fn now_ms(&self) -> u32;
}
