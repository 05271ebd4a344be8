//! The jemalloc backend: the embedded, prefixed jemalloc 5.3.1 (`_rjem_`).
//!
//! A prefixed build reads `_RJEM_MALLOC_CONF`, so the user's `MALLOC_CONF` is checked, merged with
//! the defaults, and handed over in `_rjem_malloc_conf` before jemalloc first wakes.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use flarena_shared::defaults;
use flarena_shared::malloc_conf::{self, Fault, Pair};
use flarena_shared::settings::Key;
use tikv_jemalloc_sys as je;

use crate::backend::{Backend, Usage};
use crate::hot::Entries;
use crate::{cgroup, env::Snapshot, procfs};

pub struct Jemalloc;

impl Backend for Jemalloc {
    const ENTRIES: Entries = Entries {
        malloc: je::malloc,
        calloc: je::calloc,
        realloc: je::realloc,
        free: je::free,
    };

    #[inline(always)]
    unsafe fn malloc(size: usize) -> *mut c_void {
        // SAFETY: jemalloc takes any size.
        unsafe { je::malloc(size) }
    }

    #[inline(always)]
    unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: jemalloc takes any sizes and checks their product.
        unsafe { je::calloc(count, size) }
    }

    #[inline(always)]
    unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the caller vouches for the pointer.
        unsafe { je::realloc(ptr, size) }
    }

    #[inline(always)]
    unsafe fn free(ptr: *mut c_void) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { je::free(ptr) }
    }

    unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
        // SAFETY: the alignment is a power of two; C wants a unique pointer for a size of zero.
        unsafe { je::aligned_alloc(align, size.max(1)) }
    }

    unsafe fn usable_size(ptr: *mut c_void) -> usize {
        // SAFETY: the caller vouches for the pointer.
        unsafe { je::malloc_usable_size(ptr) }
    }

    fn trim(_pad: usize) -> c_int {
        let before = resident_bytes();
        flush_thread_cache();
        purge_all();
        c_int::from(resident_bytes() < before)
    }

    fn usage() -> Option<Usage> {
        refresh_statistics();
        let live_bytes = read::<usize>(c"stats.allocated")? as u64;
        let resident = read::<usize>(c"stats.resident")? as u64;
        // Muzzy pages were offered to the kernel but are resident until it takes them.
        let muzzy = read::<usize>(c"stats.arenas.4096.pmuzzy").unwrap_or(0) as u64;
        let muzzy_bytes = muzzy * procfs::page_bytes() as u64;
        Some(Usage {
            live_bytes,
            free_bytes: (resident + muzzy_bytes).saturating_sub(live_bytes),
        })
    }
}

/// The effective option string, with its NUL; 16 KiB hold every option several times.
struct OptionString(UnsafeCell<[u8; 16 << 10]>);

// SAFETY: written once by the thread that chooses the backend, before jemalloc's first call.
unsafe impl Sync for OptionString {}

static OPTIONS: OptionString = OptionString(UnsafeCell::new([0; 16 << 10]));
static OPTIONS_LEN: AtomicUsize = AtomicUsize::new(0);

extern "C" {
    /// jemalloc's own `const char *malloc_conf`, read when it wakes.
    #[link_name = "_rjem_malloc_conf"]
    static MALLOC_CONF: AtomicPtr<c_char>;
}

/// Hands jemalloc its options. Called once, by the thread that makes the choice.
pub fn configure(serves: bool, environment: &Snapshot) {
    // SAFETY: only the choosing thread is here, and jemalloc reads the string later.
    let buffer = unsafe { &mut *OPTIONS.0.get() };
    let len = if serves {
        let conf = environment.setting(Key::MallocConf).unwrap_or_default();
        effective_options(conf, buffer)
    } else {
        // jemalloc's constructor runs all the same; it must cost nothing that shows.
        let dormant = defaults::MALLOC_CONF_DORMANT.as_bytes();
        buffer[..dormant.len()].copy_from_slice(dormant);
        dormant.len()
    };
    OPTIONS_LEN.store(len, Relaxed);
    // SAFETY: the variable is a plain pointer of jemalloc's, which no other thread touches yet.
    unsafe { MALLOC_CONF.store(buffer.as_mut_ptr().cast(), Relaxed) };
}

/// The user's pairs over the defaults.
fn effective_options(user: &[u8], buffer: &mut [u8]) -> usize {
    let mut number = [0; 12];
    let narenas = arenas_for_quota().map(|n| (&b"narenas"[..], decimal(n, &mut number)));
    let bytes = |(key, value): (&'static str, &'static str)| (key.as_bytes(), value.as_bytes());
    let thp_always = procfs::is_thp_always().then_some(bytes(defaults::MALLOC_CONF_THP_ALWAYS));
    let limited = is_address_space_limited().then_some(bytes(defaults::MALLOC_CONF_LIMITED));
    let small_slabs =
        cfg!(target_arch = "x86_64").then_some(bytes(defaults::MALLOC_CONF_SMALL_SLABS));
    let standard = malloc_conf::pairs(defaults::MALLOC_CONF.as_bytes(), |_, _| ())
        .map(|Pair { key, value }| (key, value));
    malloc_conf::merge(
        user,
        standard
            .chain(narenas)
            .chain(thp_always)
            .chain(limited)
            .chain(small_slabs),
        buffer,
        |_, _| (),
    )
}

/// Four arenas for each CPU that the container's quota allows; `None` leaves jemalloc's own
/// rule, which goes by the CPUs that the process may run on.
fn arenas_for_quota() -> Option<u32> {
    let quota = cgroup::cpu_quota()?;
    (quota < usable_cpus()).then_some(quota * defaults::ARENAS_PER_CPU)
}

fn usable_cpus() -> u32 {
    // SAFETY: an all-zero cpu_set_t is an empty set, and the call fills it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return u32::MAX;
        }
        libc::CPU_COUNT(&set) as u32
    }
}

fn is_address_space_limited() -> bool {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA]
        .into_iter()
        .any(|kind| {
            // SAFETY: an all-zero rlimit is storage for the call to fill.
            unsafe {
                let mut limit: libc::rlimit = std::mem::zeroed();
                libc::getrlimit(kind, &mut limit) == 0 && limit.rlim_cur != libc::RLIM_INFINITY
            }
        })
}

fn decimal(mut n: u32, buffer: &mut [u8; 12]) -> &[u8] {
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &buffer[start..];
        }
    }
}

/// The pairs of the user's `MALLOC_CONF` that could not be used.
pub fn faults<'a>(environment: &'a Snapshot, mut report: impl FnMut(&'a [u8], Fault)) {
    let user = environment.setting(Key::MallocConf).unwrap_or_default();
    let mut buffer = [0; 16 << 10];
    malloc_conf::merge(user, std::iter::empty(), &mut buffer, &mut report);
}

/// The option string that jemalloc was given.
pub fn options() -> &'static [u8] {
    // SAFETY: written before the choice was published, never after.
    unsafe { &(&*OPTIONS.0.get())[..OPTIONS_LEN.load(Relaxed)] }
}

/// Makes an arena that no thread uses, for the next new thread to take. A thread that must make its
/// own crashes where memory has run out; here, in a thread that has one, it only fails.
pub fn make_spare_arena() -> bool {
    if read_text(c"opt.percpu_arena") != Some("disabled") {
        // They are made with the first block of each CPU, and nobody may choose.
        return !is_address_space_limited();
    }
    let (Some(mine), Some(arenas)) = (read::<u32>(c"thread.arena"), read::<u32>(c"opt.narenas"))
    else {
        return false;
    };
    let spare = if mine + 1 < arenas { arenas - 1 } else { 0 };
    spare == mine || (write(c"thread.arena", spare) && write(c"thread.arena", mine))
}

/// Makes jemalloc initialise itself, if nothing has yet.
pub fn wake() {
    flush_thread_cache();
}

/// True when the user asked for jemalloc's background threads.
pub fn wants_background_threads(environment: &Snapshot) -> bool {
    users_value(environment, malloc_conf::DEFERRED) == Some(b"true")
}

/// True when the user decided how long free pages are kept: then only that decides.
pub fn has_users_decay(environment: &Snapshot) -> bool {
    ["dirty_decay_ms", "muzzy_decay_ms"]
        .iter()
        .any(|key| users_value(environment, key).is_some())
}

/// The value in the user's `MALLOC_CONF`; the last of several counts, as for jemalloc.
fn users_value<'a>(environment: &'a Snapshot, key: &str) -> Option<&'a [u8]> {
    let user = environment.setting(Key::MallocConf).unwrap_or_default();
    malloc_conf::pairs(user, |_, _| ())
        .filter(|pair| pair.key == key.as_bytes())
        .last()
        .map(|pair| pair.value)
}

/// Starts what `background_thread:true` asks for. Not from a constructor or a small allocation:
/// it creates a thread.
pub fn start_background_threads() -> bool {
    write(c"background_thread", true)
}

/// Bytes of physically resident pages that jemalloc has mapped, muzzy ones included.
fn resident_bytes() -> u64 {
    Jemalloc::usage().map_or(0, |usage| usage.live_bytes + usage.free_bytes)
}

/// Empties the calling thread's cache into its arena.
pub fn flush_thread_cache() {
    command(c"thread.tcache.flush");
}

/// Returns every unused dirty and muzzy page of all arenas: 100-350 ms for each GB.
pub fn purge_all() {
    command(c"arena.4096.purge");
}

/// Returns the pages whose decay time has passed. An idle jemalloc never does so by itself.
pub fn decay_all() {
    command(c"arena.4096.decay");
}

/// jemalloc's statistics are a snapshot: this takes a new one.
pub fn refresh_statistics() {
    write(c"epoch", 1u64);
}

/// Reads a number or a flag by its mallctl name.
pub fn read<T: Copy + Default>(name: &CStr) -> Option<T> {
    let mut value = T::default();
    let mut len = size_of::<T>();
    // SAFETY: the name is NUL-terminated; mallctl checks `len` against the size of the value.
    let error = unsafe {
        je::mallctl(
            name.as_ptr(),
            (&raw mut value).cast(),
            &mut len,
            ptr::null_mut(),
            0,
        )
    };
    (error == 0).then_some(value)
}

/// Reads a string option.
pub fn read_text(name: &CStr) -> Option<&'static str> {
    let address = read::<usize>(name)? as *const c_char;
    if address.is_null() {
        return None;
    }
    // SAFETY: jemalloc's string options are NUL-terminated and live as long as the process.
    unsafe { CStr::from_ptr(address) }.to_str().ok()
}

fn write<T: Copy>(name: &CStr, value: T) -> bool {
    let mut value = value;
    let data = (&raw mut value).cast();
    // SAFETY: the name is NUL-terminated; mallctl checks the length against the option's type.
    unsafe {
        je::mallctl(
            name.as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            data,
            size_of::<T>(),
        ) == 0
    }
}

fn command(name: &CStr) {
    // SAFETY: the name is NUL-terminated; a command takes and gives nothing.
    unsafe {
        je::mallctl(
            name.as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effective(user: &str) -> String {
        let mut buffer = [0; 512];
        let len = effective_options(user.as_bytes(), &mut buffer);
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    }

    #[test]
    fn background_threads_are_never_asked_for_at_init() {
        let options = effective("background_thread:true,dirty_decay_ms:7");
        assert!(!options.contains("background_thread"), "{options}");
        assert!(options.ends_with("dirty_decay_ms:7"), "{options}");
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        assert_eq!(decimal(0, &mut [0; 12]), b"0");
        assert_eq!(decimal(4_294_967_295, &mut [0; 12]), b"4294967295");
    }
}
