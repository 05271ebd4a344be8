//! Everything that the doctor reads: once, before the rules judge it.

use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flarena_shared::huge_pages::{Offer, Policy};
use flarena_shared::role::{self, Proc, Role, Surroundings};
use flarena_shared::settings::{self, Problem, Settings, TABLE};
use flarena_shared::system_error::reason;
use flarena_shared::{kernel_path, python_line};
use rustix::fs::Access;

use super::bindings::Bindings;
use super::jobs::Deployment;
use crate::control::{self, AskError, Request, Stats, STATS_TIMEOUT};
use crate::library::elf::Header;
use crate::library::privilege::Privilege;
use crate::library::program::Program;
use crate::library::search::FILE_NAME;
use crate::library::symbols::Malloc;
use crate::library::{self, Library, Unusable};
use crate::proc::{Cgroup, Environment, Mapping, Process, ReadError, Status};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Machine,
    Command,
    Process,
}

/// Without a process, the cgroup, the environment and the files are those of this command.
#[derive(Default)]
pub struct Subject {
    pub kind: Kind,
    pub pid: i32,
    pub huge_pages: Offer,
    pub cgroup: Option<Cgroup>,
    pub environment: Environment,
    pub arguments: Vec<OsString>,
    /// The path of the executable file. That of a command may be a script that starts it.
    pub program: String,
    /// NVFlare's process, by its command line.
    pub proc: Option<Proc>,
    /// The folder of temporary files and its size, if it is in memory.
    pub temporary: Option<(String, u64)>,
    /// The reason for which no file can be created in the folder of the marker file.
    pub marker_folder_fault: Option<String>,
    pub preloads: Vec<Preload>,

    // Of the machine and a command.
    pub library: Option<Result<Library, Unusable>>,
    pub command: Option<Program>,
    /// The program contains a malloc, which comes before each preload.
    pub has_malloc: bool,

    // Of a process.
    pub comm: String,
    pub status: Status,
    /// With resident sizes, if those are readable.
    pub maps: Vec<Mapping>,
    pub header: Option<Header>,
    /// The privilege for which the loader has ignored LD_PRELOAD.
    pub privilege: Option<Privilege>,
    pub bindings: Bindings,
    pub stats: Option<Result<Stats, AskError>>,
    pub deployment: Deployment,
}

/// An entry of LD_PRELOAD.
pub struct Preload {
    pub entry: String,
    /// Completes "LD_PRELOAD names x.so, ...".
    pub fault: Option<String>,
}

impl Subject {
    /// This machine, or with arguments a command.
    pub fn here(arguments: Vec<OsString>) -> Result<Self, ReadError> {
        let name = arguments.first();
        let kind = name.map_or(Kind::Machine, |_| Kind::Command);
        let command = name.and_then(|name| Program::of(name, std::env::var_os("PATH")));
        let path = command.as_ref().map(|program| program.path.as_path());
        let malloc = path.and_then(|path| Malloc::read(path).ok()?);
        let own = Process::find(std::process::id() as i32)?;
        Ok(Self {
            program: path.unwrap_or(Path::new("")).display().to_string(),
            library: Some(library::find()),
            has_malloc: malloc.is_some_and(|malloc| malloc.is_defined),
            command,
            ..Self::around(&own, kind, arguments)
        })
    }

    /// A live process. Fails if not even the status and the mappings are readable.
    pub fn live(pid: i32) -> Result<Self, ReadError> {
        let process = Process::find(pid)?;
        let exe = process.path("exe");
        let maps = process.smaps().or_else(|_| process.maps())?;
        let stats = control::ask_when_open(&process, Request::Stats, STATS_TIMEOUT);
        // Read next to the statistics: the process may return memory at any time.
        let status = process.status()?;
        let program = fs::read_link(&exe).unwrap_or_default();
        let is_secure = process.bytes("auxv").is_ok_and(|auxv| is_secure(&auxv));
        let has_set_id = fs::metadata(&exe).is_ok_and(|file| file.mode() & 0o6000 != 0);
        let arguments = process.arguments().unwrap_or_default();
        let mut subject = Self {
            comm: process.comm(),
            status,
            program: program.to_string_lossy().into_owned(),
            header: Header::read(&exe).ok().flatten(),
            privilege: is_secure.then_some(match has_set_id {
                true => Privilege::SetId,
                false => Privilege::FileCapabilities,
            }),
            bindings: Bindings::of(&process, &maps),
            maps,
            stats: Some(stats),
            ..Self::around(&process, Kind::Process, arguments)
        };
        subject.deployment = Deployment::of(&process, &subject);
        Ok(subject)
    }

    fn around(process: &Process, kind: Kind, arguments: Vec<OsString>) -> Self {
        let environment = process.environment().unwrap_or_default();
        let preload = environment.get("LD_PRELOAD").unwrap_or_default();
        let preload = preload.to_string_lossy();
        let entries = preload.split([':', ' ']).filter(|entry| !entry.is_empty());
        let get = |name: &str| environment.get(name);
        let words = arguments.iter().map(|word| word.as_bytes());
        let folder = temporary_folder(get, |path| process.inside(path).is_dir());
        Self {
            kind,
            pid: process.pid,
            huge_pages: Offer::read(|file, top| {
                Policy::parse(&fs::read(OsStr::from_bytes(file.to_bytes())).ok()?, top)
            }),
            cgroup: Cgroup::of(process),
            proc: role::identify(words, surroundings(get)).proc,
            temporary: folder.and_then(|folder| {
                let size = memory_behind(&process.inside(&folder))?;
                Some((folder, size))
            }),
            marker_folder_fault: environment.get("FLARENA_MARKER_FILE").and_then(|file| {
                let (folder, _) = file.to_str()?.rsplit_once('/')?;
                let is_known = folder.starts_with('/') && !folder.contains("%p");
                let folder = is_known.then(|| process.inside(folder).join("."))?;
                let fault = rustix::fs::access(folder, Access::WRITE_OK).err()?;
                Some(reason(&fault.into()))
            }),
            preloads: entries.map(|entry| Preload::read(entry, process)).collect(),
            environment,
            arguments,
            ..Self::default()
        }
    }

    /// A variable with a value.
    pub fn get(&self, name: &str) -> Option<OsString> {
        self.environment.get(name).filter(|value| !value.is_empty())
    }

    pub fn text(&self, name: &str) -> String {
        let value = self.get(name).unwrap_or_default();
        value.to_string_lossy().into_owned()
    }

    /// The settings as the library reads them.
    pub fn settings(&self, mut report: impl FnMut(Problem)) -> Settings {
        let values: Vec<_> = TABLE.iter().map(|row| self.get(row.name)).collect();
        let value = |key| values[key as usize].as_deref().map(OsStr::as_bytes);
        settings::read(value, &mut report)
    }

    /// The statistics, if the library answered.
    pub fn answer(&self) -> Option<&Stats> {
        self.stats.as_ref()?.as_ref().ok()
    }

    /// A value in a group of the statistics, such as an effective setting.
    pub fn reported(&self, group: &str, name: &str) -> Option<String> {
        let (_, value) = self.answer()?.group(group).find(|(key, _)| *key == name)?;
        let text = value.as_str().map(str::to_owned);
        text.or_else(|| Some(value.to_string()))
    }

    pub fn is_python(&self) -> bool {
        // Wrappers such as pyenv's are scripts that start Python with the same options.
        let is_wrapper = |name: &OsString| is_python(&name.to_string_lossy());
        is_python(&self.program)
            || self.maps_file("libpython3")
            || self.kind == Kind::Command && self.arguments.first().is_some_and(is_wrapper)
    }

    /// The library's mapping, if it is loaded.
    pub fn mapped_library(&self) -> Option<&Mapping> {
        self.maps.iter().find(|map| map.file_name() == FILE_NAME)
    }

    pub fn maps_file(&self, start_of_name: &str) -> bool {
        let mut names = self.maps.iter().map(Mapping::file_name);
        names.any(|name| name.starts_with(start_of_name))
    }

    /// The role that the process reports, else the one of its command line.
    pub fn role(&self) -> Option<Role> {
        let reported = self.answer().and_then(|stats| stats.text("role"));
        let reported = reported.and_then(|role| Role::parse(role.as_bytes()));
        reported.or(self.proc.map(Proc::role))
    }
}

/// Whether a path from the command line or the kernel names CPython or PyPy.
pub fn is_python(program: &str) -> bool {
    let name = kernel_path::file_name(program);
    python_line::is_interpreter(name) || name.starts_with("pypy")
}

/// The signs of NVFlare's client API in the environment of a process.
pub fn surroundings(get: impl Fn(&str) -> Option<OsString>) -> Surroundings {
    let is_bootstrapped = get("NVFLARE_CLIENT_API_BOOTSTRAP").is_some_and(|file| !file.is_empty());
    let kind = get("CLIENT_API_TYPE").unwrap_or_default();
    Surroundings {
        has_client_api: is_bootstrapped || kind == "EX_PROCESS_API",
        parent: None,
    }
}

impl Preload {
    fn read(entry: &str, process: &Process) -> Self {
        let fault = match Header::read(&process.inside(entry)) {
            // Only the loader resolves a bare name or a `$` in a path.
            _ if !entry.starts_with('/') || entry.contains('$') => None,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some("which does not exist".to_owned())
            }
            Err(error) => Some(format!("which cannot be read: {}", reason(&error))),
            Ok(None) => Some("which is not a library".to_owned()),
            Ok(Some(Header { machine, .. })) => {
                (machine != ARCH).then(|| format!("which is built for {machine}"))
            }
        };
        let entry = entry.to_owned();
        Self { entry, fault }
    }
}

/// The folder that Python's tempfile chooses.
fn temporary_folder(
    get: impl Fn(&str) -> Option<OsString>,
    is_folder: impl Fn(&str) -> bool,
) -> Option<String> {
    let named = ["TMPDIR", "TEMP", "TMP"].into_iter().filter_map(get);
    let usual = ["/tmp", "/var/tmp", "/usr/tmp"].map(OsString::from);
    let folders = named.chain(usual);
    let mut folders = folders.filter_map(|path| path.into_string().ok());
    folders.find(|path| path.starts_with('/') && is_folder(path))
}

/// The size of the file system if it is a tmpfs or ramfs.
fn memory_behind(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statfs(folder).ok()?;
    let is_memory = [0x0102_1994, 0x8584_58f6].contains(&(found.f_type as u64 & 0xffff_ffff));
    is_memory.then(|| found.f_blocks * found.f_bsize as u64)
}

/// Whether the kernel's note to the loader (`AT_SECURE`) is set, in the auxiliary vector of a 64-bit process.
fn is_secure(auxv: &[u8]) -> bool {
    let (words, _) = auxv.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let mut pairs = words.chunks_exact(2);
    pairs.any(|pair| pair[0] == libc::AT_SECURE && pair[1] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn only_cpython_and_pypy_are_python() {
        for program in [
            "/usr/bin/python3.11",
            "/opt/python3.13t (deleted)",
            "python",
            "/usr/bin/pypy3",
        ] {
            assert!(is_python(program), "{program}");
        }
        for program in [
            "/usr/bin/python-language-server",
            "/opt/pythonapp",
            "/usr/bin/python3.11/true",
            "",
        ] {
            assert!(!is_python(program), "{program}");
        }
    }

    #[test]
    fn the_auxiliary_vector_shows_a_secure_start() {
        let vector = |pairs: [u64; 6]| pairs.map(u64::to_ne_bytes).concat();
        assert!(is_secure(&vector([6, 4096, 23, 1, 0, 0])));
        assert!(!is_secure(&vector([6, 4096, 23, 0, 0, 0])));
        assert!(!is_secure(b"short"));
        assert!(!is_secure(&fs::read("/proc/self/auxv").unwrap()));
    }

    #[test]
    fn the_folder_of_temporary_files_is_the_one_that_python_chooses() {
        let chosen = |set: &[(&str, &str)], there: &[&str]| {
            let get = |name: &str| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            temporary_folder(get, |path| there.contains(&path))
        };
        let set = [("TMP", "/c"), ("TMPDIR", "/a"), ("TEMP", "b")];
        assert_eq!(chosen(&set, &["/a", "/c", "/tmp"]).as_deref(), Some("/a"));
        assert_eq!(chosen(&set, &["b", "/c", "/tmp"]).as_deref(), Some("/c"));
        assert_eq!(chosen(&set, &["/var/tmp"]).as_deref(), Some("/var/tmp"));
        assert_eq!(chosen(&[], &[]), None);
        assert!(memory_behind(Path::new("/proc")).is_none());
    }

    #[test]
    fn a_preload_is_a_library_that_can_be_read() {
        let own = Process::find(std::process::id() as i32).unwrap();
        let maps = own.maps().unwrap();
        let libc = maps.iter().find(|map| map.file_name() == "libc.so.6");
        let libc = Preload::read(&libc.unwrap().name, &own);
        assert!(libc.fault.is_none());
        let scratch = Scratch::new();
        let text = scratch.write("libflarena.so", "text");
        let text = Preload::read(text.to_str().unwrap(), &own);
        assert_eq!(text.fault.as_deref(), Some("which is not a library"));
        let missing = Preload::read("/nowhere/x.so", &own);
        assert_eq!(missing.fault.as_deref(), Some("which does not exist"));
        assert!(Preload::read("libm.so.6", &own).fault.is_none());
        assert!(Preload::read("/x/$LIB/x.so", &own).fault.is_none());
    }

    #[test]
    fn the_properties_of_this_machine_are_readable() {
        let machine = Subject::here(Vec::new()).unwrap();
        assert!(machine.library.is_some());
    }
}
