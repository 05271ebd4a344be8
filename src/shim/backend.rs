//! The choice between glibc and jemalloc, and the dispatch to the one chosen.
//!
//! Two states: unchosen and chosen. The first allocation chooses, from the environment and the
//! command line; the choice never changes, because a pointer does not tell who gave it.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use flarena_shared::settings::{self, Allocator, Settings};

use crate::glibc::Glibc;
use crate::hot::Entries;
use crate::jemalloc::Jemalloc;
use crate::{env, env::Snapshot, hot, jemalloc, recycler};

/// What a backend must do. Sizes and alignments were checked by `heap`.
///
/// # Safety
/// As in C: pointers come from the same backend and are live.
pub trait Backend {
    /// What the hot path jumps to.
    const ENTRIES: Entries;

    unsafe fn malloc(size: usize) -> *mut c_void;
    unsafe fn calloc(count: usize, size: usize) -> *mut c_void;
    /// Neither a null pointer nor a size of zero.
    unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void;
    unsafe fn free(ptr: *mut c_void);
    /// `align` is a power of two.
    unsafe fn memalign(align: usize, size: usize) -> *mut c_void;
    unsafe fn usable_size(ptr: *mut c_void) -> usize;
    /// Gives free memory back, keeping `pad` bytes where the backend knows how to.
    fn trim(pad: usize) -> c_int;
    /// Handed out and free bytes; `None` where the backend cannot tell.
    fn usage() -> Option<Usage>;
}

/// What a backend holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Handed out to the program.
    pub live_bytes: u64,
    /// Free, but not given back to the system, as far as the backend knows.
    pub free_bytes: u64,
}

const UNCHOSEN: u8 = 0;
const CHOOSING: u8 = 1;
const GLIBC: u8 = 2;
const JEMALLOC: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(UNCHOSEN);

/// Written once, between CHOOSING and the store of the choice.
struct WriteOnce<T>(UnsafeCell<T>);

// SAFETY: one thread writes, before the release store of STATE; readers load STATE with acquire.
unsafe impl<T> Sync for WriteOnce<T> {}

static ENVIRONMENT: WriteOnce<Snapshot> = WriteOnce(UnsafeCell::new(Snapshot::EMPTY));
static SETTINGS: WriteOnce<Settings> = WriteOnce(UnsafeCell::new(Settings::DEFAULT));

#[inline(always)]
pub fn is_jemalloc() -> bool {
    STATE.load(Ordering::Relaxed) == JEMALLOC
}

/// Runs a function of the chosen backend.
#[macro_export]
macro_rules! dispatch {
    ($function:ident($($argument:expr),*)) => {
        if $crate::backend::is_jemalloc() {
            <$crate::jemalloc::Jemalloc as $crate::backend::Backend>::$function($($argument),*)
        } else {
            <$crate::glibc::Glibc as $crate::backend::Backend>::$function($($argument),*)
        }
    };
}

/// The settings of the process.
pub fn settings() -> &'static Settings {
    choose();
    // SAFETY: choose() returns after the value was written, and nobody writes it again.
    unsafe { &*SETTINGS.0.get() }
}

/// The environment as it was when the choice was made.
pub fn environment() -> &'static Snapshot {
    choose();
    // SAFETY: as above.
    unsafe { &*ENVIRONMENT.0.get() }
}

/// Chooses, unless that is done. Any thread, any number of times.
#[inline]
pub fn choose() {
    if STATE.load(Ordering::Acquire) <= CHOOSING {
        choose_with(Settings::allocator);
    }
}

/// True when a backend can serve, after choosing one if need be. False before libc has set itself
/// up: the resolver of an IFUNC may allocate then, and jemalloc's thread-local state has no values
/// yet. The recycler has none, and serves such calls.
#[inline]
pub fn is_ready() -> bool {
    if STATE.load(Ordering::Acquire) > CHOOSING {
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
    let claim = STATE.compare_exchange(UNCHOSEN, CHOOSING, Ordering::Acquire, Ordering::Acquire);
    match claim {
        Ok(_) => {
            let state = make_choice(decide);
            configure_recycler();
            hot::lead_to(match state {
                JEMALLOC => Jemalloc::ENTRIES,
                _ => Glibc::ENTRIES,
            });
            // Last: whoever sees the choice may use what it set.
            STATE.store(state, Ordering::Release);
        }
        Err(CHOOSING) => wait_for_choice(),
        Err(_) => {}
    }
}

fn make_choice(decide: impl FnOnce(&Settings) -> Allocator) -> u8 {
    // SAFETY: the compare-and-exchange made this thread the only one here, and nobody reads yet.
    let (snapshot, settings) = unsafe { (&mut *ENVIRONMENT.0.get(), &mut *SETTINGS.0.get()) };
    snapshot.fill();
    *settings = settings::read(|key| snapshot.setting(key), |_| ());
    let allocator = decide(settings);
    jemalloc::configure(allocator == Allocator::Jemalloc, snapshot);
    match allocator {
        Allocator::Glibc => GLIBC,
        Allocator::Jemalloc => JEMALLOC,
    }
}

fn configure_recycler() {
    // SAFETY: the choice was made by this thread, and nobody writes the settings again.
    let settings = unsafe { &*SETTINGS.0.get() };
    recycler::configure(recycler::Config {
        min_bytes: usize::try_from(settings.recycle_min_bytes).unwrap_or(usize::MAX),
        decay_ms: settings.decay_ms,
        enabled: settings.recycle,
        memory_limit: settings.memory_limit_bytes,
    });
}

/// Another thread is choosing: it takes microseconds and waits for nobody.
fn wait_for_choice() {
    while STATE.load(Ordering::Acquire) == CHOOSING {
        // SAFETY: sched_yield has no precondition.
        unsafe { libc::sched_yield() };
    }
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
