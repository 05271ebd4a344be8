//! One process, and the files of its `/proc` directory.
//!
//! The command line can contain tokens. Only the file name of an existing script or the name of a
//! module leaves this module, never an argument or code (`-c`).

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use flarena_shared::system_error::reason;
use flarena_shared::{kernel_path, python_line};
use serde::Serialize;

use super::files::{kilobytes, parse_maps, Mapping, Stat, Status};

/// Why a process could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is no process {0}")]
    Gone(i32),
    #[error(
        "no permission to read process {0}: try again as the user of the process, or as root of the host"
    )]
    Denied(i32),
    #[error("process {pid}: {name}: {}", reason(source))]
    Other {
        pid: i32,
        name: String,
        source: io::Error,
    },
}

/// One process, identified by its pid and its start time, because pids are reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Process {
    pub pid: i32,
    #[serde(skip)]
    pub start_ticks: u64,
}

/// Parses a process id from the command line.
pub fn parse_pid(text: &str) -> Result<i32, String> {
    let pid = text.parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| "write a process id, such as 4242; flarena top lists them".to_owned())
}

impl Process {
    pub fn find(pid: i32) -> Result<Self, ReadError> {
        let start_ticks = 0;
        let start_ticks = Self { pid, start_ticks }.stat()?.start_ticks;
        Ok(Self { pid, start_ticks })
    }

    /// Every process in `/proc`.
    pub fn all() -> Vec<Self> {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Self::find(pid).ok())
            .collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// The place of a file of the process's file system, which may be that of a container.
    pub fn inside(&self, path: &str) -> PathBuf {
        self.path("root").join(path.trim_start_matches('/'))
    }

    /// The place of a path that the process names: in its file system, and relative to its directory.
    pub fn resolve(&self, path: &OsStr) -> PathBuf {
        match Path::new(path).strip_prefix("/") {
            Ok(rest) => self.path("root").join(rest),
            Err(_) => self.path("cwd").join(path),
        }
    }

    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        fs::read(self.path(name)).map_err(|source| self.explain(name, source))
    }

    pub fn text(&self, name: &str) -> Result<String, ReadError> {
        self.bytes(name)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn explain(&self, name: &str, source: io::Error) -> ReadError {
        match (source.kind(), source.raw_os_error()) {
            (io::ErrorKind::NotFound, _) | (_, Some(libc::ESRCH)) => ReadError::Gone(self.pid),
            (io::ErrorKind::PermissionDenied, _) => ReadError::Denied(self.pid),
            _ => ReadError::Other {
                pid: self.pid,
                name: name.to_owned(),
                source,
            },
        }
    }

    /// The kernel's name of the process. Never its arguments, which can contain tokens.
    pub fn comm(&self) -> String {
        self.text("comm")
            .map_or_else(|_| "?".to_owned(), |comm| comm.trim_end().to_owned())
    }

    pub fn status(&self) -> Result<Status, ReadError> {
        self.text("status").map(|text| Status::parse(&text))
    }

    pub fn stat(&self) -> Result<Stat, ReadError> {
        Stat::parse(&self.text("stat")?).ok_or(ReadError::Gone(self.pid))
    }

    /// Whether it is gone or a zombie, or another process has its pid.
    pub fn has_ended(&self) -> bool {
        self.is_end(self.stat())
    }

    fn is_end(&self, stat: Result<Stat, ReadError>) -> bool {
        match stat {
            Ok(stat) => stat.is_zombie || stat.start_ticks != self.start_ticks,
            Err(error) => matches!(error, ReadError::Gone(_)),
        }
    }

    /// The proportional set size, which `status` lacks; 0 without memory.
    pub fn pss_bytes(&self) -> Result<u64, ReadError> {
        let rollup = self.text("smaps_rollup")?;
        Ok(kilobytes(&rollup, "Pss").unwrap_or(0))
    }

    pub fn maps(&self) -> Result<Vec<Mapping>, ReadError> {
        self.text("maps").map(|text| parse_maps(&text))
    }

    /// Mappings with their resident sizes. The cost grows with the size of the process.
    pub fn smaps(&self) -> Result<Vec<Mapping>, ReadError> {
        self.text("smaps").map(|text| parse_maps(&text))
    }

    /// The command line. Only a program's name may be printed from it (`Process::script`).
    pub fn arguments(&self) -> Result<Vec<OsString>, ReadError> {
        self.bytes("cmdline").map(|bytes| split_at_nul(&bytes))
    }

    /// The environment at the start of the process, for lookups of single names.
    pub fn environment(&self) -> Result<Environment, ReadError> {
        self.bytes("environ")
            .map(|bytes| Environment::parse(&bytes))
    }

    /// The pid in the process's own pid namespace: the last of `NSpid`.
    pub fn own_pid(&self) -> i32 {
        let status = self.status().ok();
        status.and_then(|status| status.own_pid).unwrap_or(self.pid)
    }

    /// The start time in the process's own time namespace.
    pub fn own_start_ticks(&self) -> u64 {
        static OURS: LazyLock<i64> = LazyLock::new(|| {
            let offsets = fs::read_to_string("/proc/self/timens_offsets");
            boottime_ticks(&offsets.unwrap_or_default())
        });
        let theirs = self.text("timens_offsets").unwrap_or_default();
        let offset = boottime_ticks(&theirs) - *OURS;
        self.start_ticks.saturating_add_signed(offset)
    }

    pub fn network_namespace(&self) -> Option<PathBuf> {
        fs::read_link(self.path("ns/net")).ok()
    }

    /// The script or module of a Python process, else the kernel's name.
    pub fn name(&self) -> String {
        let comm = self.comm();
        self.script(&comm).unwrap_or(comm)
    }

    /// The file name of the script that Python runs, or its module. `None` if the process set its
    /// own name.
    pub fn script(&self, comm: &str) -> Option<String> {
        let is_generic = python_line::is_interpreter(comm) || comm == "pt_main_thread";
        if !is_generic || !self.is_python() {
            return None;
        }
        let arguments = self.arguments().ok()?;
        let words = arguments.iter().map(|word| word.as_bytes());
        // In its container, and relative to its directory.
        let is_file = |path: &[u8]| self.resolve(OsStr::from_bytes(path)).is_file();
        python_line::read(words).program(is_file)
    }

    /// Whether the executable file is Python. The first argument may be any text.
    fn is_python(&self) -> bool {
        let exe = fs::read_link(self.path("exe")).unwrap_or_default();
        python_line::is_interpreter(kernel_path::file_name(&exe.to_string_lossy()))
    }
}

/// The environment at the start of a process: names and values.
#[derive(Debug, Default)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    pub fn parse(bytes: &[u8]) -> Self {
        let pair = |entry: &[u8]| {
            let equals = entry.iter().position(|byte| *byte == b'=')?;
            let parts = (entry[..equals].to_vec(), entry[equals + 1..].to_vec());
            Some((OsString::from_vec(parts.0), OsString::from_vec(parts.1)))
        };
        Self(bytes.split(|byte| *byte == 0).filter_map(pair).collect())
    }

    pub fn names(&self) -> impl Iterator<Item = OsString> + '_ {
        self.0.iter().map(|(name, _)| name.clone())
    }

    pub fn get(&self, name: &str) -> Option<OsString> {
        let pair = self.0.iter().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.clone())
    }
}

/// The line `boottime SECONDS NANOSECONDS` of `/proc/PID/timens_offsets`, in clock ticks; 0 without it.
fn boottime_ticks(offsets: &str) -> i64 {
    let line = offsets
        .lines()
        .find_map(|line| line.strip_prefix("boottime"));
    let fields = line.unwrap_or_default().split_ascii_whitespace();
    let mut numbers = fields.map(|field| field.parse().unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    let per_second = rustix::param::clock_ticks_per_second() as i64;
    let (seconds, nanoseconds): (i64, i64) = (number(), number());
    seconds * per_second + nanoseconds * per_second / 1_000_000_000
}

fn split_at_nul(bytes: &[u8]) -> Vec<OsString> {
    let whole = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if whole.is_empty() {
        return Vec::new();
    }
    whole
        .split(|byte| *byte == 0)
        .map(|part| OsString::from_vec(part.to_vec()))
        .collect()
}

/// The name, as `ps` shows it; the number for a user without a name.
pub fn user_name(uid: u32) -> String {
    const LONGEST_ENTRY: usize = 16 << 10;
    let mut buffer = [0; LONGEST_ENTRY];
    // SAFETY: `passwd` is plain data, and zeroes are a valid value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live values, and the length is that of the buffer.
    let error = unsafe {
        libc::getpwuid_r(
            uid,
            &mut entry,
            buffer.as_mut_ptr(),
            buffer.len(),
            &mut found,
        )
    };
    if error != 0 || found.is_null() || entry.pw_name.is_null() {
        return uid.to_string();
    }
    // SAFETY: the call succeeded, so the name is a NUL-terminated string in `buffer`.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_process_is_reported_as_gone() {
        assert!(matches!(Process::find(i32::MAX), Err(ReadError::Gone(_))));
    }

    #[test]
    fn a_process_has_ended_if_its_pid_is_free_or_reused_but_not_if_it_cannot_be_read() {
        let mut own = Process::find(std::process::id() as i32).unwrap();
        assert!(!own.has_ended());
        own.start_ticks += 1;
        assert!(own.has_ended());
        assert!(own.is_end(Err(ReadError::Gone(own.pid))));
        assert!(!own.is_end(Err(ReadError::Denied(own.pid))));
    }

    #[test]
    fn a_variable_is_found_only_by_its_whole_name() {
        let environment = Environment::parse(b"AB=1\0A=2=3\0EMPTY=\0");
        assert_eq!(environment.get("A"), Some("2=3".into()));
        assert_eq!(environment.get("EMPTY"), Some("".into()));
        assert_eq!(environment.get("B"), None);
    }

    #[test]
    fn this_process_is_found_with_its_own_pid_and_start_time() {
        let pid = std::process::id() as i32;
        let process = Process::find(pid).unwrap();
        assert_eq!(process.own_pid(), pid);
        assert!(process.start_ticks > 0);
        assert_eq!(process.own_start_ticks(), process.start_ticks);
    }

    #[test]
    fn the_offset_of_the_boot_time_is_found_in_ticks() {
        let ticks = rustix::param::clock_ticks_per_second() as i64;
        let offsets = "monotonic           9         0\nboottime          -3 500000000\n";
        assert_eq!(boottime_ticks(offsets), ticks / 2 - 3 * ticks);
        assert_eq!(boottime_ticks(""), 0);
    }

    #[test]
    fn a_user_without_a_name_is_shown_by_its_number() {
        assert_eq!(user_name(0), "root");
        assert_eq!(user_name(4_000_000_123), "4000000123");
    }
}
