//! Everything that the doctor reads: once, before the rules judge it.

use std::env::consts::ARCH;
use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use flarena_shared::huge_pages::{Offer, Policy};
use flarena_shared::role::{self, Proc, Role, Surroundings};
use flarena_shared::settings::{self, Problem, Settings, TABLE};
use flarena_shared::system_error::reason;
use flarena_shared::{kernel_path, python_line};

use super::bindings::Bindings;
use super::jobs::Deployment;
use crate::control::{self, AskError, Request, Stats, STATS_TIMEOUT};
use crate::library::elf::Header;
use crate::library::privilege::Privilege;
use crate::library::program::Program;
use crate::library::search::FILE_NAME;
use crate::library::symbols::Malloc;
use crate::library::{self, Library, Unusable};
use crate::proc::{Cgroup, Environment, JavaHeap, Mapping, Process, ReadError, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Machine,
    Command,
    Process,
}

pub struct Subject {
    pub kind: Kind,
    /// The process that is examined, else that of this command.
    pub process: Process,
    pub machine: Machine,
    pub cgroup: Option<Cgroup>,
    pub environment: Environment,
    pub arguments: Vec<OsString>,
    /// The path of the executable file. That of a command may be a script that starts it.
    pub program: String,
    /// NVFlare's process, by its command line.
    pub proc: Option<Proc>,
    /// The folder of temporary files and its size, if it is in memory.
    pub temporary: Option<(String, u64)>,
    pub preloads: Vec<Preload>,
    // Of the machine and a command.
    pub library: Option<Result<Library, Unusable>>,
    pub command: Option<Program>,
    /// The file that would serve malloc in the command.
    pub first_malloc: Option<String>,
    // Of a process.
    pub status: Status,
    /// Anonymous memory in huge pages.
    pub huge_bytes: u64,
    /// With resident sizes, if those are readable.
    pub maps: Vec<Mapping>,
    pub header: Option<Header>,
    /// The privilege for which the loader has ignored LD_PRELOAD.
    pub privilege: Option<Privilege>,
    pub bindings: Bindings,
    pub stats: Result<Stats, AskError>,
    pub java_heap: Option<JavaHeap>,
    pub deployment: Deployment,
}

/// An entry of LD_PRELOAD.
pub struct Preload {
    pub entry: String,
    /// Completes "LD_PRELOAD names x.so, ...".
    pub fault: Option<String>,
    pub defines_malloc: bool,
}

impl Subject {
    /// Nothing is read yet.
    pub fn new(kind: Kind, process: Process) -> Self {
        Self {
            kind,
            stats: Err(AskError::NoLibrary(process.pid)),
            process,
            machine: Machine::default(),
            cgroup: None,
            environment: Environment::default(),
            arguments: Vec::new(),
            program: String::new(),
            proc: None,
            temporary: None,
            preloads: Vec::new(),
            library: None,
            command: None,
            first_malloc: None,
            status: Status::default(),
            huge_bytes: 0,
            maps: Vec::new(),
            header: None,
            privilege: None,
            bindings: Bindings::default(),
            java_heap: None,
            deployment: Deployment::default(),
        }
    }

    /// This machine, or with arguments a command.
    pub fn here(command: Vec<OsString>) -> Result<Self, ReadError> {
        let kind = match command.is_empty() {
            true => Kind::Machine,
            false => Kind::Command,
        };
        let mut subject = Self::new(kind, Process::find(std::process::id() as i32)?);
        subject.arguments = command;
        subject.read_surroundings();
        let library = library::find();
        if let Some(name) = subject.arguments.first() {
            subject.command = Program::of(name, std::env::var_os("PATH"));
        }
        if let Some(program) = &subject.command {
            subject.program = program.path.to_string_lossy().into_owned();
            let preload = library
                .as_ref()
                .ok()
                .map(|library| library.path.as_os_str());
            subject.first_malloc = preload.and_then(|preload| first_malloc(program, preload));
        }
        subject.library = Some(library);
        Ok(subject)
    }

    /// A live process. Fails if not even the status and the mappings are readable.
    pub fn live(pid: i32) -> Result<Self, ReadError> {
        let process = Process::find(pid)?;
        let exe = process.path("exe");
        let mut subject = Self::new(Kind::Process, process.clone());
        subject.maps = process.smaps().or_else(|_| process.maps())?;
        subject.stats = control::ask_when_open(&process, Request::Stats, STATS_TIMEOUT);
        // Read next to the statistics: the process may return memory at any time.
        subject.status = process.status()?;
        subject.huge_bytes = process.rollup().map_or(0, |rollup| rollup.anon_huge_bytes);
        let program = fs::read_link(&exe).unwrap_or_default();
        subject.program = program.to_string_lossy().into_owned();
        subject.arguments = process.arguments().unwrap_or_default();
        subject.read_surroundings();
        subject.header = Header::read(&exe).ok().flatten();
        if process.bytes("auxv").is_ok_and(|auxv| is_secure(&auxv)) {
            let has_set_id = fs::metadata(&exe).is_ok_and(|meta| meta.mode() & 0o6000 != 0);
            subject.privilege = Some(match has_set_id {
                true => Privilege::SetId,
                false => Privilege::FileCapabilities,
            });
        }
        subject.bindings = Bindings::of(&process, &subject.maps);
        // A JVM maps its counters, a file in `hsperfdata_USER`.
        let mut maps = subject.maps.iter();
        let counters = maps.find(|map| map.name.contains("/hsperfdata_"));
        let counters = counters.and_then(|map| fs::read(process.inside(map.path())).ok());
        subject.java_heap = counters.and_then(|counters| JavaHeap::parse(&counters));
        subject.deployment = Deployment::of(&subject);
        Ok(subject)
    }

    fn read_surroundings(&mut self) {
        self.machine = Machine::read();
        self.cgroup = Cgroup::of(&self.process);
        self.environment = self.process.environment().unwrap_or_default();
        let words = self.arguments.iter().map(|word| word.as_bytes());
        self.proc = role::identify(words, surroundings(|name| self.get(name))).proc;
        let inside = |path: &str| self.process.inside(path);
        let folder = temporary_folder(|name| self.get(name), |path| inside(path).is_dir());
        self.temporary = folder.and_then(|folder| {
            let size = memory_behind(&inside(&folder))?;
            Some((folder, size))
        });
        let preload = self.get("LD_PRELOAD").unwrap_or_default();
        let entries = preload.to_string_lossy();
        let entries = entries.split([':', ' ']).filter(|entry| !entry.is_empty());
        self.preloads = entries
            .map(|entry| Preload::read(entry, &self.process))
            .collect();
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
        self.stats.as_ref().ok()
    }

    /// A value in a group of the statistics, such as an effective setting.
    pub fn reported(&self, group: &str, name: &str) -> Option<String> {
        let (_, value) = self.answer()?.group(group).find(|(key, _)| *key == name)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }

    pub fn is_python(&self) -> bool {
        is_python(&self.program)
            || self.maps_file("libpython3")
            || self.command_name().is_some_and(is_python)
    }

    /// Wrappers such as pyenv's are scripts that start Python with the same options.
    fn command_name(&self) -> Option<&str> {
        let name = self
            .arguments
            .first()
            .filter(|_| self.kind == Kind::Command);
        name?.to_str()
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
        reported
            .and_then(|role| Role::parse(role.as_bytes()))
            .or(self.proc.map(Proc::role))
    }
}

/// Whether a path from the command line or the kernel names CPython or PyPy.
pub fn is_python(program: &str) -> bool {
    let name = kernel_path::file_name(program);
    python_line::is_interpreter(name) || name.starts_with("pypy")
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

/// Properties of the machine that affect an allocator.
#[derive(Debug, Default)]
pub struct Machine {
    pub kernel: String,
    pub glibc: String,
    pub page_bytes: usize,
    pub huge_pages: Offer,
}

impl Machine {
    fn read() -> Self {
        // SAFETY: glibc returns a pointer to a constant string with a NUL at its end.
        let glibc = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        Self {
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            glibc: glibc.to_string_lossy().into_owned(),
            page_bytes: rustix::param::page_size(),
            huge_pages: Offer::read(|file, top| {
                Policy::parse(&fs::read(OsStr::from_bytes(file.to_bytes())).ok()?, top)
            }),
        }
    }
}

impl Preload {
    fn read(entry: &str, process: &Process) -> Self {
        // Only the loader resolves a bare name or a `$` in a path.
        let is_path = entry.starts_with('/') && !entry.contains('$');
        let path = process.inside(entry);
        Self {
            entry: entry.to_owned(),
            fault: is_path.then(|| why_not_loadable(&path)).flatten(),
            defines_malloc: is_path
                && matches!(Malloc::read(&path), Ok(Some(found)) if found.is_defined),
        }
    }

    pub fn is_flarena(&self) -> bool {
        kernel_path::file_name(&self.entry) == FILE_NAME
    }
}

fn why_not_loadable(path: &Path) -> Option<String> {
    match Header::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Some("which does not exist".to_owned())
        }
        Err(error) => Some(format!("which cannot be read: {}", reason(&error))),
        Ok(None) => Some("which is not a library".to_owned()),
        Ok(Some(Header { machine, .. })) => {
            (machine != ARCH).then(|| format!("which is built for {machine}"))
        }
    }
}

/// The folder that Python's tempfile chooses.
fn temporary_folder(
    get: impl Fn(&str) -> Option<OsString>,
    is_folder: impl Fn(&str) -> bool,
) -> Option<String> {
    let named = ["TMPDIR", "TEMP", "TMP"].into_iter().filter_map(get);
    let usual = ["/tmp", "/var/tmp", "/usr/tmp"].map(OsString::from);
    let folders = named
        .chain(usual)
        .filter_map(|path| path.into_string().ok());
    folders
        .filter(|path| path.starts_with('/'))
        .find(|path| is_folder(path))
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

/// The first file in the loader's order that defines malloc. With this variable the loader lists
/// the files that it would load, and exits before the program runs.
fn first_malloc(program: &Program, library: &OsStr) -> Option<String> {
    let output = Command::new(&program.path)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LD_PRELOAD", library)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let own = program.path.to_string_lossy().into_owned();
    let mut files = std::iter::once(own).chain(text.lines().filter_map(listed_file));
    files.find(|file| matches!(Malloc::read(file.as_ref()), Ok(Some(found)) if found.is_defined))
}

/// `libc.so.6 => /lib/libc.so.6 (0x7f..)` or `/lib/ld.so (0x7f..)`.
fn listed_file(line: &str) -> Option<String> {
    let line = line.trim();
    let file = line.split_once(" => ").map_or(line, |(_, file)| file);
    let (file, _) = file.rsplit_once(" (0x")?;
    file.starts_with('/').then(|| file.to_owned())
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
    fn a_preload_is_a_library_that_can_be_read_and_may_be_an_allocator() {
        let own = Process::find(std::process::id() as i32).unwrap();
        let maps = own.maps().unwrap();
        let libc = maps.iter().find(|map| map.file_name() == "libc.so.6");
        let libc = Preload::read(&libc.unwrap().name, &own);
        assert!(libc.fault.is_none() && libc.defines_malloc);
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
    fn a_line_of_the_loaders_list_gives_its_file() {
        for (line, file) in [
            (
                "\tlibc.so.6 => /lib/libc.so.6 (0x7f01)",
                Some("/lib/libc.so.6"),
            ),
            ("\t/opt/a b/x.so (0x7f01)", Some("/opt/a b/x.so")),
            ("\tlinux-vdso.so.1 (0x7ffc)", None),
            ("\tstatically linked", None),
        ] {
            assert_eq!(listed_file(line).as_deref(), file);
        }
    }

    #[test]
    fn without_a_preload_the_c_library_is_the_first_with_malloc() {
        let program = Program::of(OsStr::new("sh"), None).unwrap();
        let first = first_malloc(&program, OsStr::new("")).unwrap();
        assert!(first.ends_with("libc.so.6"), "{first}");
    }

    #[test]
    fn the_properties_of_this_machine_are_readable() {
        let machine = Machine::read();
        assert!(machine.page_bytes >= 4096 && !machine.kernel.is_empty());
        assert!(machine.glibc.starts_with("2."), "{}", machine.glibc);
    }
}
