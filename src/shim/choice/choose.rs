//! The choice between glibc and jemalloc, the dispatch to the one chosen, and the hot path's targets.
//!
//! The first allocation chooses, from the environment and the command line; the choice never changes, because a pointer
//! does not tell who gave it.
//!
//! The targets are one pointer for each of the four functions that programs call all the time. Until
//! the choice is made they make it; from then on they lead straight into the backend, so that a
//! small malloc costs a comparison with a constant and one jump through memory.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

use flarena_shared::settings::{Allocator, Settings};

use crate::choice::contract::{Backend, Calloc, Entries, Free, Malloc, Realloc};
use crate::choice::glibc::Glibc;
use crate::choice::jemalloc::{self, Jemalloc};
use flarena_recycler as recycler;
use flarena_sys::sync::once::Once;
use flarena_sys::{config, env};

const GLIBC: u8 = Once::FIRST;
const JEMALLOC: u8 = GLIBC + 1;

static CHOICE: Once = Once::new();

#[inline(always)]
pub fn is_jemalloc() -> bool {
    CHOICE.is(JEMALLOC)
}

/// Runs a function of the chosen backend.
macro_rules! dispatch {
    ($function:ident($($argument:expr),*)) => {{
        use $crate::choice::contract::Backend as _;
        if $crate::choice::choose::is_jemalloc() {
            $crate::choice::jemalloc::Jemalloc::$function($($argument),*)
        } else {
            $crate::choice::glibc::Glibc::$function($($argument),*)
        }
    }};
}
pub(crate) use dispatch;

/// Chooses, unless that is done. Any thread, any number of times.
#[inline]
pub fn choose() {
    if !CHOICE.is_made() {
        choose_with(Settings::allocator);
    }
}

/// True when a backend can serve, after choosing one if need be. False before libc has set itself
/// up: the resolver of an IFUNC may allocate then, and jemalloc's thread-local state has no values
/// yet. The recycler has none, and serves such calls.
#[inline]
pub fn is_ready() -> bool {
    if CHOICE.is_made() {
        return true;
    }
    let ready = !env::is_before_libc();
    if ready {
        choose();
    }
    ready
}

/// For a process whose malloc is not ours: glibc serves the odd call that reaches us.
pub fn stand_down() {
    choose_with(|_| Allocator::Glibc);
    recycler::disable();
}

#[cold]
fn choose_with(decide: impl FnOnce(&Settings) -> Allocator) {
    CHOICE.make(|| {
        let settings = config::settings();
        let (choice, entries) = match decide(settings) {
            Allocator::Glibc => (GLIBC, Glibc::ENTRIES),
            Allocator::Jemalloc => (JEMALLOC, Jemalloc::ENTRIES),
        };
        jemalloc::configure(choice == JEMALLOC, config::environment());
        configure_recycler(settings);
        install(entries);
        choice
    });
}

fn configure_recycler(settings: &Settings) {
    recycler::configure(recycler::Config {
        min_bytes: usize::try_from(settings.recycle_min_bytes).unwrap_or(usize::MAX),
        decay_ms: settings.decay_ms,
        enabled: settings.recycle,
        memory_limit: settings.memory_limit_bytes,
        huge: settings.huge,
    });
}

/// The allocator that serves.
pub fn allocator_name() -> &'static str {
    if is_jemalloc() {
        Allocator::Jemalloc
    } else {
        Allocator::Glibc
    }
    .name()
}

/// A function pointer that is set once.
pub struct Target<F>(AtomicPtr<()>, PhantomData<F>);

impl<F: Copy> Target<F> {
    /// Any thread sees the first target or the final one; both are right.
    #[inline(always)]
    pub fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        let target = self.0.load(Ordering::Relaxed);
        // SAFETY: only values of type F are stored: at their definition below, and by set().
        unsafe { std::mem::transmute_copy(&target) }
    }

    fn set(&self, function: F) {
        // SAFETY: F is a function pointer, which has the size of a data pointer (see get()).
        let target = unsafe { std::mem::transmute_copy(&function) };
        self.0.store(target, Ordering::Relaxed);
    }
}

pub static MALLOC: Target<Malloc> = Target(AtomicPtr::new(first_malloc as *mut ()), PhantomData);
pub static CALLOC: Target<Calloc> = Target(AtomicPtr::new(first_calloc as *mut ()), PhantomData);
pub static REALLOC: Target<Realloc> = Target(AtomicPtr::new(first_realloc as *mut ()), PhantomData);
pub static FREE: Target<Free> = Target(AtomicPtr::new(first_free as *mut ()), PhantomData);

fn install(entries: Entries) {
    MALLOC.set(entries.malloc);
    CALLOC.set(entries.calloc);
    REALLOC.set(entries.realloc);
    FREE.set(entries.free);
}

/// Other targets for what takes blocks back, which end in the backend: for who keeps something of the blocks that are
/// given out from now on. A thread that is in the middle of a call still goes to the backend's own.
pub fn set_frees(free: Free, realloc: Realloc) {
    choose();
    FREE.set(free);
    REALLOC.set(realloc);
}

#[cold]
unsafe extern "C" fn first_malloc(size: usize) -> *mut c_void {
    if !is_ready() {
        return recycler::alloc_early(size, false).cast();
    }
    // SAFETY: is_ready() chose, which set the target to a backend's malloc: it takes any size.
    unsafe { MALLOC.get()(size) }
}

#[cold]
unsafe extern "C" fn first_calloc(count: usize, size: usize) -> *mut c_void {
    if !is_ready() {
        // The hot path saw a small product; one that wrapped around gets no block.
        let total = count.saturating_mul(size);
        return recycler::alloc_early(total, true).cast();
    }
    // SAFETY: is_ready() chose, which set the target to a backend's calloc: it takes any sizes.
    unsafe { CALLOC.get()(count, size) }
}

#[cold]
unsafe extern "C" fn first_realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    choose();
    // SAFETY: the choice set the target, and the caller's live block is of the backend chosen:
    // whatever came before it is the recycler's, which realloc asks first.
    unsafe { REALLOC.get()(ptr, size) }
}

#[cold]
unsafe extern "C" fn first_free(ptr: *mut c_void) {
    choose();
    // SAFETY: the choice set the target; blocks from before it are the recycler's, which are
    // aligned to a unit and never come here.
    unsafe { FREE.get()(ptr) }
}
