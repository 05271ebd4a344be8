//! A live process that the doctor examines: everything that is readable about it.

use std::ffi::OsString;
use std::path::Path;

use flarena_shared::role::{self, Identity, Proc, Role, Surroundings};

use super::bindings::Bindings;
use super::python;
use super::system::System;
use crate::control::{self, AskError, Request, Stats, STATS_TIMEOUT};
use crate::library::elf::Header;
use crate::library::search::FILE_NAME;
use crate::proc::{Cgroup, Environment, Mapping, Process, ReadError, Rollup, Status};

pub struct Subject {
    pub system: System,
    pub process: Process,
    pub comm: String,
    /// The executable file.
    pub program: String,
    pub status: Status,
    pub rollup: Option<Rollup>,
    /// With resident sizes, if those are readable.
    pub maps: Vec<Mapping>,
    pub arguments: Vec<OsString>,
    pub environment: Result<Environment, ReadError>,
    pub header: Option<Header>,
    /// The program got privileges from its file: the loader has ignored LD_PRELOAD.
    pub is_secure: bool,
    pub cgroup: Option<Cgroup>,
    pub bindings: Bindings,
    pub stats: Result<Stats, AskError>,
}

/// Whether the kernel's note to the loader (`AT_SECURE`) is set, in the auxiliary vector of a 64-bit process.
fn is_secure(auxv: &[u8]) -> bool {
    let words: Vec<u64> = auxv
        .chunks_exact(8)
        .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
        .collect();
    let mut pairs = words.chunks_exact(2);
    pairs.any(|pair| pair[0] == libc::AT_SECURE && pair[1] != 0)
}

/// The signs of NVFlare's client API in the environment of a process.
pub fn surroundings(get: impl Fn(&str) -> Option<OsString>) -> Surroundings {
    let kind = get("CLIENT_API_TYPE");
    Surroundings {
        has_client_api: get("NVFLARE_CLIENT_API_BOOTSTRAP").is_some()
            || kind.is_some_and(|kind| kind == "EX_PROCESS_API"),
        parent: None,
    }
}

impl Subject {
    /// Fails if not even the status and the mappings are readable.
    pub fn read(pid: i32, system: System) -> Result<Self, ReadError> {
        let process = Process::find(pid)?;
        let maps = process.smaps().or_else(|_| process.maps())?;
        let exe = process.path("exe");
        let stats = control::ask_when_open(&process, Request::Stats, STATS_TIMEOUT);
        // Read next to the statistics: the process may return memory at any time.
        let status = process.status()?;
        let program = std::fs::read_link(&exe).unwrap_or_default();
        Ok(Self {
            system,
            comm: process.comm(),
            program: program.to_string_lossy().into_owned(),
            rollup: process.rollup().ok(),
            arguments: process.arguments().unwrap_or_default(),
            environment: process.environment(),
            header: Header::read(Path::new(&exe)).ok().flatten(),
            is_secure: process.bytes("auxv").is_ok_and(|auxv| is_secure(&auxv)),
            cgroup: Cgroup::of(&process),
            bindings: Bindings::of(&process, &maps),
            stats,
            process,
            status,
            maps,
        })
    }

    pub fn get(&self, name: &str) -> Option<OsString> {
        self.environment
            .as_ref()
            .ok()?
            .get(name)
            .filter(|value| !value.is_empty())
    }

    /// The statistics, if the library answered.
    pub fn answer(&self) -> Option<&Stats> {
        self.stats.as_ref().ok()
    }

    pub fn is_python(&self) -> bool {
        python::is_python(&self.program) || self.maps_file("libpython3")
    }

    /// The library's mapping, if it is loaded.
    pub fn library(&self) -> Option<&Mapping> {
        self.maps.iter().find(|map| map.file_name() == FILE_NAME)
    }

    pub fn maps_file(&self, start_of_name: &str) -> bool {
        self.maps
            .iter()
            .any(|map| map.file_name().starts_with(start_of_name))
    }

    /// The role that the process reports, else the one of its command line.
    pub fn role(&self) -> Option<Role> {
        match self.answer().and_then(|stats| stats.text("role")) {
            Some("client") => Some(Role::Client),
            Some("server") => Some(Role::Server),
            _ => self.identity().role(),
        }
    }

    /// NVFlare's process, by its command line.
    pub fn proc(&self) -> Option<Proc> {
        self.identity().proc
    }

    fn identity(&self) -> Identity<'_> {
        role::identify(
            self.arguments.iter().map(|a| a.as_encoded_bytes()),
            surroundings(|name| self.get(name)),
        )
    }

    /// The effective value of a setting, as the process reports it.
    pub fn effective(&self, name: &str) -> Option<String> {
        let value = self
            .answer()?
            .group("settings")
            .find(|(key, _)| *key == name)?
            .1;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_auxiliary_vector_shows_a_secure_start() {
        let vector = |pairs: [u64; 6]| pairs.map(u64::to_ne_bytes).concat();
        assert!(is_secure(&vector([6, 4096, 23, 1, 0, 0])));
        assert!(!is_secure(&vector([6, 4096, 23, 0, 0, 0])));
        assert!(!is_secure(b"short"));
        assert!(!is_secure(&std::fs::read("/proc/self/auxv").unwrap()));
    }
}
