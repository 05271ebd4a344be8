//! Which process this is: NVFlare's name for it, its role and site. Found once, at load.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flarena_shared::role::{self, Proc, Role};
use flarena_shared::{defaults, kernel_path, marker, python_line};
use rustix::fs::{statat, AtFlags, FileType, CWD};

use crate::sync::racy_once::RacyOnceCell;
use crate::{config, env, proc::procfs};

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
    static IDENTITY: RacyOnceCell<Identity> = RacyOnceCell::new();
    IDENTITY.get_or_init(|| {
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

/// The file name of the program, of a Python program that of its script or module; never an argument. Cold paths only.
pub fn program() -> Option<&'static str> {
    static PROGRAM: RacyOnceCell<Option<String>> = RacyOnceCell::new();
    let found = PROGRAM.get_or_init(|| {
        let executable = executable()?;
        let name = script(&executable).unwrap_or(executable);
        Some(marker::name_from_bytes(name.as_bytes()))
    });
    found.as_deref()
}

/// The file name of the executable, told by the kernel: what argv says may be another program's.
fn executable() -> Option<String> {
    let path = std::fs::read_link("/proc/self/exe").ok()?;
    Some(kernel_path::file_name(&path.to_string_lossy()).to_owned())
}

fn script(executable: &str) -> Option<String> {
    if !python_line::is_interpreter(executable) {
        return None;
    }
    python_line::read(env::arguments()).program(is_file)
}

/// By the call that libc makes, too: std asks by statx, which a list of permitted calls may kill for.
fn is_file(path: &[u8]) -> bool {
    let found = CString::new(path).map(|path| statat(CWD, path.as_c_str(), AtFlags::empty()));
    matches!(found, Ok(Ok(found)) if FileType::from_raw_mode(found.st_mode).is_file())
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
