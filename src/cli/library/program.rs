//! Finds the ELF program that a command runs, through PATH and `#!` lines.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{access, Access};

use super::elf::{self, Header};
use super::privilege::Privilege;

/// The program behind a command.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    pub header: Header,
    pub sanitizer: Option<String>,
    /// With it the loader ignores LD_PRELOAD.
    pub privilege: Option<Privilege>,
}

/// Scripts whose interpreter is a script. The kernel has a similar limit.
const MAX_DEPTH: usize = 5;

impl Program {
    /// `None` if the command cannot be found or read; the error at its start then says why.
    pub fn of(command: &OsStr, path: Option<OsString>) -> Option<Self> {
        let mut command = command.to_owned();
        for _ in 0..MAX_DEPTH {
            let file = resolve(&command, path.as_deref())?;
            let Some(header) = Header::read(&file).ok()? else {
                command = interpreter(&file)?;
                continue;
            };
            let metadata = fs::metadata(&file).ok()?;
            return Some(Self {
                privilege: Privilege::of(&file, &metadata),
                sanitizer: elf::sanitizer(&file),
                path: file,
                header,
            });
        }
        None
    }

    /// The file name with links resolved: `python` of a virtual environment may be `python3.14t`.
    pub fn real_name(&self) -> String {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Why the library must not be preloaded into this program.
    pub fn refusal(&self) -> Option<String> {
        let program = self.path.display();
        let machine = self.header.machine;
        if self.header.uses_musl() {
            Some(format!("{program} uses musl, not glibc"))
        } else if machine != std::env::consts::ARCH {
            Some(format!("{program} is built for {machine}"))
        } else {
            let runtime = self.sanitizer.as_ref()?;
            Some(format!(
                "{program} is built with a sanitizer, whose {runtime} must serve malloc"
            ))
        }
    }

    /// Why a preload has no effect in this program, without harm.
    pub fn why_no_effect(&self) -> Option<String> {
        let program = self.path.display();
        if self.header.interpreter.is_none() {
            Some(format!(
                "{program} is statically linked: flarena has no effect in it, only in programs that it starts"
            ))
        } else {
            let privilege = self.privilege?.name();
            Some(format!(
                "{program} {privilege}: the loader ignores LD_PRELOAD, and flarena has no effect in it"
            ))
        }
    }
}

/// The error with which the start of the command would fail, as far as its file shows.
pub fn start_error(command: &OsStr, path: Option<&OsStr>) -> Option<io::Error> {
    let error = match resolve(command, path) {
        Some(file) => access(file, Access::EXEC_OK).err()?.raw_os_error(),
        None if has_slash(command) && Path::new(command).exists() => libc::EACCES,
        None => libc::ENOENT,
    };
    Some(io::Error::from_raw_os_error(error))
}

fn has_slash(command: &OsStr) -> bool {
    command.as_bytes().contains(&b'/')
}

/// The file that `execvp` would run.
fn resolve(command: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if has_slash(command) {
        return Some(PathBuf::from(command)).filter(|file| file.is_file());
    }
    std::env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")))
        .map(|dir| dir.join(command))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The interpreter of a `#!` line; for `env`, the program that `env` runs.
fn interpreter(script: &Path) -> Option<OsString> {
    let mut head = Vec::new();
    File::open(script)
        .ok()?
        .take(256)
        .read_to_end(&mut head)
        .ok()?;
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let first = words.next()?;
    let through_env = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    let command = through_env
        .filter(|_| first.ends_with(b"/env"))
        .unwrap_or(first);
    Some(OsString::from_vec(command.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn path() -> Option<OsString> {
        Some("/usr/bin:/bin".into())
    }

    #[test]
    fn the_program_of_a_script_is_its_interpreter() {
        let scratch = Scratch::new();
        let direct = scratch.write("direct", "#! /bin/sh -e\n");
        let inner = scratch.write("inner", "#!/usr/bin/env -S LANG=C sh -e\n");
        let outer = scratch.write("outer", &format!("#!{}\n", inner.display()));
        for script in [direct, inner, outer] {
            let program = Program::of(script.as_os_str(), path()).unwrap();
            assert_eq!(
                program.path.file_name(),
                Some(OsStr::new("sh")),
                "{script:?}"
            );
            assert_eq!(program.refusal(), None);
        }
    }

    #[test]
    fn a_script_that_is_its_own_interpreter_has_no_program() {
        let scratch = Scratch::new();
        let script = scratch.path().join("loop");
        fs::write(&script, format!("#!{}\n", script.display())).unwrap();
        assert!(Program::of(script.as_os_str(), path()).is_none());
    }

    #[test]
    fn a_missing_command_has_no_program() {
        assert!(Program::of(OsStr::new("no-such-command-here"), path()).is_none());
        assert!(Program::of(OsStr::new("/"), path()).is_none());
        assert!(Program::of(OsStr::new(""), path()).is_none());
    }

    #[test]
    fn a_command_that_is_no_executable_file_cannot_be_started() {
        let scratch = Scratch::new();
        let script = scratch.write("script", "#!/bin/sh\n");
        let error = |command: &OsStr| {
            let error = start_error(command, Some(OsStr::new("/usr/bin:/bin")))?;
            error.raw_os_error()
        };
        assert_eq!(error(script.as_os_str()), Some(libc::EACCES));
        assert_eq!(error(scratch.path().as_os_str()), Some(libc::EACCES));
        assert_eq!(error(OsStr::new("/no/such")), Some(libc::ENOENT));
        assert_eq!(
            error(OsStr::new("no-such-command-here")),
            Some(libc::ENOENT)
        );
        assert_eq!(error(OsStr::new("sh")), None);
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(error(script.as_os_str()), None);
    }

    fn with(
        interpreter: Option<&str>,
        machine: &'static str,
        privilege: Option<Privilege>,
    ) -> Program {
        let header = Header {
            machine,
            interpreter: interpreter.map(str::to_owned),
        };
        Program {
            path: "/x".into(),
            header,
            sanitizer: None,
            privilege,
        }
    }

    #[test]
    fn musl_and_other_machines_are_refused_and_static_and_privileged_programs_get_no_effect() {
        let here = std::env::consts::ARCH;
        assert!(with(Some("/lib/ld-musl-x86_64.so.1"), here, None)
            .refusal()
            .is_some());
        assert!(with(Some("/lib/ld-linux.so.2"), "i386", None)
            .refusal()
            .is_some());
        let fixed = with(None, here, None);
        assert!(fixed.refusal().is_none() && fixed.why_no_effect().is_some());
        for privilege in [Privilege::SetId, Privilege::FileCapabilities] {
            let reason = with(Some("/lib64/ld.so"), here, Some(privilege)).why_no_effect();
            assert!(reason.unwrap().contains(privilege.name()));
        }
        assert!(with(Some("/lib64/ld.so"), here, None)
            .why_no_effect()
            .is_none());
    }

    #[test]
    fn a_program_that_is_built_with_a_sanitizer_is_refused() {
        let mut program = with(Some("/lib64/ld.so"), std::env::consts::ARCH, None);
        program.sanitizer = Some("runtime libasan.so.8".to_owned());
        assert!(program
            .refusal()
            .unwrap()
            .contains("whose runtime libasan.so.8"));
    }
}
