//! `flarena doctor -- COMMAND`: whether flarena would work in a command, without running it.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use super::environment;
use super::finding::Finding;
use super::python;
use crate::library::privilege::Privilege;
use crate::library::program::Program;
use crate::library::search::FILE_NAME;
use crate::library::symbols::Malloc;
use crate::library::Library;

pub fn findings(command: &[OsString], library: Option<&Library>) -> Vec<Finding> {
    let name = command.first().map(OsString::as_os_str).unwrap_or_default();
    let Some(program) = Program::of(name, std::env::var_os("PATH")) else {
        let fact = format!(
            "the command {} cannot be found or read",
            name.to_string_lossy()
        );
        return vec![Finding::error("program", fact).remedy("correct its path")];
    };
    let mut findings = vec![malloc_finding(&program, library)];
    let path = program.path.to_string_lossy();
    // Wrappers such as pyenv's are scripts that start Python with the same options.
    if python::is_python(&path) || python::is_python(&name.to_string_lossy()) {
        let get = |name: &str| std::env::var_os(name);
        let settings = environment::settings(&get);
        findings.extend(python::hook_findings(command, settings.wants_hooks()));
        findings.extend(python::inactive_gc(&settings));
        findings.extend(python::allocators(&path, &[], &get, None));
    }
    findings
}

/// Whether the library would serve malloc in the program.
fn malloc_finding(program: &Program, library: Option<&Library>) -> Finding {
    let path = program.path.display();
    if let Some(refusal) = program.refusal() {
        return Finding::error(
            "program",
            refusal + ", so flarena run starts it without the library",
        )
        .remedy("use a build of the program for this machine's glibc, without a sanitizer");
    }
    if let Some(reason) = program.why_no_effect() {
        let remedy = program.privilege.map_or(
            "use a dynamically linked build of the program",
            Privilege::remedy,
        );
        return Finding::warning("program", reason).remedy(remedy);
    }
    let Some(library) = library else {
        return Finding::note(
            "program",
            format!("{path} would start with the system's malloc"),
        );
    };
    match first_malloc(program, library.path.as_os_str()) {
        Some(first) if first.ends_with(FILE_NAME) => Finding::ok(
            "program",
            format!("{path} would get its malloc from {first}"),
        ),
        Some(first) => {
            let fact =
                format!("{path} would get its malloc from {first}, so flarena would be inactive");
            Finding::error("program", fact)
                .remedy("remove that allocator from LD_PRELOAD, or link the program without it")
        }
        None => Finding::warning(
            "program",
            format!("the loader does not list the libraries of {path}, so its malloc is unknown"),
        )
        .remedy("start it with flarena run, then run flarena doctor PID"),
    }
}

/// The first file in the loader's order that defines malloc. With this variable the loader lists
/// the files that it would load, and exits before the program runs.
fn first_malloc(program: &Program, library: &OsStr) -> Option<String> {
    let mut listing = Command::new(&program.path);
    listing
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LD_PRELOAD", library);
    let output = listing
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let own = program.path.to_string_lossy().into_owned();
    let mut files = [own]
        .into_iter()
        .chain(text.lines().filter_map(listed_file));
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

    #[test]
    fn a_line_of_the_loaders_list_gives_its_file() {
        assert_eq!(
            listed_file("\tlibc.so.6 => /lib/libc.so.6 (0x7f01)").as_deref(),
            Some("/lib/libc.so.6")
        );
        assert_eq!(
            listed_file("\t/opt/a b/x.so (0x7f01)").as_deref(),
            Some("/opt/a b/x.so")
        );
        assert_eq!(listed_file("\tlinux-vdso.so.1 (0x7ffc)"), None);
        assert_eq!(listed_file("\tstatically linked"), None);
    }

    #[test]
    fn without_a_preload_the_c_library_is_the_first_with_malloc() {
        let program = Program::of(OsStr::new("sh"), None).unwrap();
        let first = first_malloc(&program, OsStr::new("")).unwrap();
        assert!(first.ends_with("libc.so.6"), "{first}");
    }

    #[test]
    fn a_missing_command_is_an_error() {
        let found = findings(&["no-such-command".into()], None);
        assert_eq!(found[0].id, "program");
        assert!(found[0].fact.contains("no-such-command"));
    }
}
