//! The environment of the process, read once and without allocating.
//!
//! The first `malloc` may come before libc has set `environ`; then the kernel's own copy on the
//! initial stack is read, which the loader points to. What we keep is copied: programs such as
//! `setproctitle` overwrite the original.

use std::ffi::{c_char, c_void, CStr};
use std::ptr;

use flarena_shared::settings::{Key, TABLE};

extern "C" {
    static environ: *const *const c_char;
    /// Exported by the loader: where `argc` lies on the initial stack, then argv and envp.
    static __libc_stack_end: *const c_void;
}

/// Variables that are read besides the table of settings.
#[derive(Clone, Copy)]
pub enum Extra {
    /// Notes of a parent with this library to its children.
    Inherited,
    /// Set by launchers: the process that a person started.
    Launched,
    /// Set by launchers that test whether the library loads.
    Probe,
    /// NVFlare 2.8 and earlier announce an external trainer so; its value is kept.
    ClientApiType,
    /// NVFlare 2.9 does so. The value holds a token: only its presence is kept.
    ClientApiBootstrap,
    /// glibc's own settings, which may hold the user's arena count.
    GlibcTunables,
    /// Where Apache Arrow takes its buffers from.
    ArrowPool,
    /// Set by systemd for a service, and by container engines.
    ServiceInvocation,
    Container,
    Kubernetes,
}

const EXTRAS: [&str; 10] = [
    INHERITED,
    "FLARENA_LAUNCHED",
    "FLARENA_PROBE",
    "CLIENT_API_TYPE",
    "NVFLARE_CLIENT_API_BOOTSTRAP",
    "GLIBC_TUNABLES",
    "ARROW_DEFAULT_MEMORY_POOL",
    "INVOCATION_ID",
    "container",
    "KUBERNETES_SERVICE_HOST",
];

pub const INHERITED: &str = "FLARENA_INHERITED";

const SLOTS: usize = TABLE.len() + EXTRAS.len();
/// Enough for any sane set of values; what does not fit counts as cut, never as an error.
const ROOM: usize = 24 << 10;

/// Copies of the values, one slot for each variable.
pub struct Snapshot {
    bytes: [u8; ROOM],
    used: usize,
    slots: [Option<(usize, usize)>; SLOTS],
}

impl Snapshot {
    pub const EMPTY: Snapshot = Snapshot {
        bytes: [0; ROOM],
        used: 0,
        slots: [None; SLOTS],
    };

    /// Copies what matters out of the environment; the first of several equal names counts.
    pub fn fill(&mut self) {
        if is_secure() {
            return;
        }
        let (table, extras) = (TABLE.iter().map(|row| row.name), EXTRAS.iter().copied());
        for entry in entries() {
            let Some(equals) = entry.iter().position(|&b| b == b'=') else {
                continue;
            };
            let (name, value) = (&entry[..equals], &entry[equals + 1..]);
            let mut names = table.clone().chain(extras.clone());
            let Some(slot) = names.position(|known| known.as_bytes() == name) else {
                continue;
            };
            let secret = slot == TABLE.len() + Extra::ClientApiBootstrap as usize;
            self.keep(slot, if secret { b"" } else { value });
        }
    }

    fn keep(&mut self, slot: usize, value: &[u8]) {
        if self.slots[slot].is_some() {
            return;
        }
        let len = value.len().min(ROOM - self.used);
        self.bytes[self.used..self.used + len].copy_from_slice(&value[..len]);
        self.slots[slot] = Some((self.used, len));
        self.used += len;
    }

    pub fn setting(&self, key: Key) -> Option<&[u8]> {
        self.slot(key as usize)
    }

    pub fn extra(&self, name: Extra) -> Option<&[u8]> {
        self.slot(TABLE.len() + name as usize)
    }

    fn slot(&self, slot: usize) -> Option<&[u8]> {
        self.slots[slot].map(|(start, len)| &self.bytes[start..start + len])
    }

    /// True when NVFlare's client API was announced to this process.
    pub fn is_trainer(&self) -> bool {
        self.extra(Extra::ClientApiBootstrap).is_some()
            || self.extra(Extra::ClientApiType) == Some(b"EX_PROCESS_API")
    }
}

/// A set-user-id program must not be steered by the environment.
pub fn is_secure() -> bool {
    // SAFETY: getauxval reads a table that the loader filled before any code ran.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// True until libc has taken over the environment, just before the first constructors.
pub fn is_before_libc() -> bool {
    // SAFETY: reading the variable itself.
    unsafe { environ }.is_null()
}

/// The `NAME=value` strings of the process.
fn entries() -> impl Iterator<Item = &'static [u8]> {
    // SAFETY: reading the variable itself; libc sets it while the process is single-threaded.
    let known = unsafe { environ };
    let vector = if known.is_null() {
        initial_environment()
    } else {
        known
    };
    strings(vector)
}

/// The arguments of the process as the kernel gave them.
pub fn arguments() -> impl Iterator<Item = &'static [u8]> {
    strings(initial_stack().map_or(ptr::null(), |(_, argv)| argv))
}

fn initial_environment() -> *const *const c_char {
    initial_stack().map_or(ptr::null(), |(argc, argv)| {
        // SAFETY: on the initial stack envp follows argv and its terminating NULL.
        unsafe { argv.add(argc + 1) }
    })
}

/// An address inside the dynamic loader.
pub fn loader_address() -> *const c_void {
    (&raw const __libc_stack_end).cast()
}

/// `argc` and `argv` on the initial stack.
fn initial_stack() -> Option<(usize, *const *const c_char)> {
    // SAFETY: the loader sets the variable before it calls into any library.
    let base = unsafe { __libc_stack_end }.cast::<usize>();
    if base.is_null() {
        return None;
    }
    // SAFETY: the ABI puts argc, one word, at the stack pointer of process entry, then argv.
    unsafe { Some((*base, base.add(1).cast())) }
}

/// The strings of a NULL-terminated vector; none for a null pointer.
fn strings(vector: *const *const c_char) -> impl Iterator<Item = &'static [u8]> {
    let mut next = 0;
    std::iter::from_fn(move || {
        if vector.is_null() {
            return None;
        }
        // SAFETY: all entries before the terminating NULL were taken in earlier steps, and the
        // iterator ends with the first NULL.
        let string = unsafe { *vector.add(next) };
        next += 1;
        // SAFETY: entries of argv and environ are NUL-terminated strings.
        (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_bytes())
    })
}
