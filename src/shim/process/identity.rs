//! Which process this is: NVFlare's name for it, its role and site. Found once, at load.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flarena_shared::defaults;
use flarena_shared::marker;
use flarena_shared::role::{self, Proc, Role};

use crate::process::found::Found;
use crate::process::{config, env, procfs};

pub struct Identity {
    pub proc: Option<Proc>,
    pub role: Option<Role>,
    pub site: Option<String>,
    /// A small program that scripts start by the thousand.
    pub is_helper: bool,
}

impl Identity {
    pub fn proc_name(&self) -> &'static str {
        self.proc.map_or("-", Proc::name)
    }
}

/// Cold paths only: the first call allocates.
pub fn identity() -> &'static Identity {
    static IDENTITY: Found<Identity> = Found::new();
    IDENTITY.get_or_find(|| {
        let found = role::identify(env::arguments(), config::environment().is_trainer());
        Identity {
            proc: found.proc,
            role: config::settings().role.or(found.role()),
            site: found
                .site
                .map(|site| String::from_utf8_lossy(site).into_owned()),
            is_helper: found.proc.is_none() && is_helper(),
        }
    })
}

/// The file name of the program, told by the kernel: what argv says may hold more.
pub fn program() -> Option<&'static str> {
    static PROGRAM: Found<Option<String>> = Found::new();
    let found = PROGRAM.get_or_find(|| {
        let path = std::fs::read_link("/proc/self/exe").ok()?;
        let name = path.file_name()?.to_string_lossy();
        let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
        Some(marker::name_from_bytes(name.as_bytes()))
    });
    found.as_deref()
}

fn is_helper() -> bool {
    let program = env::arguments().next().unwrap_or_default();
    let name = program.rsplit(|&b| b == b'/').next().unwrap_or_default();
    // A login shell is called `-bash`.
    let name = name.strip_prefix(b"-").unwrap_or(name);
    defaults::HELPERS
        .iter()
        .any(|helper| helper.as_bytes() == name)
}

/// Start of this process in clock ticks since boot; 0 without `/proc`.
pub fn start_ticks() -> u64 {
    static PID: AtomicU64 = AtomicU64::new(0);
    static TICKS: AtomicU64 = AtomicU64::new(0);
    let pid = u64::from(std::process::id());
    // A forked child is another process with a start of its own.
    if PID.load(Relaxed) != pid {
        TICKS.store(procfs::start_ticks().unwrap_or(0), Relaxed);
        PID.store(pid, Relaxed);
    }
    TICKS.load(Relaxed)
}
