//! One process and its files.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use flarena_shared::system_error::reason;

use super::maps::{parse_maps, Mapping};
use super::status::{Rollup, Status};

/// Why a process could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("no process {0} here")]
    Gone(i32),
    #[error("process {0} may not be read from here: ask as its own user, or as root of the host")]
    Denied(i32),
    #[error("process {pid}: {name}: {}", reason(source))]
    Other {
        pid: i32,
        name: String,
        source: io::Error,
    },
}

/// One process, named by its id and its start, because ids are used again.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    pub start_ticks: u64,
    dir: PathBuf,
}

/// A process id as a person types it.
pub fn parse_pid(text: &str) -> Result<i32, String> {
    let pid = text.parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| "write a process id, such as 4242; flarena top lists them".to_owned())
}

impl Process {
    pub fn find(pid: i32) -> Result<Self, ReadError> {
        Self::find_under(Path::new("/proc"), pid)
    }

    fn find_under(proc: &Path, pid: i32) -> Result<Self, ReadError> {
        let mut process = Self {
            pid,
            start_ticks: 0,
            dir: proc.join(pid.to_string()),
        };
        let stat = process.text("stat")?;
        process.start_ticks = start_ticks(&stat).ok_or(ReadError::Gone(pid))?;
        Ok(process)
    }

    /// Every process that `/proc` shows.
    pub fn all() -> Vec<Self> {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Self::find(pid).ok())
            .collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A path as the process sees it, through its own root: it may live in a container.
    pub fn inside(&self, path: &str) -> PathBuf {
        self.dir.join("root").join(path.trim_start_matches('/'))
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

    /// The name the kernel shows, never the arguments: they hold tokens.
    pub fn comm(&self) -> String {
        self.text("comm")
            .map_or_else(|_| "?".to_owned(), |comm| comm.trim_end().to_owned())
    }

    pub fn status(&self) -> Result<Status, ReadError> {
        self.text("status").map(|text| Status::parse(&text))
    }

    pub fn rollup(&self) -> Result<Rollup, ReadError> {
        self.text("smaps_rollup").map(|text| Rollup::parse(&text))
    }

    pub fn maps(&self) -> Result<Vec<Mapping>, ReadError> {
        self.text("maps").map(|text| parse_maps(&text))
    }

    /// Mappings with what is resident of each: costs time in proportion to the process.
    pub fn smaps(&self) -> Result<Vec<Mapping>, ReadError> {
        self.text("smaps").map(|text| parse_maps(&text))
    }

    /// For judging only; nobody prints it: of it only a name (`Process::script`).
    pub fn arguments(&self) -> Result<Vec<OsString>, ReadError> {
        self.bytes("cmdline").map(|bytes| split_at_nul(&bytes))
    }

    /// Looks up single names; the whole never leaves this function.
    pub fn environment(&self) -> Result<Environment, ReadError> {
        self.bytes("environ")
            .map(|bytes| Environment(split_at_nul(&bytes)))
    }

    /// The id by which the process knows itself: the last of `NSpid`.
    pub fn own_pid(&self) -> i32 {
        self.status()
            .ok()
            .and_then(|status| status.own_pid())
            .unwrap_or(self.pid)
    }

    pub fn network_namespace(&self) -> Option<PathBuf> {
        fs::read_link(self.path("ns/net")).ok()
    }
}

/// The environment a process started with.
pub struct Environment(Vec<OsString>);

impl Environment {
    pub fn names(&self) -> impl Iterator<Item = OsString> + '_ {
        self.0.iter().filter_map(|entry| {
            let name = entry
                .as_encoded_bytes()
                .split(|byte| *byte == b'=')
                .next()?;
            Some(OsString::from_vec(name.to_vec()))
        })
    }

    pub fn get(&self, name: &str) -> Option<OsString> {
        self.0.iter().find_map(|entry| {
            let value = entry
                .as_encoded_bytes()
                .strip_prefix(name.as_bytes())?
                .strip_prefix(b"=")?;
            Some(OsString::from_vec(value.to_vec()))
        })
    }
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

/// Field 22 of `stat`. The name in field 2 may itself hold spaces and parentheses.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_start_time() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 9876 1 2";
        assert_eq!(start_ticks(stat), Some(9876));
    }

    #[test]
    fn a_process_that_is_not_there_is_gone() {
        assert!(matches!(Process::find(i32::MAX), Err(ReadError::Gone(_))));
    }

    #[test]
    fn an_environment_name_is_matched_whole() {
        let environment = Environment(split_at_nul(b"AB=1\0A=2=3\0EMPTY=\0"));
        assert_eq!(environment.get("A"), Some("2=3".into()));
        assert_eq!(environment.get("EMPTY"), Some("".into()));
        assert_eq!(environment.get("B"), None);
    }

    #[test]
    fn this_process_knows_itself() {
        let pid = std::process::id() as i32;
        let process = Process::find(pid).unwrap();
        assert_eq!(process.own_pid(), pid);
        assert!(process.start_ticks > 0);
    }
}
