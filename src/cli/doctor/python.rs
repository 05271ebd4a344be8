//! Python programs: whether the hooks load, and which allocators Python itself uses.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use flarena_shared::pools::is_free_threaded_python;
use flarena_shared::settings::Settings;
use flarena_shared::{kernel_path, python_line};

use super::environment::{self, Get};
use super::finding::Finding;
use super::outside_malloc::mimalloc;
use super::subject::Subject;
use crate::proc::Mapping;
use crate::units::bytes;

/// Any program has smaller arenas.
const MIN_ARENA_BYTES: u64 = 16 << 20;

/// Options that disable the environment or the site packages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Isolation {
    /// `-I` or `-E`: PYTHONPATH is not read.
    pub ignores_environment: bool,
    /// `-S`: no `sitecustomize` and no `.pth` files.
    pub skips_site: bool,
}

/// Whether a path from the command line or the kernel names CPython or PyPy.
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

/// Options that stop the hooks. The hooks mark stages, collect garbage there, and make NVFlare's cleanup purge jemalloc.
/// Without them the governor still collects garbage.
pub fn hook_findings(arguments: &[OsString], wants_hooks: bool) -> Option<Finding> {
    let isolation = isolation(arguments);
    if !wants_hooks || isolation == Isolation::default() {
        return None;
    }
    if isolation.skips_site {
        let fact = "python -S does not run flarena's hooks: no stage is marked, no garbage is collected at stages, and NVFlare's cleanup does not purge jemalloc";
        return Some(Finding::warning("python-isolated", fact).remedy("start it without -S"));
    }
    let fact = "python -I or -E ignores PYTHONPATH, so flarena's hooks do not run: no stage is marked, and no garbage is collected at stages";
    let remedy = "install the flarena package into this Python, or start it without -I and -E";
    Some(Finding::warning("python-isolated", fact).remedy(remedy))
}

/// `FLARENA_GC=auto` without an effect.
pub fn inactive_gc(settings: &Settings) -> Option<Finding> {
    let fact = settings.why_gc_is_inactive()?;
    let remedy = "unset FLARENA_RECYCLE; FLARENA_GC=off only removes this note";
    Some(Finding::note("uncounted-garbage", fact).remedy(remedy))
}

fn settings_of(subject: &Subject) -> Option<Settings> {
    let is_python = subject.is_python();
    is_python.then(|| environment::settings(&|name| subject.get(name)))
}

pub fn hooks(subject: &Subject) -> Option<Finding> {
    hook_findings(&subject.arguments, settings_of(subject)?.wants_hooks())
}

pub fn garbage(subject: &Subject) -> Option<Finding> {
    inactive_gc(&settings_of(subject)?)
}

pub fn pymalloc(subject: &Subject) -> Option<Finding> {
    if !subject.is_python() {
        return None;
    }
    let get = |name: &str| subject.get(name);
    let arenas = subject
        .answer()
        .and_then(|stats| stats.number("pymalloc_bytes"));
    allocators(&subject.program, &subject.maps, &get, arenas)
}

/// Python's own allocators. `program` is the executable file, `arenas` the size of pymalloc's arenas, if the
/// library reports it.
pub fn allocators(
    program: &str,
    maps: &[Mapping],
    get: Get,
    arenas: Option<u64>,
) -> Option<Finding> {
    let program = kernel_path::file_name(program);
    let mut libraries = maps.iter().map(Mapping::file_name).chain([program]);
    if libraries.any(is_free_threaded_python) {
        let fact = "free-threaded Python allocates its objects with its own mimalloc";
        return Some(mimalloc("python-mimalloc", fact, get));
    }
    let choice = get("PYTHONMALLOC").unwrap_or_default();
    if [OsStr::new("malloc"), OsStr::new("malloc_debug")].contains(&choice.as_os_str()) {
        let fact = "PYTHONMALLOC=malloc: Python's small objects come from malloc";
        return Some(Finding::ok("pymalloc", fact));
    }
    let named = |map: &&Mapping| map.name.starts_with("[anon:") && map.name.contains("pymalloc");
    let mapped: u64 = maps.iter().filter(named).map(|map| map.rss_bytes).sum();
    let arenas = arenas.or((mapped > 0).then_some(mapped));
    if arenas.is_some_and(|size| size < MIN_ARENA_BYTES) {
        return None;
    }
    let held = arenas.map_or(String::new(), |size| format!("; they hold {}", bytes(size)));
    let fact = format!(
        "Python's pymalloc allocates objects up to 512 bytes in arenas of 1 MB and returns only empty arenas{held}"
    );
    let remedy = "if that grows, set PYTHONMALLOC=malloc, which costs CPU time";
    let finding = Finding::note("pymalloc", fact).remedy(remedy);
    Some(match arenas {
        Some(size) => finding.bytes(size),
        None => finding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Isolation {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        isolation(&arguments)
    }

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
    fn isolating_options_are_found_alone_and_bundled() {
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
    fn isolating_options_are_reported_only_if_hooks_are_wanted() {
        let arguments = ["python3".into(), "-I".into()];
        assert!(hook_findings(&arguments, true).is_some());
        assert!(hook_findings(&arguments, false).is_none());
    }

    #[test]
    fn small_arenas_of_pymalloc_are_not_worth_a_note() {
        let fact = |arenas: u64| {
            let found = allocators("python3.13", &[], &|_| None, Some(arenas << 20));
            found.map(|one| one.fact)
        };
        assert_eq!(fact(8), None);
        assert!(fact(64).is_some_and(|fact| fact.ends_with("; they hold 64.0 MB")));
    }

    #[test]
    fn a_free_threaded_python_is_recognised_by_its_name() {
        let ids = |program| {
            let found = allocators(program, &[], &|_| None, None);
            found.map(|one| one.id)
        };
        assert_eq!(ids("/usr/bin/python3.13t"), Some("python-mimalloc"));
        assert_eq!(ids("/usr/bin/python3.13"), Some("pymalloc"));
    }
}
