//! The environment of the process and the settings in it, read once, when first needed.
//!
//! Invariant: the values never change after they are read. Reading does not allocate, so the choice of
//! the allocator may read them.

use std::cell::UnsafeCell;

use flarena_shared::settings::{self, Settings};

use crate::env::Snapshot;
use crate::sync::once::WaitingOnce;

struct Config {
    environment: Snapshot,
    settings: Settings,
}

/// A static that is written in place: a snapshot is too large for the stack of a small thread.
struct ConfigCell {
    read: WaitingOnce,
    config: UnsafeCell<Config>,
}

// SAFETY: one thread writes `config`, inside `read.set_with`; other threads read it after `read` is
// set, which orders their reads after the write.
unsafe impl Sync for ConfigCell {}

static CONFIG: ConfigCell = ConfigCell {
    read: WaitingOnce::new(),
    config: UnsafeCell::new(Config {
        environment: Snapshot::EMPTY,
        settings: Settings::DEFAULT,
    }),
};

/// The settings of the process.
pub fn settings() -> &'static Settings {
    &config().settings
}

/// The environment as it was when it was first read.
pub fn environment() -> &'static Snapshot {
    &config().environment
}

#[inline]
fn config() -> &'static Config {
    if !CONFIG.read.is_set() {
        read();
    }
    // SAFETY: `read` is set, so the value is written and never changes.
    unsafe { &*CONFIG.config.get() }
}

#[cold]
fn read() {
    CONFIG.read.set_with(|| {
        // SAFETY: `set_with` runs this once, and no thread reads the value before it returns.
        let config = unsafe { &mut *CONFIG.config.get() };
        config.environment.fill();
        let environment = &config.environment;
        config.settings = settings::read(|key| environment.setting(key), |_| ());
        WaitingOnce::FIRST
    });
}
