//! jemalloc's controls and statistics, each with the type that its manual gives it. A type cannot be
//! mistaken by a caller, because only this file makes keys.

use std::ffi::{c_char, CStr};
use std::marker::PhantomData;
use std::ptr;

use tikv_jemalloc_sys as je;

/// A value that can be read, and where jemalloc allows it written, under a name.
pub struct Value<T>(&'static CStr, PhantomData<T>);

/// A text that never changes.
pub struct Text(&'static CStr);

/// A thing to do.
pub struct Command(&'static CStr);

const fn value<T>(name: &'static CStr) -> Value<T> {
    Value(name, PhantomData)
}

pub const ALLOCATED: Value<usize> = value(c"stats.allocated");
pub const ACTIVE: Value<usize> = value(c"stats.active");
pub const METADATA: Value<usize> = value(c"stats.metadata");
pub const RESIDENT: Value<usize> = value(c"stats.resident");
pub const MAPPED: Value<usize> = value(c"stats.mapped");
/// 4096 stands for all arenas (`MALLCTL_ARENAS_ALL`).
pub const ALL_MUZZY_PAGES: Value<usize> = value(c"stats.arenas.4096.pmuzzy");
/// The statistics are a snapshot: a write takes a new one.
pub const EPOCH: Value<u64> = value(c"epoch");

pub const NARENAS: Value<u32> = value(c"opt.narenas");
pub const DIRTY_DECAY_MS: Value<isize> = value(c"opt.dirty_decay_ms");
pub const MUZZY_DECAY_MS: Value<isize> = value(c"opt.muzzy_decay_ms");
pub const THP: Text = Text(c"opt.thp");
pub const PERCPU_ARENA: Text = Text(c"opt.percpu_arena");

pub const BACKGROUND_THREAD: Value<bool> = value(c"background_thread");
pub const THREAD_ARENA: Value<u32> = value(c"thread.arena");

pub const FLUSH_THREAD_CACHE: Command = Command(c"thread.tcache.flush");
pub const PURGE_ALL: Command = Command(c"arena.4096.purge");
pub const DECAY_ALL: Command = Command(c"arena.4096.decay");

impl<T: Copy + Default> Value<T> {
    pub fn read(&self) -> Option<T> {
        let mut value = T::default();
        let mut len = size_of::<T>();
        // SAFETY: the name is NUL-terminated, and jemalloc writes a T, as the key was made for it;
        // mallctl compares `len` with the size of its own.
        let error = unsafe {
            je::mallctl(
                self.0.as_ptr(),
                (&raw mut value).cast(),
                &mut len,
                ptr::null_mut(),
                0,
            )
        };
        (error == 0).then_some(value)
    }

    /// False where jemalloc refuses.
    pub fn write(&self, mut value: T) -> bool {
        // SAFETY: the name is NUL-terminated; mallctl reads a T, and compares the length.
        unsafe {
            je::mallctl(
                self.0.as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                (&raw mut value).cast(),
                size_of::<T>(),
            ) == 0
        }
    }
}

impl Text {
    pub fn read(&self) -> Option<&'static str> {
        let address = value::<usize>(self.0).read()? as *const c_char;
        if address.is_null() {
            return None;
        }
        // SAFETY: jemalloc's string options are NUL-terminated and live as long as the process.
        unsafe { CStr::from_ptr(address) }.to_str().ok()
    }
}

impl Command {
    pub fn run(&self) {
        // SAFETY: the name is NUL-terminated; a command takes and gives nothing.
        unsafe {
            je::mallctl(
                self.0.as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                0,
            )
        };
    }
}
