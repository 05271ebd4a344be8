//! The page recycler: large blocks whose freed pages serve any later large block.
//!
//! # The idea
//!
//! A program that frees 100 blocks of 4 MiB and asks for one of 400 MiB has the pages, but not in one piece. A
//! heap gives them back and faults in fresh ones, or keeps them and grows. Here the pages move: `mremap` hangs
//! the page tables of the free blocks, each of which maps 2 MiB, below the new address. That costs a hundredth
//! of faulting the pages in, and the resident set does not rise.
//!
//! So memory is cut into **units** of 2 MiB. An **extent** is some neighbouring units that are one thing, and has
//! a kind. The **pagemap** tells the unit of an address; the **ledger** tells how many pages are handed out,
//! slack (behind the last page of a block), cached, or moving, and the **budget** what their sum may be: the
//! highest that was ever handed out, and a small tolerance. What is more is **purged**, the oldest first.
//!
//! # The kinds of extents, and the calls that move one to the other
//!
//! ```text
//!                 alloc: the cache has one that fits
//!        .-----------------------------------------------.
//!        |                                               |
//!        v                    free                       |
//!     +------+ ------------------------------------> +--------+
//!     | Live |    realloc: the end that is cut off   | Cached |
//!     +------+ ------------------------------------> +--------+
//!        ^  |  | free, attributes altered               |    | purge_excess: pages dropped
//!        |  |  '--------------------------.      gather |    | decay, trim: unmapped
//!        |  | realloc moves its pages     | moves pages |    |
//!        |  |   .-------------------------|-------------'    |
//!        |  v   v                         v                  v
//!        |  +-------------------------+  +--------------------------+
//!        '--| Busy: one thread's,     |  | Purging: the same, on    |
//! alloc has | which is in a system    |  | its way out and still    |
//! filled it | call                    |  | mapped                   |
//!           +-------------------------+  +--------------------------+
//!              ^ |       ^                  |                  |
//!        alloc | | moved | alloc:           | pages dropped    | unmapped
//!              | | away  | mapped again     v                  v
//!              | |       |              +-------+          +------+     the system keeps it: Stuck, for ever
//!              | '-------|------------> | Empty |          | Hole |     a move lost it: Gone, then None
//!              '---------|------------- +-------+          +------+     addresses not ours: None
//!                        '-----------------------------------'
//! ```
//!
//! What is on its way out (by decay and trim also what is `Empty`, or an altered block) is `Purging` instead of `Busy`: still
//! mapped, so that the child of a fork can end it. The free kinds wait in a pool each. No lock is held across a system
//! call: whoever enters one marks the extent `Busy` or `Purging`, or pins the live block whose slack it returns, and
//! books what happened when it comes back.
//!
//! # The files
//!
//! - books: `amount`, `unit`, `geometry`, `kind`, `list`, `pool`, `warm`, `pagemap`, `space`, `block`, `origin`, `ledger`, `budget`,
//!   `thrash`, `age`, `mappings`, `window`, `tally`, `stats`; in debug builds `check` compares the ledger with the pagemap.
//! - deeds: `engine` (the state and its lock), `alloc`, `address`, `gather`, `realloc`, `grow`, `relocate` (what two of them
//!   share), `free`, `attributes`, `witness`, `gate`, `purge`, `decay`, `unmap`, `slack`, `fork`.
//! - the system: `map` is what is asked of it, `kernel`, `syscalls`, `huge`, `limits`, `new_locks` and `zero` are Linux, `fake`
//!   and `fake_map` are a model for the tests.
//! - the front door: `instance` is the process's one recycler; `calls` is for malloc's family, `upkeep` for the governor and
//!   the reports. What they offer is listed at the end of this file.

#![cfg_attr(fuzzing, no_main)]

mod calls;
mod core;
mod instance;
mod ops;
mod os;
mod policy;
mod reuse;
mod state;
#[cfg(test)]
mod testing;
mod upkeep;

pub use calls::{
    accepts, alloc, alloc_early, alloc_zeroed, free, is_large, may_be_block, realloc, set_origin,
    usable_size, Realloc, ALIGN_MAX,
};
pub use instance::{
    after_fork_in_child, configure, disable, quiesce_for_fork, resume_after_fork, Config,
};
pub use state::counters::FALLBACK_NAMES;
pub use upkeep::{
    decay, decay_if_due, live_blocks, live_bytes, lock_is_held_by_me, set_governed,
    set_governor_unavailable, set_memory_limit, set_pressure, stats, trim, wants_governor,
};
