//! Mistakes in an environment: bad settings, unknown jemalloc options, preloads that are missing or
//! that replace malloc, too.

use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flarena_shared::malloc_conf;
use flarena_shared::parse;
use flarena_shared::settings::{self, Allocator, Key, Settings, TABLE};
use flarena_shared::system_error::reason;

use super::finding::Finding;
use super::subject::Subject;
use crate::library::elf::Header;
use crate::library::search::FILE_NAME;
use crate::library::symbols::Malloc;
use crate::run::{describe_fault, messages_about_unknown_names};

/// Looks up one variable.
pub type Get<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The settings as the library reads them.
pub fn settings(get: Get) -> Settings {
    read(get).0
}

fn read(get: Get) -> (Settings, Vec<Finding>) {
    let values: Vec<_> = TABLE.iter().map(|row| get(row.name)).collect();
    let value = |key: Key| values[key as usize].as_deref().map(OsStr::as_bytes);
    let mut findings = Vec::new();
    let settings = settings::read(value, |problem| {
        let row = settings::setting(problem.key);
        let fact = problem.sentence(shown(problem.value)).to_string();
        let remedy = format!("set {} to {}, or unset it", row.name, row.accepts);
        findings.push(Finding::warning("bad-setting", fact).remedy(remedy));
    });
    (settings, findings)
}

/// A value, cut to a readable length.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short + "..."
    } else {
        short
    }
}

pub fn of_process(subject: &Subject) -> Vec<Finding> {
    let Ok(environment) = &subject.environment else {
        return Vec::new();
    };
    let inside = |path: &str| subject.process.inside(path);
    let mut findings = findings(&|name| subject.get(name), &inside);
    findings.extend(unknown_settings(environment.names()));
    findings
}

pub fn unreadable(subject: &Subject) -> Option<Finding> {
    let error = subject.environment.as_ref().err()?;
    let fact = format!("the environment is not readable, so the settings are not checked: {error}");
    let remedy = "run the doctor as the user of the process, or as root";
    Some(Finding::note("environment", fact).remedy(remedy))
}

/// The findings from the environment. `inside` maps a path of the process to one that can be opened
/// here.
pub fn findings(get: Get, inside: &dyn Fn(&str) -> PathBuf) -> Vec<Finding> {
    let (settings, mut findings) = read(get);
    if is_on(get, Key::JemallocPreload) && settings.allocator() == Allocator::Glibc {
        let fact = "NVFLARE_ENABLE_JEMALLOC_PRELOAD selects jemalloc, but FLARENA_ALLOCATOR selects glibc, and glibc is used";
        findings.push(
            Finding::note("conflicting-settings", fact).remedy("unset the one that is wrong"),
        );
    }
    let is_set = |key| get(settings::setting(key).name).is_some_and(|value| !value.is_empty());
    let without_effect = settings.without_effect(is_set);
    findings.extend(
        without_effect.map(|fact| Finding::note("no-effect", fact).remedy("set both, or unset it")),
    );
    if get(settings::REMOVED_NAME).is_some_and(|value| !value.is_empty()) {
        findings.push(Finding::warning("bad-setting", settings::NAME_WAS_REMOVED));
    }
    if let Some(conf) = get("MALLOC_CONF") {
        findings.extend(malloc_conf_findings(conf.as_bytes()));
    }
    let tunables = get("GLIBC_TUNABLES").unwrap_or_default();
    findings.extend(hugetlb_finding(tunables.as_bytes(), settings.allocator()));
    if let Some(preload) = get("LD_PRELOAD") {
        findings.extend(preload_findings(&preload, inside));
    }
    findings
}

/// Variables that look like settings but are not, most likely misspelt.
pub fn unknown_settings(names: impl Iterator<Item = OsString>) -> Vec<Finding> {
    let finding = |fact| {
        let remedy = "correct its name, or unset it";
        Finding::warning("unknown-setting", fact).remedy(remedy)
    };
    messages_about_unknown_names(names).map(finding).collect()
}

fn is_on(get: Get, key: Key) -> bool {
    let value = get(settings::setting(key).name).unwrap_or_default();
    parse::boolean(value.as_bytes().trim_ascii()) == Some(true)
}

/// The effect of glibc's setting for huge pages on large blocks. glibc alone serves them with 2 and above.
fn hugetlb_finding(tunables: &[u8], allocator: Allocator) -> Option<Finding> {
    let values = tunables.split(|&byte| byte == b':');
    let mut values = values.filter_map(|one| one.strip_prefix(b"glibc.malloc.hugetlb="));
    let fact = match (values.next_back()?, allocator) {
        (b"0", _) => return None,
        (_, Allocator::Jemalloc) => {
            "glibc.malloc.hugetlb has no effect, because jemalloc serves this process"
        }
        (b"1", Allocator::Glibc) => {
            "with glibc.malloc.hugetlb=1 large blocks that fill pages of 2 MB, and all of 32 MB and more, ask for such pages"
        }
        (_, Allocator::Glibc) => return None,
    };
    Some(
        Finding::note("hugetlb", fact)
            .remedy("FLARENA_HUGE=2M does the same in both modes; docs/huge-pages.md"),
    )
}

fn malloc_conf_findings(conf: &[u8]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let report = |pair: &[u8], fault| {
        let fact = format!("MALLOC_CONF: {}", describe_fault(pair, fault));
        let remedy = "correct it or remove it; until then jemalloc ignores it";
        findings.push(Finding::warning("malloc-conf", fact).remedy(remedy));
    };
    malloc_conf::pairs(conf, report).for_each(drop);
    findings
}

/// jemalloc's default decay is ten seconds, and an idle program's dirty pages stay for ever.
pub fn decay_findings(get: Get) -> Option<Finding> {
    let conf = get("MALLOC_CONF").unwrap_or_default();
    let has =
        |key: &[u8]| malloc_conf::pairs(conf.as_bytes(), |_, _| ()).any(|pair| pair.key == key);
    if has(b"dirty_decay_ms") && has(b"muzzy_decay_ms") {
        return None;
    }
    let fact = "jemalloc runs without dirty_decay_ms and muzzy_decay_ms, so it keeps freed pages longer than NVFlare advises";
    let conf = flarena_shared::defaults::MALLOC_CONF;
    let finding =
        Finding::warning("no-decay", fact).remedy("set the options before the program starts:");
    Some(finding.command(format_args!("export MALLOC_CONF={conf}")))
}

fn preload_findings(preload: &OsStr, inside: &dyn Fn(&str) -> PathBuf) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_flarena_ahead = false;
    for entry in preload_entries(preload) {
        let name = entry.rsplit('/').next().unwrap_or(&entry);
        is_flarena_ahead |= name == FILE_NAME;
        // Only the loader resolves a bare name or a `$` in a path.
        if !entry.starts_with('/') || entry.contains('$') {
            continue;
        }
        let path = inside(&entry);
        if let Some(reason) = why_not_loadable(&path) {
            let fact = format!("LD_PRELOAD names {entry}, {reason}: programs start without it");
            findings.push(
                Finding::error("preload-missing", fact)
                    .remedy("correct the path or remove the entry"),
            );
        } else if !is_flarena_ahead && defines_malloc(&path) {
            let fact = format!("LD_PRELOAD names another allocator, {entry}, which serves malloc instead of flarena");
            let remedy = "start the program with flarena run, which puts flarena first";
            findings.push(Finding::warning("other-allocator", fact).remedy(remedy));
        }
    }
    findings
}

/// Completes "LD_PRELOAD names x.so, ...".
fn why_not_loadable(path: &Path) -> Option<String> {
    match Header::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Some("which does not exist".to_owned())
        }
        Err(error) => Some(format!("which cannot be read: {}", reason(&error))),
        Ok(None) => Some("which is not a library".to_owned()),
        Ok(Some(Header { machine, .. })) if machine != ARCH => {
            Some(format!("which is built for {machine}"))
        }
        Ok(Some(_)) => None,
    }
}

fn defines_malloc(path: &Path) -> bool {
    matches!(Malloc::read(path), Ok(Some(malloc)) if malloc.is_defined)
}

pub fn preload_entries(preload: &OsStr) -> Vec<String> {
    let entries = preload
        .as_bytes()
        .split(|byte| *byte == b':' || *byte == b' ');
    entries
        .filter(|entry| !entry.is_empty())
        .map(|entry| String::from_utf8_lossy(entry).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn ids(variables: &[(&str, &str)]) -> Vec<&'static str> {
        let get = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        };
        findings(&get, &|path| path.into())
            .iter()
            .map(|finding| finding.id)
            .collect()
    }

    #[test]
    fn an_empty_environment_has_no_findings() {
        assert!(ids(&[]).is_empty());
    }

    #[test]
    fn the_tunable_hugetlb_is_explained_where_flarena_changes_its_effect() {
        for (tunables, allocator, expected) in [
            ("glibc.malloc.hugetlb=1", "glibc", true),
            ("glibc.malloc.hugetlb=1", "jemalloc", true),
            ("glibc.malloc.hugetlb=2", "jemalloc", true),
            ("glibc.malloc.hugetlb=2", "glibc", false),
            (
                "glibc.malloc.hugetlb=1:glibc.malloc.hugetlb=0",
                "glibc",
                false,
            ),
            ("glibc.malloc.perturb=1", "glibc", false),
        ] {
            let found = ids(&[
                ("GLIBC_TUNABLES", tunables),
                ("FLARENA_ALLOCATOR", allocator),
            ]);
            assert_eq!(found == ["hugetlb"], expected, "{tunables} {allocator}");
        }
    }

    #[test]
    fn each_bad_or_removed_value_is_found_and_no_good_one() {
        for row in TABLE {
            for good in row.good {
                let mut found = ids(&[(row.name, good)]);
                found.retain(|id| *id != "no-effect");
                assert!(found.is_empty(), "{}={good}", row.name);
            }
            let expected = match row.key {
                Key::MallocConf => "malloc-conf",
                _ => "bad-setting",
            };
            let removed = row.removed.iter().map(|removed| &removed.value);
            for bad in row.bad.iter().chain(removed) {
                assert_eq!(ids(&[(row.name, bad)]), [expected], "{}={bad}", row.name);
            }
        }
    }

    #[test]
    fn bad_settings_unknown_options_and_conflicts_are_found() {
        assert_eq!(ids(&[("FLARENA_DECAY_MS", "soon")]), ["bad-setting"]);
        assert_eq!(
            ids(&[("MALLOC_CONF", "narenas:2,dirty_decay:1")]),
            ["malloc-conf"]
        );
        let both = [
            ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true"),
            ("FLARENA_ALLOCATOR", "glibc"),
        ];
        assert_eq!(ids(&both), ["conflicting-settings"]);
        assert_eq!(ids(&[("FLARENA_MARKER_FILE", "/tmp/x")]), ["no-effect"]);
    }

    #[test]
    fn a_misspelt_setting_is_reported_with_the_nearest_name() {
        let found = unknown_settings(["FLARENA_ALOCATOR".into(), "HOME".into()].into_iter());
        assert_eq!(found.len(), 1);
        assert!(found[0].fact.contains("did you mean FLARENA_ALLOCATOR?"));
    }

    #[test]
    fn a_missing_preload_is_found_and_a_bare_name_is_not_checked() {
        assert_eq!(ids(&[("LD_PRELOAD", "/nowhere/x.so")]), ["preload-missing"]);
        assert!(ids(&[("LD_PRELOAD", "libm.so.6")]).is_empty());
    }

    #[test]
    fn a_preload_that_is_no_library_is_found() {
        let scratch = Scratch::new();
        let text = scratch.write("libflarena.so", "text");
        let preload = text.to_string_lossy();
        assert_eq!(ids(&[("LD_PRELOAD", &preload)]), ["preload-missing"]);
    }

    #[test]
    fn another_allocator_is_recognised_by_its_symbols() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = crate::proc::parse_maps(&maps);
        let libc = libc
            .iter()
            .find(|map| map.file_name() == "libc.so.6")
            .unwrap();
        assert_eq!(ids(&[("LD_PRELOAD", &libc.name)]), ["other-allocator"]);
        let first = format!("/lib/libflarena.so {}", libc.name);
        let found = ids(&[("LD_PRELOAD", &first)]);
        assert!(!found.contains(&"other-allocator"), "{found:?}");
    }

    #[test]
    fn jemalloc_without_decay_is_reported() {
        let with = |conf: &'static str| decay_findings(&move |_| Some(conf.into()));
        assert!(with("narenas:1").is_some());
        assert!(with("dirty_decay_ms:1,muzzy_decay_ms:1").is_none());
    }

    #[test]
    fn a_long_value_is_cut() {
        assert!(shown(&[b'x'; 1000]).len() < 70);
    }
}
