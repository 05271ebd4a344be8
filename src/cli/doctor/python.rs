//! Python programs: whether the hooks can reach them, and which allocators of its own Python has.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use flarena_shared::pools::is_free_threaded_python;
use flarena_shared::settings::Settings;
use flarena_shared::{kernel_path, python_line};

use super::environment::Get;
use super::finding::Finding;
use super::mimalloc;
use crate::proc::Mapping;

/// Options that keep the environment or the site packages out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Isolation {
    /// `-I` or `-E`: PYTHONPATH is not read.
    pub ignores_environment: bool,
    /// `-S`: no `sitecustomize`, no `.pth`.
    pub skips_site: bool,
}

/// CPython by the rules of its names, or a PyPy. `program` is a path as a person or the kernel writes it.
pub fn is_python(program: &str) -> bool {
    let name = kernel_path::file_name(program);
    python_line::is_interpreter(name) || name.starts_with("pypy")
}

pub fn isolation(arguments: &[OsString]) -> Isolation {
    let line = python_line::read(arguments.iter().map(|word| word.as_bytes()));
    Isolation {
        ignores_environment: line.has(b'I') || line.has(b'E'),
        skips_site: line.has(b'S'),
    }
}

/// Hooks are wanted for markers, for collections by bytes, and where jemalloc is asked for.
pub fn hook_findings(arguments: &[OsString], wants_hooks: bool) -> Option<Finding> {
    let isolation = isolation(arguments);
    if !wants_hooks || isolation == Isolation::default() {
        return None;
    }
    if isolation.skips_site {
        let fact = "python -S loads no site packages: no stage is marked, no garbage collected by bytes, and cleanup_memory does not purge";
        return Some(Finding::warning("python-isolated", fact).remedy("start it without -S"));
    }
    let fact = "python -I or -E ignores PYTHONPATH: hooks from the launcher do not load, so no stage is marked and no garbage collected by bytes";
    let remedy = "start it without -I and -E, or install the flarena package into this Python";
    Some(Finding::warning("python-isolated", fact).remedy(remedy))
}

/// Garbage that is to be collected by bytes, and is not.
pub fn uncounted_garbage(settings: &Settings) -> Option<Finding> {
    let fact = settings.why_gc_is_inactive()?;
    let remedy = "leave FLARENA_RECYCLE on, or call gc.collect() in each round; FLARENA_GC=off if that is meant";
    Some(Finding::note("uncounted-garbage", fact).remedy(remedy))
}

/// Allocators inside Python, beside malloc. `program` is the file that runs.
pub fn allocators(program: &str, maps: &[Mapping], get: Get) -> Vec<Finding> {
    let mut findings = Vec::new();
    let program = kernel_path::file_name(program);
    let mut libraries = maps.iter().map(Mapping::file_name).chain([program]);
    if libraries.any(is_free_threaded_python) {
        let fact = "free-threaded Python serves its objects with a mimalloc of its own";
        findings.push(mimalloc::finding("python-mimalloc", fact, get));
        return findings;
    }
    let choice = get("PYTHONMALLOC").unwrap_or_default();
    if [OsStr::new("malloc"), OsStr::new("malloc_debug")].contains(&choice.as_os_str()) {
        let fact = "PYTHONMALLOC=malloc: Python's small objects come from malloc, too";
        findings.push(Finding::ok("pymalloc", fact));
        return findings;
    }
    let named = |map: &&Mapping| map.name.starts_with("[anon:") && map.name.contains("pymalloc");
    let arenas: u64 = maps.iter().filter(named).map(|map| map.rss_bytes).sum();
    let fact =
        "pymalloc serves Python objects up to 512 bytes from 1 MB arenas of its own; an arena \
                goes back only when it is empty";
    let remedy = "PYTHONMALLOC=malloc takes them from malloc, and costs CPU time";
    let finding = Finding::note("pymalloc", fact).remedy(remedy);
    findings.push(if arenas > 0 {
        finding.bytes(arenas)
    } else {
        finding
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Isolation {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        isolation(&arguments)
    }

    #[test]
    fn a_program_that_is_only_called_after_python_is_none() {
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
    fn isolating_options_are_seen_alone_and_bundled() {
        for line in [
            "python3 -I x.py",
            "python3 -uE x.py",
            "python3 -W error -I x.py",
        ] {
            assert!(of(line).ignores_environment, "{line}");
        }
        assert!(of("python3 -BS x.py").skips_site);
    }

    #[test]
    fn options_of_the_script_are_not_pythons() {
        for line in [
            "python3 x.py -I",
            "python3 -m mod -E",
            "python3 -c -I",
            "python3 -XI x.py",
        ] {
            assert_eq!(of(line), Isolation::default(), "{line}");
        }
        assert_eq!(isolation(&[]), Isolation::default());
    }

    #[test]
    fn hooks_matter_only_where_they_are_wanted() {
        let arguments = ["python3".into(), "-I".into()];
        assert!(hook_findings(&arguments, true).is_some());
        assert!(hook_findings(&arguments, false).is_none());
    }

    #[test]
    fn a_free_threaded_python_is_told_by_its_name() {
        let ids = |program| {
            let found = allocators(program, &[], &|_| None);
            found.iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(ids("/usr/bin/python3.13t"), ["python-mimalloc"]);
        assert_eq!(ids("/usr/bin/python3.13"), ["pymalloc"]);
    }
}
