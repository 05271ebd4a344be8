//! Which program a Python process runs. The kernel calls them all `python3`, or `pt_main_thread` once they have PyTorch.
//!
//! Of the command line, which holds tokens, nothing but the program's own name leaves this file: that of a script that
//! is there, or of a module. Never an argument, code (`-c`), or what stands where no script is found.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Process;

const SAYS_NOTHING: [&str; 2] = ["python", "pt_main_thread"];

/// What Python's command line says that it runs.
#[derive(Debug, PartialEq)]
enum Started<'a> {
    File(&'a OsStr),
    Module(&'a str),
}

impl Process {
    /// The name of the program: its script's or module's where the kernel's name tells Python only.
    pub fn name(&self) -> String {
        let comm = self.comm();
        self.script(&comm).unwrap_or(comm)
    }

    /// The file name of the script that Python runs, or its module; none if the process chose a name for itself.
    pub fn script(&self, comm: &str) -> Option<String> {
        let says_nothing = SAYS_NOTHING.iter().any(|name| comm.starts_with(name));
        if !says_nothing || !self.is_python() {
            return None;
        }
        let arguments = self.arguments().ok()?;
        match started(&arguments)? {
            Started::Module(name) => Some(name.to_owned()),
            Started::File(path) => self.file_name(Path::new(path)),
        }
    }

    /// What argv says may be another program's: the file that is mapped tells.
    fn is_python(&self) -> bool {
        let exe = fs::read_link(self.path("exe")).unwrap_or_default();
        let name = exe.file_name().unwrap_or_default();
        name.as_bytes().starts_with(b"python")
    }

    /// As the process sees it: in its container, from where it stands.
    fn file_name(&self, path: &Path) -> Option<String> {
        let seen = match path.strip_prefix("/") {
            Ok(rest) => self.path("root").join(rest),
            Err(_) => self.path("cwd").join(path),
        };
        let is_file = fs::metadata(seen).is_ok_and(|found| found.is_file());
        is_file.then(|| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into()
        })
    }
}

/// By the rules of Python's own reading: options up to the first other word, `-c` and `-m` end them.
fn started<S: AsRef<OsStr>>(arguments: &[S]) -> Option<Started<'_>> {
    let mut words = arguments.iter().skip(1).map(AsRef::as_ref);
    while let Some(word) = words.next() {
        match word.as_bytes() {
            b"-" => return None,
            b"--check-hash-based-pycs" => drop(words.next()?),
            [b'-', b'-', ..] => return None,
            [b'-', letters @ ..] => {
                let Some(place) = letters.iter().position(|letter| b"cmWX".contains(letter)) else {
                    continue;
                };
                // Its value stands behind it or is the next word.
                let value = match &letters[place + 1..] {
                    [] => words.next()?,
                    rest => OsStr::from_bytes(rest),
                };
                match letters[place] {
                    b'c' => return None,
                    b'm' => return module(value).map(Started::Module),
                    _ => {}
                }
            }
            _ => return Some(Started::File(word)),
        }
    }
    None
}

/// A module's name is names with dots between them; anything else is none.
fn module(value: &OsStr) -> Option<&str> {
    let is_name = |part: &str| {
        let letters = part.chars().all(|c| c == '_' || c.is_alphanumeric());
        letters && part.chars().next().is_some_and(|c| !c.is_numeric())
    };
    value.to_str().filter(|name| name.split('.').all(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tells(line: &str) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        started(&words).map(|found| match found {
            Started::File(path) => path.to_string_lossy().into_owned(),
            Started::Module(name) => format!("-m {name}"),
        })
    }

    #[test]
    fn a_script_is_the_first_word_that_belongs_to_no_option() {
        for (line, expected) in [
            ("python3 train.py --token hush", "train.py"),
            ("python3 -u -W ignore -Xdev a/b.py c.py", "a/b.py"),
            ("python3 -uB -X importtime /srv/run", "/srv/run"),
            ("python3 --check-hash-based-pycs never x.py", "x.py"),
            (
                "python3 -m torch.distributed.run t.py",
                "-m torch.distributed.run",
            ),
            ("python3 -um http.server 80", "-m http.server"),
            ("python3 -mpytest", "-m pytest"),
        ] {
            assert_eq!(tells(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn code_and_arguments_are_never_a_script() {
        for line in [
            "python3",
            "python3 -",
            "python3 - hush.py",
            "python3 -c hush hush.py",
            "python3 -uc hush.py",
            "python3 -chush.py",
            "python3 --help hush.py",
            "python3 -W",
            "python3 -m token=hush",
            "python3 -m 1.2",
            "python3 -m .hush",
        ] {
            assert_eq!(tells(line), None, "{line}");
        }
    }
}
