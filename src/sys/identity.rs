//! Identifies the process: its kind in NVFlare, its role and its site. The result is kept.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use flarena_shared::marker::{self, ShortHash};
use flarena_shared::role::{self, Proc, Receiver, Role, Surroundings};
use flarena_shared::settings::Key;
use flarena_shared::{defaults, fnv, kernel_path, python_line};
use rustix::fs::{statat, AtFlags, FileType, CWD};

use crate::env::{Extra, Snapshot};
use crate::sync::racy_once::RacyOnceCell;
use crate::{config, env, proc::procfs, seccomp};

// Fields that a process passes to its children (`Snapshot::inherited`).

/// The pid of the first process with the library.
pub const FIRST: &str = "first";
/// The pid and the name of the process that has the name in the environment.
pub const NAMED: &str = "named";
/// The nearest NVFlare process above.
pub const NEAREST: &str = "nearest";
/// The id of the job that it works for.
pub const JOB: &str = "job";

/// The identity at the start of the program.
pub struct Identity {
    pub proc: Option<Proc>,
    role: Option<Role>,
    pub site: Option<String>,
    /// A UUID.
    pub job_id: Option<String>,
    name: Option<String>,
    /// The name is this process's own, and not that of a process above it.
    has_own_name: bool,
    /// A small program such as `sed`, which scripts start by the thousand. It writes no markers.
    pub is_helper: bool,
    /// A program that is neither Python nor NVFlare's, started by another program with the library.
    /// Most are small helpers such as `lscpu`.
    pub is_native_child: bool,
}

/// True in the child of a fork.
static IS_FORK: AtomicBool = AtomicBool::new(false);
/// The process that has received a model by NVFlare's client API; 0 for none.
static RECEIVER: AtomicU32 = AtomicU32::new(0);

/// The short form of the job of which this process has received a model; 0 for none.
static RECEIVED_JOB: AtomicU64 = AtomicU64::new(0);

/// Called in the child of a fork.
pub fn after_fork_in_child() {
    IS_FORK.store(true, Relaxed);
    // In a new pid namespace the child may have the pid of its parent.
    MEASURED_PID.store(0, Relaxed);
}

/// Notes that this process receives models by NVFlare's client API.
pub fn note_trainer() {
    RECEIVER.store(std::process::id(), Relaxed);
}

/// Notes the id of the job of which this process has received a model.
pub fn note_job(id: &[u8]) {
    let short = role::short_job(id).map_or(0, u64::from_le_bytes);
    RECEIVED_JOB.store(short, Relaxed);
}

impl Identity {
    /// The NVFlare process as it is now, or `-`.
    pub fn proc_name(&self) -> &'static str {
        self.current_proc().map_or("-", Proc::name)
    }

    fn current_proc(&self) -> Option<Proc> {
        let receiver = match RECEIVER.load(Relaxed) {
            0 => Receiver::None,
            pid if pid == std::process::id() => Receiver::This,
            _ => Receiver::Parent,
        };
        role::current(self.proc, IS_FORK.load(Relaxed), receiver)
    }

    pub fn role(&self) -> Option<Role> {
        self.role.or_else(|| self.current_proc().map(Proc::role))
    }

    /// The first 8 characters of the job's id.
    pub fn job(&self) -> Option<String> {
        let short = match RECEIVED_JOB.load(Relaxed) {
            0 => role::short_job(self.job_id.as_ref()?.as_bytes())?,
            received => received.to_le_bytes(),
        };
        Some(String::from_utf8_lossy(&short).into_owned())
    }

    /// The value of [`NAMED`] for the children of this process; `None` without a name of its own.
    pub fn named(&self) -> Option<String> {
        let name = self.name.as_ref().filter(|_| self.has_own_name)?;
        Some(format!("{}:{}", own_pid(), without_separators(name)))
    }

    /// The name by `FLARENA_NAME`: `trainer-3`, or `trainer-3/worker` in a fork.
    pub fn name(&self) -> Option<String> {
        let name = self.name.as_ref()?;
        Some(match IS_FORK.load(Relaxed) {
            true => format!("{name}/worker"),
            false => name.clone(),
        })
    }
}

/// The identity of this process. Cold paths only: the first call allocates.
pub fn identity() -> &'static Identity {
    static IDENTITY: RacyOnceCell<Identity> = RacyOnceCell::new();
    IDENTITY.get_or_init(|| {
        let environment = config::environment();
        let is_helper = is_helper();
        let parent = environment.inherited(NEAREST).and_then(Proc::parse);
        let has_client_api = environment.is_trainer() && !is_helper;
        let surroundings = Surroundings {
            // A trainer starts programs that inherit its environment.
            has_client_api: has_client_api && (parent != Some(Proc::Trainer) || is_python()),
            parent,
        };
        let found = role::identify(env::arguments(), surroundings);
        let is_unknown = found.proc.is_none();
        let own_name = own_name(environment);
        let parents_job = environment.inherited(JOB);
        let parents_job = parents_job.filter(|id| role::short_job(id).is_some());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Identity {
            proc: found.proc,
            role: config::settings().role.or(found.role()),
            site: found.site.map(text),
            job_id: found.job_id.or(parents_job).map(text),
            has_own_name: own_name.is_some(),
            name: own_name.or_else(|| name_below(environment).filter(|_| is_unknown)),
            is_helper: is_unknown && is_helper,
            is_native_child: is_unknown && is_child(environment) && !is_python(),
        }
    })
}

/// True if another process with the library has started this one. A program that `exec` started in
/// the first process is no child.
fn is_child(environment: &Snapshot) -> bool {
    let first = environment.inherited(FIRST);
    first.is_some_and(|pid| pid != own_pid().as_bytes())
}

fn own_pid() -> String {
    std::process::id().to_string()
}

/// The name in the environment if it is this process's own, and not that of the process that
/// started it.
fn own_name(environment: &Snapshot) -> Option<String> {
    let name = name_in(environment)?;
    let is_launched = environment.extra(Extra::Launched) == Some(own_pid().as_bytes());
    let named = environment.inherited(NAMED).map(String::from_utf8_lossy);
    let is_own = match named.as_deref().and_then(|named| named.split_once(':')) {
        Some((pid, of)) => pid == own_pid() || of != without_separators(&name),
        None => true,
    };
    (is_launched || is_own).then_some(name)
}

/// The name of a program that the named process has started: `trainer-3/lscpu`.
fn name_below(environment: &Snapshot) -> Option<String> {
    let name = name_in(environment)?;
    program().map(|program| format!("{name}/{program}"))
}

fn name_in(environment: &Snapshot) -> Option<String> {
    let name = environment.setting(Key::Name)?.trim_ascii();
    (!name.is_empty()).then(|| marker::name_from_bytes(name))
}

/// A semicolon would end the field.
fn without_separators(name: &str) -> String {
    name.replace(';', "_")
}

fn is_python() -> bool {
    executable().is_some_and(|name| python_line::is_interpreter(&name))
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

/// The process that this one is.
#[derive(Clone, Copy)]
pub struct Process {
    pub pid: u32,
    /// In clock ticks since boot; 0 without `/proc`.
    pub start: u64,
    /// Tells it from a process with the same pid and start on another machine or in another container.
    pub boot: Option<ShortHash>,
}

/// The process in which the two values below were read: a child of a fork has inherited them.
static MEASURED_PID: AtomicU32 = AtomicU32::new(0);
static START: AtomicU64 = AtomicU64::new(0);
/// 0: unknown.
static BOOT: AtomicU32 = AtomicU32::new(0);

pub fn process() -> Process {
    let pid = std::process::id();
    if MEASURED_PID.load(Relaxed) != pid {
        START.store(procfs::start_ticks().unwrap_or(0), Relaxed);
        // A process that has restricted itself keeps what it or its parent knew.
        if seccomp::allows_common_calls() {
            BOOT.store(hash_of_boot_and_namespaces().unwrap_or(0), Relaxed);
        }
        MEASURED_PID.store(pid, Relaxed);
    }
    Process {
        pid,
        start: START.load(Relaxed),
        boot: Some(BOOT.load(Relaxed))
            .filter(|hash| *hash != 0)
            .map(ShortHash),
    }
}

/// Containers that share a pid namespace have control groups of their own.
fn hash_of_boot_and_namespaces() -> Option<u32> {
    let mut buffer = [0; 64];
    let boot_id = procfs::read_file(c"/proc/sys/kernel/random/boot_id", &mut buffer)?;
    let inode = |path| Some(statat(CWD, path, AtFlags::empty()).ok()?.st_ino);
    let (pid, cgroup) = (inode(c"/proc/self/ns/pid")?, inode(c"/proc/self/ns/cgroup"));
    let hash = fnv::append(fnv::EMPTY, boot_id);
    let hash = fnv::append(hash, &pid.to_le_bytes());
    let hash = fnv::append(hash, &cgroup.unwrap_or(0).to_le_bytes());
    Some(fnv::short(hash))
}
