//! The environment of a command: the chosen settings, NVFlare's defaults, the preload and the
//! hooks. Pure: the request and the inherited environment in, names and values out.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use flarena_shared::defaults;
use flarena_shared::pools::{self, Variable};
use flarena_shared::role::{self, Role, Surroundings};
use flarena_shared::settings::{self, Allocator, Fault, Key, LogLevel, Problem, Settings, TABLE};

use crate::library::program::Program;
use crate::library::sanitizer;
use crate::library::search::FILE_NAME;
use crate::library::{Library, Unusable};

const PRELOAD: &str = "LD_PRELOAD";
const PYTHON_PATH: &str = "PYTHONPATH";
/// With this variable the library answers instead of the program. A parent process may pass it on by mistake.
const PROBE: &str = "FLARENA_PROBE";
/// Tells the library which values are flarena's defaults, which it may replace.
const INHERITED: &str = "FLARENA_INHERITED";
/// The beginning of the entry with the number of arenas.
const ARENA_ENTRY: &[u8] = b"arena_max=";

/// What was found on this machine.
pub struct Found<'a> {
    pub library: Result<Library, Unusable>,
    pub program: Option<Program>,
    /// Called only if the library cannot be used and jemalloc is selected.
    pub system_jemalloc: &'a dyn Fn() -> Option<PathBuf>,
    /// Tries a whole LD_PRELOAD with variables. Called only if LD_PRELOAD has other entries.
    pub try_preload: &'a TryPreload,
}

pub type TryPreload = dyn Fn(&OsStr, &[(&'static str, OsString)]) -> Result<(), String>;

/// The changes to the inherited environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    pub set: Vec<(&'static str, OsString)>,
    pub unset: Vec<&'static str>,
}

impl Environment {
    pub fn apply_to(&self, command: &mut Command) {
        command.envs(self.set.iter().map(|(name, value)| (name, value)));
        for name in &self.unset {
            command.env_remove(name);
        }
    }
}

pub struct Plan<'a> {
    inherited: &'a dyn Fn(&str) -> Option<OsString>,
    pub environment: Environment,
    /// Messages for the user, one line each.
    pub notes: Vec<String>,
    /// Whether a note names the library; `FLARENA_LOG=info` does so, too.
    pub names_library: bool,
}

impl<'a> Plan<'a> {
    pub fn new(inherited: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self {
            inherited,
            environment: Environment {
                set: Vec::new(),
                unset: inherited(PROBE).map(|_| PROBE).into_iter().collect(),
            },
            notes: Vec::new(),
            names_library: false,
        }
    }

    /// A variable after the changes. An empty value counts as unset, as in the library.
    pub fn get(&self, name: &str) -> Option<OsString> {
        let Environment { set, unset } = &self.environment;
        if unset.contains(&name) {
            return None;
        }
        let chosen = set.iter().find(|(key, _)| *key == name);
        chosen
            .map(|(_, value)| value.clone())
            .or_else(|| (self.inherited)(name))
            .filter(|value| !value.is_empty())
    }

    pub fn put(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.remove(name);
        self.environment.unset.retain(|key| *key != name);
        self.environment.set.push((name, value.into()));
    }

    fn remove(&mut self, name: &'static str) {
        self.environment.set.retain(|(key, _)| *key != name);
        self.environment.unset.push(name);
    }

    /// The settings as the library will read them.
    pub fn settings(&self) -> Settings {
        self.read_settings(|_| ())
    }

    fn read_settings(&self, report: impl FnMut(Problem<'_>)) -> Settings {
        let values: Vec<_> = TABLE.iter().map(|row| self.get(row.name)).collect();
        let value = |key: Key| values[key as usize].as_deref().map(OsStr::as_bytes);
        settings::read(value, report)
    }

    /// Notes each removed value and sets its replacement, so that the library does not repeat it.
    fn replace_removed_values(&mut self) {
        let (mut notes, mut replacements) = (Vec::new(), Vec::new());
        self.read_settings(|problem| {
            if problem.fault == Fault::Removed {
                let value = String::from_utf8_lossy(problem.value.trim_ascii());
                notes.push(problem.sentence(value).to_string());
                replacements.push((settings::setting(problem.key).name, problem.used));
            }
        });
        self.notes.extend(notes);
        for (name, value) in replacements {
            self.put(name, value);
        }
    }

    /// Adds everything that follows from the chosen settings.
    pub fn complete(&mut self, command: &[OsString], found: Found) {
        self.replace_removed_values();
        self.set_role_of_kit(command);
        let refusal = found.program.as_ref().and_then(Program::refusal);
        if let Some(refusal) = refusal.or_else(|| self.sanitizer_in_preload()) {
            self.remove_inherited_preload();
            return self
                .notes
                .push(format!("{refusal}; starting without flarena"));
        }
        self.set_arena_default(command);
        match &found.library {
            Ok(library) => match self.try_with_others(library, found.try_preload) {
                Ok(()) => {
                    self.preload(library);
                    self.set_pool_variables(found.program.as_ref());
                    let no_effect = found.program.as_ref().and_then(Program::why_no_effect);
                    self.notes.extend(no_effect);
                }
                Err(note) => {
                    self.remove_inherited_preload();
                    self.notes.push(note);
                }
            },
            Err(unusable) => {
                self.remove_inherited_preload();
                self.fall_back(unusable, found.system_jemalloc);
            }
        }
        self.hide_jemalloc_from_kit();
    }

    /// Sets the role from the startup folder of a provisioned kit, if the command is in one.
    fn set_role_of_kit(&mut self, command: &[OsString]) {
        let name = settings::setting(Key::Role).name;
        let folder = command.first().and_then(|first| Path::new(first).parent());
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let Some(folder) = folder.filter(|_| self.get(name).is_none()) else {
            return;
        };
        for role in [Role::Client, Role::Server] {
            if folder.join(format!("fed_{}.json", role.name())).is_file() {
                self.put(name, role.name());
            }
        }
    }

    /// Sets the arena default of the role. Kits export MALLOC_ARENA_MAX=4 unless it is set, for
    /// clients too.
    fn set_arena_default(&mut self, command: &[OsString]) {
        let arguments = command.iter().map(|argument| argument.as_bytes());
        let detected = role::identify(arguments, Surroundings::default()).role();
        let Some(role) = self.settings().role.or(detected) else {
            return;
        };
        let tunables = self.get("GLIBC_TUNABLES").unwrap_or_default();
        let tunables = tunables.to_string_lossy();
        let name = settings::setting(Key::ArenaMax).name;
        let is_chosen = self.get(name).is_some() && !self.has_arena_default();
        if is_chosen || tunables.contains("glibc.malloc.arena_max") {
            return;
        }
        let arenas = role::arenas(Some(role)).to_string();
        let entry = [ARENA_ENTRY, arenas.as_bytes()].concat();
        let inherited = self.get(INHERITED).unwrap_or_default();
        let others = inherited.as_bytes().split(|byte| *byte == b';');
        let others = others.filter(|entry| !entry.is_empty() && !entry.starts_with(ARENA_ENTRY));
        let all: Vec<&[u8]> = [&entry[..]].into_iter().chain(others).collect();
        self.put(INHERITED, OsString::from_vec(all.join(&b';')));
        self.put(name, arenas);
    }

    /// Whether MALLOC_ARENA_MAX is a default that flarena has set.
    fn has_arena_default(&self) -> bool {
        let inherited = self.get(INHERITED).unwrap_or_default();
        let mut entries = inherited.as_bytes().split(|byte| *byte == b';');
        let value = self.get(settings::setting(Key::ArenaMax).name);
        let entry = value.map(|value| [ARENA_ENTRY, value.as_bytes()].concat());
        entry.is_some_and(|entry| entries.any(|known| known == entry))
    }

    /// The environment without flarena, and with another allocator first in LD_PRELOAD.
    ///
    /// Without the library the hooks only let the command import flarena.
    pub fn use_other(&mut self, allocator: Option<&Path>, hooks: Option<&Path>) {
        self.remove_inherited_preload();
        if self.has_arena_default() {
            self.remove(settings::setting(Key::ArenaMax).name);
        }
        self.remove(INHERITED);
        // A kit would preload a jemalloc itself.
        self.remove(settings::setting(Key::JemallocPreload).name);
        if let Some(allocator) = allocator {
            self.preload_other(allocator);
        }
        if let Some(hooks) = hooks {
            self.add_hooks(hooks);
        }
    }

    fn add_hooks(&mut self, hooks: &Path) {
        let old = self.get(PYTHON_PATH).unwrap_or_default();
        self.put(PYTHON_PATH, first_in_path(hooks, &old));
    }

    /// For a user who asked for what only the hooks can do. The program's own PYTHONPATH may name them, too.
    fn note_missing_hooks(&mut self, library: &Path) {
        let path = self.get(PYTHON_PATH).unwrap_or_default();
        if std::env::split_paths(&path).any(|entry| entry.ends_with("flarena/hooks")) {
            return;
        }
        self.notes.push(format!(
            "{} has no Python hooks beside it: no stage of a Python program is marked and no Python line recorded; install the whole package (pip or Debian)",
            library.display(),
        ));
    }

    fn preload_other(&mut self, allocator: &Path) {
        self.put(PRELOAD, first_in_preload(allocator, &self.preload_list()));
        let options = settings::setting(Key::MallocConf).name;
        if self.get(options).is_none() {
            self.put(options, defaults::MALLOC_CONF);
        }
    }

    /// Whether the command will start on flarena.
    pub fn preloads_flarena(&self) -> bool {
        preload_entries(&self.preload_list()).any(|entry| is_flarena(&entry))
    }

    fn preload_list(&self) -> OsString {
        self.get(PRELOAD).unwrap_or_default()
    }

    fn sanitizer_in_preload(&self) -> Option<String> {
        let list = self.preload_list();
        let mut entries = preload_entries(&list).map(String::from_utf8_lossy);
        let runtime = entries.find(|entry| sanitizer::is_runtime(entry))?;
        Some(format!(
            "{runtime} in LD_PRELOAD is the runtime of a sanitizer, which must serve malloc"
        ))
    }

    /// Starts a small program with the library and the other entries of LD_PRELOAD. The error is a message for the user.
    fn try_with_others(&self, library: &Library, try_preload: &TryPreload) -> Result<(), String> {
        let old = self.preload_list();
        let others = || preload_entries(&old).filter(|entry| !is_flarena(entry));
        if others().next().is_none() {
            return Ok(());
        }
        let list = first_in_preload(&library.path, &old);
        try_preload(&list, &self.environment.set).map_err(|reason| {
            let others: Vec<_> = others().map(String::from_utf8_lossy).collect();
            format!(
                "{} does not start together with {}, which LD_PRELOAD names: {reason}; starting without flarena",
                library.path.display(),
                others.join(" and "),
            )
        })
    }

    /// Removes an inherited preload of flarena, which an image may set for every program, if the
    /// library cannot be used.
    fn remove_inherited_preload(&mut self) {
        if !self.preloads_flarena() {
            return;
        }
        let old = self.preload_list();
        let others = preload_entries(&old).filter(|entry| !is_flarena(entry));
        let others = others.collect::<Vec<_>>().join(&b':');
        match others.is_empty() {
            true => self.remove(PRELOAD),
            false => self.put(PRELOAD, OsString::from_vec(others)),
        }
    }

    fn preload(&mut self, library: &Library) {
        let settings = self.settings();
        let list = first_in_preload(&library.path, &self.preload_list());
        self.put(PRELOAD, list);
        match &library.hooks {
            Some(hooks) if settings.wants_hooks() => self.add_hooks(hooks),
            None if settings.profile || settings.sites => self.note_missing_hooks(&library.path),
            _ => {}
        }
        if self.names_library || settings.log == LogLevel::Info {
            self.notes
                .push(format!("preloading {}", library.path.display()));
        }
    }

    /// Makes the allocators of other libraries return free memory, or use malloc. Called only if
    /// the library is preloaded, because plain malloc may keep more free memory than they do.
    fn set_pool_variables(&mut self, program: Option<&Program>) {
        let settings = self.settings();
        if !settings.pools {
            return;
        }
        let program = program.map(Program::real_name).unwrap_or_default();
        for Variable {
            name,
            value,
            effect,
            ..
        } in pools::for_program(&program)
        {
            if self.get(name).is_some() {
                continue;
            }
            self.put(name, *value);
            if settings.log == LogLevel::Info {
                let off = settings::setting(Key::Pools).name;
                let note = format!("{name}={value}: {effect} ({off}=off leaves it alone)");
                self.notes.push(note);
            }
        }
    }

    fn fall_back(&mut self, unusable: &Unusable, jemalloc: &dyn Fn() -> Option<PathBuf>) {
        let wants_jemalloc = self.settings().allocator() == Allocator::Jemalloc;
        let note = match wants_jemalloc.then(jemalloc) {
            None => "starting with the system's malloc".to_owned(),
            Some(None) => {
                "no system libjemalloc works either, starting with the system's malloc".into()
            }
            Some(Some(jemalloc)) => {
                self.preload_other(&jemalloc);
                format!("using {} instead", jemalloc.display())
            }
        };
        self.notes.push(format!("{unusable}; {note}"));
    }

    /// The kit preloads a system libjemalloc if the value is exactly `true`. `1` means the same to
    /// the library, and the kit ignores it.
    fn hide_jemalloc_from_kit(&mut self) {
        let name = settings::setting(Key::JemallocPreload).name;
        if self.get(name).is_some_and(|value| value == "true") {
            self.put(name, "1");
        }
    }
}

/// The entries of LD_PRELOAD, separated by spaces or colons.
fn preload_entries(list: &OsStr) -> impl Iterator<Item = &[u8]> {
    let is_separator = |byte: &u8| *byte == b':' || *byte == b' ';
    let entries = list.as_bytes().split(is_separator);
    entries.filter(|entry| !entry.is_empty())
}

/// Whether an entry of LD_PRELOAD is a libflarena.so of any version.
fn is_flarena(entry: &&[u8]) -> bool {
    Path::new(OsStr::from_bytes(entry)).file_name() == Some(OsStr::new(FILE_NAME))
}

/// LD_PRELOAD with this library first and without any other libflarena.so.
fn first_in_preload(library: &Path, old: &OsStr) -> OsString {
    let others = preload_entries(old).filter(|entry| !is_flarena(entry));
    with_first(library, others)
}

/// A path list with this directory first. Empty entries stay, because they mean the working
/// directory.
fn first_in_path(dir: &Path, old: &OsStr) -> OsString {
    let entries = old.as_bytes().split(|byte| *byte == b':');
    with_first(dir, entries.filter(|_| !old.is_empty()))
}

/// A list with this path first and once.
fn with_first<'a>(path: &'a Path, others: impl Iterator<Item = &'a [u8]>) -> OsString {
    let path = path.as_os_str().as_bytes();
    let others = others.filter(|entry| *entry != path);
    let all: Vec<&[u8]> = [path].into_iter().chain(others).collect();
    OsString::from_vec(all.join(&b':'))
}

#[cfg(test)]
mod tests;
