//! What a command will really run: the ELF program at the end of PATH and `#!`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::elf::Header;

/// The program behind a command.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    pub header: Header,
    /// The loader ignores LD_PRELOAD in programs that change the user.
    pub is_privileged: bool,
}

/// Interpreters of interpreters: the kernel stops at about this depth too.
const MAX_DEPTH: usize = 5;

impl Program {
    /// `None` where the command cannot be found or read: starting it will say why.
    pub fn of(command: &OsStr, path: Option<OsString>) -> Option<Self> {
        let path = path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut command = command.to_owned();
        for _ in 0..MAX_DEPTH {
            let file = resolve(&command, &path)?;
            let Some(header) = Header::read(&file).ok()? else {
                command = interpreter(&file)?;
                continue;
            };
            let mode = fs::metadata(&file).ok()?.permissions().mode();
            return Some(Self {
                path: file,
                header,
                is_privileged: mode & 0o6000 != 0,
            });
        }
        None
    }

    /// The name of its file behind all links: a virtual environment's `python` is some `python3.14t`.
    pub fn real_name(&self) -> String {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Why nothing must be preloaded into it.
    pub fn refusal(&self) -> Option<String> {
        let program = self.path.display();
        let machine = self.header.machine;
        if self.header.uses_musl() {
            Some(format!("{program} uses musl, not glibc"))
        } else if machine != std::env::consts::ARCH {
            Some(format!("{program} is built for {machine}"))
        } else {
            None
        }
    }

    /// Why a preload is without effect in it, though harmless.
    pub fn without_effect(&self) -> Option<String> {
        let program = self.path.display();
        if self.header.interpreter.is_none() {
            Some(format!(
                "{program} is statically linked: flarena reaches only what it starts"
            ))
        } else if self.is_privileged {
            Some(format!(
                "{program} changes its user: the loader ignores LD_PRELOAD in it"
            ))
        } else {
            None
        }
    }
}

/// The file that `execvp` would take.
fn resolve(command: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(command)).filter(|file| file.is_file());
    }
    std::env::split_paths(path)
        .map(|dir| dir.join(command))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// What a `#!` line starts; through `env`, what `env` starts.
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
    fn a_script_is_followed_to_its_interpreter() {
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
    fn scripts_that_start_each_other_for_ever_are_given_up() {
        let scratch = Scratch::new();
        let script = scratch.path().join("loop");
        fs::write(&script, format!("#!{}\n", script.display())).unwrap();
        assert!(Program::of(script.as_os_str(), path()).is_none());
    }

    #[test]
    fn a_command_that_is_not_there_is_none() {
        assert!(Program::of(OsStr::new("no-such-command-here"), path()).is_none());
        assert!(Program::of(OsStr::new("/"), path()).is_none());
        assert!(Program::of(OsStr::new(""), path()).is_none());
    }

    fn with(interpreter: Option<&str>, machine: &'static str, is_privileged: bool) -> Program {
        let header = Header {
            machine,
            interpreter: interpreter.map(str::to_owned),
        };
        Program {
            path: "/x".into(),
            header,
            is_privileged,
        }
    }

    #[test]
    fn musl_and_other_machines_are_refused_and_a_preload_has_no_effect_in_static_programs() {
        let here = std::env::consts::ARCH;
        assert!(with(Some("/lib/ld-musl-x86_64.so.1"), here, false)
            .refusal()
            .is_some());
        assert!(with(Some("/lib/ld-linux.so.2"), "i386", false)
            .refusal()
            .is_some());
        let fixed = with(None, here, false);
        assert!(fixed.refusal().is_none() && fixed.without_effect().is_some());
        assert!(with(Some("/lib64/ld.so"), here, true)
            .without_effect()
            .is_some());
        assert!(with(Some("/lib64/ld.so"), here, false)
            .without_effect()
            .is_none());
    }
}
