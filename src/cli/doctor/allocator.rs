//! The allocator of a live process and its effective options, read from the process.

use std::os::unix::fs::MetadataExt;

use flarena_shared::defaults;
use flarena_shared::kernel_path::{self, file_name};

use super::environment::{decay_findings, preload_entries};
use super::finding::Finding;
use super::jobs;
use super::subject::Subject;
use crate::control::{AskError, Stats};
use crate::library::elf::Header;
use crate::library::privilege::Privilege;
use crate::library::search::FILE_NAME;
use crate::output::plain;

pub fn findings(subject: &Subject) -> Vec<Finding> {
    if let Some(finding) = without_effect(subject) {
        return vec![finding];
    }
    let mut findings = vec![presence(subject)];
    findings.extend(ownership(subject));
    findings.extend(deep_bound(subject));
    match &subject.stats {
        Ok(stats) => {
            findings.extend(options(subject));
            findings.extend(unmap_hooks(stats, |name| subject.maps_file(name)));
        }
        Err(error) if subject.library().is_some() => findings.push(no_answer(error)),
        Err(_) if is_jemalloc_elsewhere(subject) => {
            findings.extend(decay_findings(&|name| subject.get(name)));
        }
        Err(_) => {}
    }
    findings
}

/// Why a preload does nothing in this program.
fn without_effect(subject: &Subject) -> Option<Finding> {
    let header = subject.header.as_ref();
    if header.is_some_and(Header::uses_musl) {
        let fact = "the program uses musl, not glibc, so flarena has no effect in it";
        return Some(Finding::note("library", fact).remedy("use a build of the program for glibc"));
    }
    if !subject.is_secure || subject.library().is_some() {
        return None;
    }
    let file = subject.process.path("exe");
    let has_set_id = std::fs::metadata(&file).is_ok_and(|meta| meta.mode() & 0o6000 != 0);
    let privilege = if has_set_id {
        Privilege::SetId
    } else {
        Privilege::FileCapabilities
    };
    let fact = format!(
        "{} {}, so the loader ignored LD_PRELOAD and flarena has no effect",
        plain(&subject.program),
        privilege.name()
    );
    Some(Finding::warning("library", fact).remedy(privilege.remedy()))
}

/// Whether the library is loaded, and if not, whether it should be.
fn presence(subject: &Subject) -> Finding {
    if let Some(map) = subject.library() {
        if kernel_path::is_deleted(&map.name) {
            let fact = format!(
                "{} was replaced on disk; this process still runs the old file",
                map.path()
            );
            let remedy = "restart the process when its job has ended";
            return Finding::note("library", fact).remedy(remedy);
        }
        return Finding::ok("library", format!("{} is loaded", map.path()));
    }
    let preload = subject.get("LD_PRELOAD").unwrap_or_default();
    let named = preload_entries(&preload)
        .into_iter()
        .find(|entry| file_name(entry) == FILE_NAME);
    if let Some(named) = named {
        let fact =
            format!("LD_PRELOAD names {named}, but the loader could not load it: this process runs without flarena");
        let remedy =
            "run `flarena doctor` (without a PID) in the environment of the process: it gives the reason";
        return Finding::error("library", fact).remedy(remedy);
    }
    if subject
        .header
        .as_ref()
        .is_some_and(|header| header.interpreter.is_none())
    {
        let fact = "the program is statically linked, so no preload can replace its malloc";
        return Finding::warning("library", fact)
            .remedy("use a dynamically linked build of the program");
    }
    jobs::without_library(subject).unwrap_or_else(|| {
        let remedy = "start it with `flarena run -- COMMAND`";
        Finding::note(
            "library",
            "libflarena.so is not loaded: this process runs without flarena",
        )
        .remedy(remedy)
    })
}

/// Which file serves malloc. The pointers in the process prove it. Without them the process's own
/// answer counts, else the files that define malloc.
fn ownership(subject: &Subject) -> Option<Finding> {
    let bindings = &subject.bindings;
    let is_loaded = subject.library().is_some();
    if let Some(server) = bindings.server().filter(|_| bindings.is_proven) {
        let count = bindings.calls.iter().filter(|(_, to)| to == server).count();
        let fact = format!(
            "{} serves malloc to {count} of the loaded files",
            plain(server)
        );
        return Some(match (is_loaded, file_name(server) == FILE_NAME) {
            (true, false) => Finding::error("owner", fact + ", so flarena is inactive").remedy(
                "remove the other allocator from LD_PRELOAD, or link the program without it",
            ),
            _ => Finding::ok("owner", fact),
        });
    }
    if let Ok(stats) = &subject.stats {
        return Some(match stats.flag("owner") {
            Some(false) => Finding::error(
                "owner",
                "another allocator serves malloc, so flarena is inactive",
            )
            .remedy("remove the other allocator from LD_PRELOAD, or link the program without it"),
            _ => Finding::ok("owner", "flarena reports that it serves malloc"),
        });
    }
    let others: Vec<&str> = bindings.other_definers().map(file_name).collect();
    let fact = match others.as_slice() {
        [] => "the C library serves malloc".to_owned(),
        others => format!(
            "beside the C library, these define malloc: {}; the doctor cannot see which one is used",
            others.join(", ")
        ),
    };
    Some(Finding::note("owner", plain(&fact)))
}

/// Libraries that are bound to another malloc. A block of one malloc must not reach the free of
/// another.
fn deep_bound(subject: &Subject) -> Option<Finding> {
    let strays = subject.bindings.strays();
    let names: Vec<&str> = strays.iter().map(|(caller, _)| file_name(caller)).collect();
    let (first, rest) = names.split_first()?;
    let more = if rest.is_empty() {
        String::new()
    } else {
        format!(" and {} more", rest.len())
    };
    let fact = format!(
        "another malloc, which flarena does not manage, serves {}{more} (loaded with RTLD_DEEPBIND, or linked with a malloc)",
        plain(first)
    );
    let is_jemalloc = subject.effective("FLARENA_ALLOCATOR").as_deref() == Some("jemalloc");
    if is_jemalloc {
        let remedy = "start it with `flarena run --allocator glibc`";
        let fact =
            fact + ". A block that one malloc allocates and another frees crashes the program";
        return Some(Finding::warning("deepbind", fact).remedy(remedy));
    }
    Some(Finding::note("deepbind", fact))
}

/// Libraries that keep RDMA registrations, and overwrite libc's code to see unmapped pages.
const RDMA: [&str; 3] = ["libucm.so", "libfabric.so", "libopen-pal.so"];

fn unmap_hooks(stats: &Stats, is_loaded: impl Fn(&str) -> bool) -> Option<Finding> {
    let mut fields = stats.group("recycler");
    let are_installed = fields.find(|(name, _)| *name == "unmap_hooks")?.1;
    if are_installed.as_bool() != Some(true) {
        return None;
    }
    let loaded: Vec<&str> = RDMA.into_iter().filter(|name| is_loaded(name)).collect();
    let loaded = match loaded.as_slice() {
        [] => String::new(),
        names => format!(" ({} is loaded)", names.join(", ")),
    };
    let fact = format!(
        "libc's madvise is overwritten, as caches of RDMA registrations do{loaded}: \
         flarena reports each unmapping through it and moves no pages between blocks"
    );
    Some(Finding::ok("unmap-hooks", fact))
}

fn no_answer(error: &AskError) -> Finding {
    let fact = plain(&error.to_string());
    match error {
        AskError::NoChannel { .. } => Finding::note("channel", fact),
        _ => Finding::warning("channel", fact + ". So its options are not checked"),
    }
}

fn is_jemalloc_elsewhere(subject: &Subject) -> bool {
    let server = subject.bindings.server().map(file_name).unwrap_or_default();
    server.contains("jemalloc") || subject.maps_file("libjemalloc.so")
}

/// The effective options, as the allocator reports them.
fn options(subject: &Subject) -> Vec<Finding> {
    let Ok(stats) = &subject.stats else {
        return Vec::new();
    };
    let allocator = stats.text("allocator").unwrap_or("unknown");
    let backend = |name: &str| {
        let value = stats.group("backend").find(|(key, _)| *key == name)?.1;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    };
    let mut findings = Vec::new();
    if allocator == "jemalloc" {
        let words = ["narenas", "dirty_decay_ms", "muzzy_decay_ms", "thp"];
        let pairs = words
            .iter()
            .filter_map(|name| Some(format!("{name} {}", backend(name)?)));
        let fact = format!(
            "jemalloc is active: {}",
            pairs.collect::<Vec<_>>().join(", ")
        );
        findings.push(Finding::ok("allocator", plain(&fact)));
        let never = |name: &str| backend(name).as_deref() == Some("-1");
        if never("dirty_decay_ms") || never("muzzy_decay_ms") {
            let fact = "jemalloc keeps free pages for ever, because its decay is -1";
            let finding = Finding::warning("no-decay", fact)
                .remedy("set the options before the program starts:");
            let line = format!("export MALLOC_CONF={}", defaults::MALLOC_CONF);
            findings.push(finding.command(line));
        }
    } else {
        let arenas = subject
            .effective("MALLOC_ARENA_MAX")
            .unwrap_or_else(|| "?".to_owned());
        let fact = format!("{allocator} is active, with at most {arenas} arenas");
        findings.push(Finding::ok("allocator", plain(&fact)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_of_a_registration_cache_are_named_with_the_loaded_library() {
        let found = |hooks: bool| {
            let stats = format!(r#"{{"recycler":{{"unmap_hooks":{hooks}}}}}"#);
            unmap_hooks(&Stats::parse(&stats).unwrap(), |name| name == "libucm.so")
        };
        assert!(found(true).unwrap().fact.contains("(libucm.so is loaded)"));
        assert!(found(false).is_none());
    }
}
