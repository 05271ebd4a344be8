//! Chooses between glibc and jemalloc, and holds the targets of the fast path.
//!
//! The first allocation chooses, from the environment and the command line. Invariant: the choice never
//! changes, because a pointer does not carry its owner.
//!
//! The targets are one function pointer each for malloc, calloc, realloc and free. Before the choice they
//! point to functions that choose; afterwards they point into the backend. So a small malloc costs one
//! comparison with a constant and one indirect jump.

use std::ffi::c_void;

use flarena_shared::settings::{Allocator, Settings};

use crate::backends::contract::{Backend, Calloc, Entries, Free, Malloc, Realloc, Target};
use crate::backends::glibc::{self, Glibc};
use crate::backends::jemalloc::{self, Jemalloc};
use flarena_recycler as recycler;
use flarena_recycler::Contents;
use flarena_sys::errno::SavedErrno;
use flarena_sys::sync::once::WaitingOnce;
use flarena_sys::{config, env, limits, loader, unmap_hooks};

const GLIBC: u8 = WaitingOnce::FIRST;
const JEMALLOC: u8 = GLIBC + 1;

static CHOICE: WaitingOnce = WaitingOnce::new();

#[inline(always)]
pub fn is_jemalloc() -> bool {
    CHOICE.holds(JEMALLOC)
}

/// Calls a function of the chosen backend.
macro_rules! dispatch {
    ($function:ident($($argument:expr),*)) => {{
        use $crate::backends::contract::Backend as _;
        if $crate::backends::choose::is_jemalloc() {
            $crate::backends::jemalloc::Jemalloc::$function($($argument),*)
        } else {
            $crate::backends::glibc::Glibc::$function($($argument),*)
        }
    }};
}
pub(crate) use dispatch;

/// Chooses a backend unless one is chosen. Any thread may call it, any number of times.
#[inline]
pub fn choose() {
    if !CHOICE.is_set() {
        choose_with(Settings::allocator);
    }
}

/// True if a backend can serve; chooses one if necessary. False before libc has initialised itself: a resolver
/// of an IFUNC may allocate then, but jemalloc's thread-local state is not initialised. False also while this thread
/// chooses: jemalloc initialises then, and a function of libc that another library replaces may allocate. The recycler
/// has no such state and serves these calls.
#[inline]
pub fn is_ready() -> bool {
    if CHOICE.is_set() {
        return true;
    }
    let ready = !env::is_before_libc() && !CHOICE.is_running_here();
    if ready {
        choose();
    }
    ready
}

/// For a process whose malloc belongs to another library: glibc serves the rare calls that arrive here.
pub fn stand_down() {
    choose_with(|_| Allocator::Glibc);
    recycler::disable();
}

#[cold]
fn choose_with(decide: impl FnOnce(&Settings) -> Allocator) {
    CHOICE.set_with(|| {
        #[cfg(not(test))]
        jemalloc::bind_to_libc();
        unmap_hooks::configure();
        let settings = config::settings();
        glibc::configure();
        recycler::configure(settings);
        let allocator = if loader::glibc::is_here() {
            decide(settings)
        } else {
            // Each call reaches the program's own libc.
            recycler::disable();
            Allocator::Glibc
        };
        jemalloc::configure(allocator == Allocator::Jemalloc, config::environment());
        limits::read();
        match allocator {
            Allocator::Glibc => {
                install(Glibc::entries());
                expect_refusals();
                GLIBC
            }
            Allocator::Jemalloc => {
                jemalloc::initialise();
                install(Jemalloc::entries());
                JEMALLOC
            }
        }
    });
}

/// Called when a limit on the memory of the process may have changed.
pub fn follow_limits() {
    let _errno = SavedErrno::save();
    limits::read();
    if CHOICE.holds(GLIBC) {
        expect_refusals();
    } else if CHOICE.holds(JEMALLOC) {
        jemalloc::expect_limit(config::environment());
    }
    recycler::keep_room();
}

/// Under a limit, small blocks of glibc get a second try, too, which costs some instructions. jemalloc tries again
/// where it maps memory (`jemalloc::libc_calls`).
fn expect_refusals() {
    if !limits::is_any_set() {
        return;
    }
    let retrying = glibc::entries_with_retry();
    BACKEND_MALLOC.set(retrying.malloc);
    BACKEND_CALLOC.set(retrying.calloc);
    // `abi::counted` may have replaced these by functions that end in the ones above, or that try again, too.
    let direct = Glibc::entries();
    MALLOC.replace(direct.malloc, retrying.malloc);
    CALLOC.replace(direct.calloc, retrying.calloc);
    REALLOC.replace(direct.realloc, retrying.realloc);
}

/// The name of the allocator that serves.
pub fn allocator_name() -> &'static str {
    if is_jemalloc() {
        Allocator::Jemalloc
    } else {
        Allocator::Glibc
    }
    .name()
}

// SAFETY: the function has the type of the target.
pub static MALLOC: Target<Malloc> = unsafe { Target::new(first_malloc as *mut ()) };
// SAFETY: the function has the type of the target.
pub static CALLOC: Target<Calloc> = unsafe { Target::new(first_calloc as *mut ()) };
// SAFETY: the function has the type of the target.
pub static REALLOC: Target<Realloc> = unsafe { Target::new(first_realloc as *mut ()) };
// SAFETY: the function has the type of the target.
pub static FREE: Target<Free> = unsafe { Target::new(first_free as *mut ()) };

/// The backend's malloc, for functions that `abi::counted` puts before it.
// SAFETY: the function has the type of the target.
pub static BACKEND_MALLOC: Target<Malloc> = unsafe { Target::new(first_malloc as *mut ()) };
/// The backend's calloc.
// SAFETY: the function has the type of the target.
pub static BACKEND_CALLOC: Target<Calloc> = unsafe { Target::new(first_calloc as *mut ()) };
/// The backend's free.
// SAFETY: the function has the type of the target.
pub static BACKEND_FREE: Target<Free> = unsafe { Target::new(first_free as *mut ()) };

fn install(entries: Entries) {
    BACKEND_MALLOC.set(entries.malloc);
    BACKEND_CALLOC.set(entries.calloc);
    BACKEND_FREE.set(entries.free);
    MALLOC.set(entries.malloc);
    CALLOC.set(entries.calloc);
    REALLOC.set(entries.realloc);
    FREE.set(entries.free);
}

#[cold]
unsafe extern "C" fn first_malloc(size: usize) -> *mut c_void {
    if !is_ready() {
        return recycler::alloc_early(size, Contents::Any).cast();
    }
    // SAFETY: is_ready() set the target to a backend's malloc, which accepts any size.
    unsafe { MALLOC.get()(size) }
}

#[cold]
unsafe extern "C" fn first_calloc(count: usize, size: usize) -> *mut c_void {
    if !is_ready() {
        // The fast path saw a small product. If it wrapped, the saturated product gets no block.
        let total = count.saturating_mul(size);
        return recycler::alloc_early(total, Contents::Zeroed).cast();
    }
    // SAFETY: is_ready() set the target to a backend's calloc, which accepts any sizes.
    unsafe { CALLOC.get()(count, size) }
}

#[cold]
unsafe extern "C" fn first_realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    choose();
    // SAFETY: choose() set the target. The block is live in the chosen backend, because blocks from before the
    // choice belong to the recycler, which realloc asks first.
    unsafe { REALLOC.get()(ptr, size) }
}

#[cold]
unsafe extern "C" fn first_free(ptr: *mut c_void) {
    choose();
    // SAFETY: choose() set the target. Blocks from before the choice are aligned to a unit and take the cold path.
    unsafe { FREE.get()(ptr) }
}
