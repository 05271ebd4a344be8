//! jemalloc's options: the user's `MALLOC_CONF`, validated and merged with the defaults. jemalloc reads them from
//! the variable `_rjem_malloc_conf` when it initialises, and from no other source (`libc_calls`).

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

use flarena_shared::defaults;
use flarena_shared::malloc_conf::{self, Fault, Pair};
use flarena_shared::settings::Key;

use flarena_sys::env::Snapshot;
use flarena_sys::{limits, proc::cgroup, proc::huge_pages};

/// The option string with its NUL; 16 KiB hold every option several times.
struct OptionString(UnsafeCell<[u8; 16 << 10]>);

// SAFETY: only the thread that chooses the backend writes it, before jemalloc's first call.
unsafe impl Sync for OptionString {}

static OPTIONS: OptionString = OptionString(UnsafeCell::new([0; 16 << 10]));
static OPTIONS_LEN: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// jemalloc's own `const char *malloc_conf`, which it reads when it initialises.
    #[link_name = "_rjem_malloc_conf"]
    static MALLOC_CONF: AtomicPtr<c_char>;
    /// The option `retain`, which jemalloc reads at each use.
    #[link_name = "_rjem_je_opt_retain"]
    static RETAIN: AtomicBool;
}

/// Passes jemalloc its options. Called once, by the thread that makes the choice.
pub fn configure(serves: bool, environment: &Snapshot) {
    // SAFETY: only the choosing thread uses the buffer, and jemalloc reads it later.
    let buffer = unsafe { &mut *OPTIONS.0.get() };
    let len = if serves {
        let conf = environment.setting(Key::MallocConf).unwrap_or_default();
        effective_options(conf, buffer)
    } else {
        // jemalloc may initialise even in glibc mode (`disable_init`); these options keep it small.
        let dormant = defaults::MALLOC_CONF_DORMANT.as_bytes();
        buffer[..dormant.len()].copy_from_slice(dormant);
        dormant.len()
    };
    OPTIONS_LEN.store(len, Relaxed);
    // SAFETY: the variable is a plain pointer of jemalloc, which no other thread uses yet.
    unsafe { MALLOC_CONF.store(buffer.as_mut_ptr().cast(), Relaxed) };
}

/// The user's pairs over the defaults.
fn effective_options(user: &[u8], buffer: &mut [u8]) -> usize {
    let mut number = itoa::Buffer::new();
    let here = [
        arenas_for_quota().map(|n| ("narenas", number.format(n))),
        huge_pages::are_always_enabled().then_some(defaults::MALLOC_CONF_THP_ALWAYS),
        limits::is_address_space_limited().then_some(defaults::MALLOC_CONF_LIMITED),
        cfg!(target_arch = "x86_64").then_some(defaults::MALLOC_CONF_SMALL_SLABS),
    ];
    let here = here.into_iter().flatten();
    let here = here.map(|(key, value)| (key.as_bytes(), value.as_bytes()));
    let everywhere = malloc_conf::pairs(defaults::MALLOC_CONF.as_bytes(), |_, _| ());
    let everywhere = everywhere.map(|Pair { key, value }| (key, value));
    malloc_conf::merge(user, everywhere.chain(here), buffer, |_, _| ())
}

/// Four arenas per CPU of the container's quota. `None` keeps jemalloc's own rule, which counts the CPUs that
/// the process may run on.
fn arenas_for_quota() -> Option<u32> {
    let quota = cgroup::cpu_quota()?;
    (quota < usable_cpus()).then_some(quota * defaults::ARENAS_PER_CPU)
}

fn usable_cpus() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(u32::MAX, |cpus| cpus.count())
}

/// Applies `MALLOC_CONF_LIMITED` after the start: the program has set a limit.
pub fn expect_limit(environment: &Snapshot) {
    if limits::is_address_space_limited() && users_value(environment, "retain").is_none() {
        // SAFETY: the variable is a plain bool of jemalloc. Both values are valid at any time for each extent.
        unsafe { RETAIN.store(false, Relaxed) };
    }
}

/// The pairs of the user's `MALLOC_CONF` that could not be used.
pub fn faults<'a>(environment: &'a Snapshot, mut report: impl FnMut(&'a [u8], Fault)) {
    let user = environment.setting(Key::MallocConf).unwrap_or_default();
    let mut buffer = [0; 16 << 10];
    malloc_conf::merge(user, std::iter::empty(), &mut buffer, &mut report);
}

/// The option string that jemalloc got; `effective` reads back the values in force.
pub fn options() -> &'static [u8] {
    // SAFETY: the string is written before the choice is published, and never afterwards.
    unsafe { &(&*OPTIONS.0.get())[..OPTIONS_LEN.load(Relaxed)] }
}

/// True if the user enabled jemalloc's background threads.
pub fn wants_background_threads(environment: &Snapshot) -> bool {
    users_value(environment, malloc_conf::DEFERRED) == Some(b"true")
}

/// True if the user set a decay time; then no other rule applies.
pub fn has_users_decay(environment: &Snapshot) -> bool {
    ["dirty_decay_ms", "muzzy_decay_ms"]
        .iter()
        .any(|key| users_value(environment, key).is_some())
}

/// The value in the user's `MALLOC_CONF`; the last of several counts, as in jemalloc.
fn users_value<'a>(environment: &'a Snapshot, key: &str) -> Option<&'a [u8]> {
    let user = environment.setting(Key::MallocConf).unwrap_or_default();
    malloc_conf::pairs(user, |_, _| ())
        .filter(|pair| pair.key == key.as_bytes())
        .last()
        .map(|pair| pair.value)
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
    fn background_threads_are_never_enabled_at_init() {
        let options = effective("background_thread:true,dirty_decay_ms:7");
        assert!(!options.contains("background_thread"), "{options}");
        assert!(options.ends_with("dirty_decay_ms:7"), "{options}");
    }
}
