//! The environment of the process and the settings in it, read once, when first needed.
//!
//! Invariant: the values never change after they are read. Reading does not allocate, so the choice of
//! the allocator may read them.

use std::cell::UnsafeCell;

use flarena_shared::huge_pages::Choice;
use flarena_shared::parse;
use flarena_shared::settings::{self, Allocator, Settings};

use crate::env::{Extra, Snapshot};
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
        follow_glibc(&mut config.settings, environment);
        WaitingOnce::FIRST
    });
}

/// glibc's own settings for its malloc hold for large blocks, too: huge pages, pages of hugetlbfs, and a byte that fills
/// each block. The last two only glibc can do.
fn follow_glibc(settings: &mut Settings, environment: &Snapshot) {
    if settings.allocator() != Allocator::Glibc {
        return;
    }
    let number = |text: Option<&[u8]>| text.and_then(glibc_number).unwrap_or(0);
    let huge = number(environment.malloc_tunable("hugetlb"));
    let fills = number(environment.malloc_tunable("perturb")) != 0
        || number(environment.extra(Extra::GlibcPerturb)) != 0;
    if huge == 1 && settings.huge == Choice::Auto {
        settings.huge = Choice::TwoMib;
    }
    if huge > 1 || fills {
        settings.recycle = false;
    }
}

/// A number as glibc reads it; `None` for an octal one with a digit above 7.
fn glibc_number(text: &[u8]) -> Option<u64> {
    let (digits, radix) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', ..] => (text, 8),
        _ => return parse::number(text),
    };
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}
