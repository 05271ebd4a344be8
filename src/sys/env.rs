//! Reads the environment of the process once, without allocating.
//!
//! The first `malloc` may come before libc has set `environ`. Then the initial stack is read, where the
//! kernel put the environment; the loader exports its address. Values are copied, because programs
//! such as `setproctitle` overwrite the original.

use std::ffi::{c_char, CStr};
use std::ptr;

use flarena_shared::settings::{Key, REMOVED_NAME, TABLE};

use crate::loader::glibc;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Variables that are read although they are not in the settings table.
#[derive(Clone, Copy)]
pub enum Extra {
    /// Set by a parent process with this library, for its children.
    Inherited,
    /// Set by `flarena run` and `sub_start.sh` in the process that the user started.
    Launched,
    /// Set by `flarena run` and `sub_start.sh` while they test whether the library loads.
    Probe,
    /// Set by NVFlare 2.8 and earlier in an external trainer. The value is kept.
    ClientApiType,
    /// Set by NVFlare 2.9 in an external trainer. The value contains a token, so only its presence is kept.
    ClientApiBootstrap,
    /// glibc's own settings.
    GlibcTunables,
    /// The older name of a tunable.
    GlibcPerturb,
    /// Set by systemd in a service.
    ServiceInvocation,
    /// Set by container engines.
    Container,
    /// Set by Kubernetes in every container.
    Kubernetes,
    /// A setting of earlier versions.
    Removed,
}

const EXTRAS: [&str; 11] = [
    INHERITED,
    "FLARENA_LAUNCHED",
    "FLARENA_PROBE",
    "CLIENT_API_TYPE",
    "NVFLARE_CLIENT_API_BOOTSTRAP",
    "GLIBC_TUNABLES",
    "MALLOC_PERTURB_",
    "INVOCATION_ID",
    "container",
    "KUBERNETES_SERVICE_HOST",
    REMOVED_NAME,
];

pub const INHERITED: &str = "FLARENA_INHERITED";

const SLOTS: usize = TABLE.len() + EXTRAS.len();
/// Enough for all usual values. A value that does not fit is cut.
const CAPACITY: usize = 24 << 10;

/// Copies of the variables' values.
pub struct Snapshot {
    bytes: [u8; CAPACITY],
    used: usize,
    /// The start and length of each variable's value in `bytes`.
    slots: [Option<(usize, usize)>; SLOTS],
}

impl Snapshot {
    pub const EMPTY: Snapshot = Snapshot {
        bytes: [0; CAPACITY],
        used: 0,
        slots: [None; SLOTS],
    };

    /// Copies the known variables from the environment. If a name occurs more than once, the first one counts.
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
        let len = value.len().min(CAPACITY - self.used);
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

    /// A field of what a parent process with this library has passed on (`name=value;name=value`).
    pub fn inherited(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.extra(Extra::Inherited)?.split(|&b| b == b';');
        fields.find_map(|field| field.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// The value of `glibc.malloc.NAME` in glibc's own settings. The last one counts.
    pub fn malloc_tunable(&self, name: &str) -> Option<&[u8]> {
        let tunables = self.extra(Extra::GlibcTunables)?.split(|&b| b == b':');
        tunables.rev().find_map(|tunable| {
            let setting = tunable.strip_prefix(b"glibc.malloc.")?;
            setting.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
        })
    }

    fn slot(&self, slot: usize) -> Option<&[u8]> {
        self.slots[slot].map(|(start, len)| &self.bytes[start..start + len])
    }

    /// True if NVFlare started this process as an external trainer.
    pub fn is_trainer(&self) -> bool {
        self.extra(Extra::ClientApiBootstrap).is_some()
            || self.extra(Extra::ClientApiType) == Some(b"EX_PROCESS_API")
    }
}

/// True in a set-user-id program. Its environment must be ignored.
pub fn is_secure() -> bool {
    // SAFETY: getauxval reads a table that the loader filled before any code ran.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// True until libc sets `environ`, shortly before the first constructor runs.
pub fn is_before_libc() -> bool {
    environment_of_libc().is_null()
}

/// The `NAME=value` strings of the process.
fn entries() -> impl Iterator<Item = &'static [u8]> {
    let known = environment_of_libc();
    let vector = if known.is_null() {
        initial_environment()
    } else {
        known
    };
    strings(vector)
}

fn environment_of_libc() -> *const *const c_char {
    // SAFETY: libc exports the variable. It is read by the first malloc, before the process has threads that could
    // change it.
    unsafe { environ }
}

/// The arguments of the process, from the initial stack.
pub fn arguments() -> impl Iterator<Item = &'static [u8]> {
    strings(initial_stack().map_or(ptr::null(), |(_, argv)| argv))
}

fn initial_environment() -> *const *const c_char {
    initial_stack().map_or(ptr::null(), |(argc, argv)| {
        // SAFETY: on the initial stack envp follows argv and its terminating NULL.
        unsafe { argv.add(argc + 1) }
    })
}

/// `argc` and `argv` on the initial stack.
fn initial_stack() -> Option<(usize, *const *const c_char)> {
    // SAFETY: null, or the loader's variable, which it sets before it calls into any library. It is the place of
    // `argc` on the initial stack, before argv and envp.
    let base = unsafe { glibc::stack_end().as_ref() }.map_or(ptr::null(), |base| *base);
    if base.is_null() {
        return None;
    }
    // SAFETY: the ABI puts argc, one word, at the stack pointer of process entry, then argv.
    unsafe { Some((*base, base.add(1).cast())) }
}

/// The strings of a NULL-terminated array; none for a null pointer.
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
