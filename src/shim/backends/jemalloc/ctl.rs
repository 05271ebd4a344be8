//! jemalloc's controls and statistics, each with the type of its manual. Only this file creates keys, so a
//! caller cannot use a wrong type.

use std::ffi::{c_char, CStr, CString};
use std::marker::PhantomData;
use std::ptr;

use flarena_shared::malloc_conf::{self, Kind};
use tikv_jemalloc_sys as je;

/// A named value that can be read and, if jemalloc allows it, written.
pub struct Value<T>(&'static CStr, PhantomData<T>);

/// A named text that never changes.
pub struct Text(&'static CStr);

/// A named command.
pub struct Command(&'static CStr);

const fn value<T>(name: &'static CStr) -> Value<T> {
    Value(name, PhantomData)
}

pub const ALLOCATED: Value<usize> = value(c"stats.allocated");
pub const ACTIVE: Value<usize> = value(c"stats.active");
pub const METADATA: Value<usize> = value(c"stats.metadata");
pub const RESIDENT: Value<usize> = value(c"stats.resident");
pub const MAPPED: Value<usize> = value(c"stats.mapped");
/// 4096 is `MALLCTL_ARENAS_ALL`.
pub const ALL_MUZZY_PAGES: Value<usize> = value(c"stats.arenas.4096.pmuzzy");
/// The statistics are a snapshot; a write refreshes it.
pub const EPOCH: Value<u64> = value(c"epoch");

pub const NARENAS: Value<u32> = value(c"opt.narenas");
pub const DIRTY_DECAY_MS: Value<isize> = value(c"opt.dirty_decay_ms");
pub const MUZZY_DECAY_MS: Value<isize> = value(c"opt.muzzy_decay_ms");
pub const THP: Text = Text(c"opt.thp");
pub const PERCPU_ARENA: Text = Text(c"opt.percpu_arena");

/// The decay of arenas that are created later.
pub const NEW_DIRTY_DECAY_MS: Value<isize> = value(c"arenas.dirty_decay_ms");
pub const NEW_MUZZY_DECAY_MS: Value<isize> = value(c"arenas.muzzy_decay_ms");
pub const PAGE: Value<usize> = value(c"arenas.page");

/// A write creates a thread, so it must not come from a constructor or a small allocation.
pub const BACKGROUND_THREAD: Value<bool> = value(c"background_thread");
pub const THREAD_ARENA: Value<u32> = value(c"thread.arena");

pub const FLUSH_THREAD_CACHE: Command = Command(c"thread.tcache.flush");
pub const PURGE_ALL: Command = Command(c"arena.4096.purge");
/// The pages whose decay time has passed. An idle jemalloc never does so by itself.
pub const DECAY_ALL: Command = Command(c"arena.4096.decay");

/// Stops the decay of all arenas, also of those that are created later. Allocates.
pub fn stop_decay() {
    const NEVER: isize = -1;
    NEW_DIRTY_DECAY_MS.write(NEVER);
    NEW_MUZZY_DECAY_MS.write(NEVER);
    for arena in 0..read(c"arenas.narenas").unwrap_or(0u32) {
        for pages in ["dirty", "muzzy"] {
            // jemalloc refuses an arena that does not exist yet.
            if let Ok(name) = CString::new(format!("arena.{arena}.{pages}_decay_ms")) {
                write(&name, NEVER);
            }
        }
    }
}

/// The value of an option as text; `None` if jemalloc cannot report it.
pub fn option(name: &str) -> Option<String> {
    let key = CString::new(format!("opt.{name}")).ok()?;
    let (_, kind) = malloc_conf::OPTIONS
        .iter()
        .find(|(known, _)| *known == name)?;
    Some(match kind {
        Kind::Bool => read::<bool>(&key)?.to_string(),
        Kind::Word(_) => text(&key)?.to_owned(),
        Kind::Signed => read::<isize>(&key)?.to_string(),
        Kind::Unsigned => match read::<usize>(&key) {
            Some(number) => number.to_string(),
            None => read::<u32>(&key)?.to_string(),
        },
        Kind::Text if name == "narenas" => NARENAS.read()?.to_string(),
        Kind::Text | Kind::Profiling => return None,
    })
}

fn read<T: Copy + Default>(name: &CStr) -> Option<T> {
    let mut value = T::default();
    let mut len = size_of::<T>();
    let (old, old_len) = ((&raw mut value).cast(), &raw mut len);
    // SAFETY: the name is NUL-terminated. jemalloc writes a T, the type of the key, and never more than `len` bytes.
    let error = unsafe { je::mallctl(name.as_ptr(), old, old_len, ptr::null_mut(), 0) };
    (error == 0).then_some(value)
}

/// False if jemalloc refuses the value.
fn write<T>(name: &CStr, mut value: T) -> bool {
    let (none, new) = (ptr::null_mut(), (&raw mut value).cast());
    // SAFETY: the name is NUL-terminated; mallctl reads a T, and compares the length.
    unsafe { je::mallctl(name.as_ptr(), none, ptr::null_mut(), new, size_of::<T>()) == 0 }
}

fn text(name: &CStr) -> Option<&'static str> {
    let address = read::<usize>(name)? as *const c_char;
    if address.is_null() {
        return None;
    }
    // SAFETY: jemalloc's string options are NUL-terminated and live as long as the process.
    unsafe { CStr::from_ptr(address) }.to_str().ok()
}

impl<T: Copy + Default> Value<T> {
    pub fn read(&self) -> Option<T> {
        read(self.0)
    }

    /// False if jemalloc refuses the value.
    pub fn write(&self, value: T) -> bool {
        write(self.0, value)
    }
}

impl Text {
    pub fn read(&self) -> Option<&'static str> {
        text(self.0)
    }
}

impl Command {
    pub fn run(&self) {
        let none = ptr::null_mut();
        // SAFETY: the name is NUL-terminated, and a command has no value.
        unsafe { je::mallctl(self.0.as_ptr(), none, ptr::null_mut(), none, 0) };
    }
}
