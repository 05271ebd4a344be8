//! Identifies the process: its kind in NVFlare, its role and its site. The result is kept.

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
    /// A small program such as `sed`, which scripts start by the thousand. It writes no markers.
    pub is_helper: bool,
}

impl Identity {
    pub fn proc_name(&self) -> &'static str {
        self.proc.map_or("-", Proc::name)
    }
}

/// The identity of this process. Cold paths only: the first call allocates.
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

/// The file name of the program. In a Python program, the name of its script or module. No argument is ever
/// returned. Cold paths only: the first call allocates.
pub fn program() -> Option<&'static str> {
    static PROGRAM: RacyOnceCell<Option<String>> = RacyOnceCell::new();
    let found = PROGRAM.get_or_init(|| {
        let executable = executable()?;
        let name = script(&executable).unwrap_or(executable);
        Some(marker::name_from_bytes(name.as_bytes()))
    });
    found.as_deref()
}

/// The file name of the executable according to the kernel. A program can put any text into `argv[0]`.
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

/// Uses the system call that libc uses. `std` uses `statx`, and a seccomp filter may kill the process for that.
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

/// The start time of this process in clock ticks since boot; 0 without `/proc`.
pub fn start_ticks() -> u64 {
    static PID: AtomicU64 = AtomicU64::new(0);
    static TICKS: AtomicU64 = AtomicU64::new(0);
    let pid = u64::from(std::process::id());
    // A forked child has inherited its parent's values.
    if PID.load(Relaxed) != pid {
        TICKS.store(procfs::start_ticks().unwrap_or(0), Relaxed);
        PID.store(pid, Relaxed);
    }
    TICKS.load(Relaxed)
}
