//! What the process was told: its environment and the settings in it, read once, at the first need,
//! and never changed. Reading does not allocate, so the choice of the allocator may do it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, Ordering};

use flarena_shared::settings::{self, Settings};

use crate::env::Snapshot;

const UNREAD: u8 = 0;
const READING: u8 = 1;
const READ: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNREAD);

struct Config {
    environment: Snapshot,
    settings: Settings,
}

struct WriteOnce(UnsafeCell<Config>);

// SAFETY: one thread writes, between READING and the release store of READ; readers load STATE
// with acquire and see READ first.
unsafe impl Sync for WriteOnce {}

static CONFIG: WriteOnce = WriteOnce(UnsafeCell::new(Config {
    environment: Snapshot::EMPTY,
    settings: Settings::DEFAULT,
}));

/// The settings of the process.
pub fn settings() -> &'static Settings {
    &config().settings
}

/// The environment as it was when it was first asked for.
pub fn environment() -> &'static Snapshot {
    &config().environment
}

#[inline]
fn config() -> &'static Config {
    if STATE.load(Ordering::Acquire) != READ {
        read();
    }
    // SAFETY: READ was seen: the value was written, and nobody writes it again.
    unsafe { &*CONFIG.0.get() }
}

#[cold]
fn read() {
    let claim = STATE.compare_exchange(UNREAD, READING, Ordering::Acquire, Ordering::Acquire);
    if claim.is_ok() {
        // SAFETY: the exchange made this thread the only one here, and nobody reads before READ.
        let config = unsafe { &mut *CONFIG.0.get() };
        config.environment.fill();
        let environment = &config.environment;
        config.settings = settings::read(|key| environment.setting(key), |_| ());
        STATE.store(READ, Ordering::Release);
    }
    // Another thread is reading: it takes microseconds and waits for nobody.
    while STATE.load(Ordering::Acquire) != READ {
        rustix::thread::sched_yield();
    }
}
