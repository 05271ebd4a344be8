//! Rules about a program: its malloc, the allocator's options, its environment, and Python's allocators.

use flarena_shared::kernel_path::{self, file_name};
use flarena_shared::pools::is_free_threaded_python;
use flarena_shared::settings::{self, Allocator};
use flarena_shared::{defaults, malloc_conf, python_line};

use super::finding::Finding;
use super::memory::mimalloc;
use super::subject::{Preload, Subject};
use crate::control::AskError;
use crate::library::elf::Header;
use crate::library::privilege::Privilege;
use crate::library::search::FILE_NAME;
use crate::output::plain;
use crate::proc::Mapping;
use crate::run::{describe_fault, messages_about_unknown_names};
use crate::units::bytes;

const LINK_DYNAMICALLY: &str = "use a dynamically linked build of the program";
const REMOVE_OTHER: &str =
    "remove the other allocator from LD_PRELOAD, or link the program without it";

/// Whether the library would serve malloc in the program of a command.
pub fn program(s: &Subject) -> Option<Finding> {
    let Some(program) = &s.command else {
        let name = s.arguments.first()?.display();
        let fact = format!("the command {name} cannot be found or read");
        return Some(Finding::error(fact).remedy("correct its path"));
    };
    let path = program.path.display();
    Some(if let Some(refusal) = program.refusal() {
        Finding::error(refusal + ", so flarena run starts it without the library")
            .remedy("use a build of the program for this machine's glibc, without a sanitizer")
    } else if let Some(reason) = program.why_no_effect() {
        let privilege = program.privilege;
        let remedy = privilege.map_or(LINK_DYNAMICALLY, Privilege::remedy);
        Finding::warning(reason).remedy(remedy)
    } else if s.has_malloc {
        let fact = format!("{path} contains a malloc, so flarena would be inactive");
        Finding::error(fact).remedy("link the program without it")
    } else if let Some(Ok(library)) = &s.library {
        let library = library.path.display();
        Finding::ok(format!("{path} would get its malloc from {library}"))
    } else {
        Finding::note(format!("{path} would start with the system's malloc"))
    })
}

/// Whether the library is loaded, and if not, whether it should be.
pub fn library(s: &Subject) -> Option<Finding> {
    let header = s.header.as_ref();
    let mut preloads = s.preloads.iter().map(|preload| &preload.entry);
    let preload = preloads.find(|entry| file_name(entry) == FILE_NAME);
    Some(if let Some(map) = s.mapped_library() {
        let path = map.path();
        if !kernel_path::is_deleted(&map.name) {
            return Some(Finding::ok(format!("{path} is loaded")));
        }
        let fact = format!("{path} was replaced on disk; this process still runs the old file");
        Finding::note(fact).remedy("restart the process when its job has ended")
    } else if header.is_some_and(Header::uses_musl) {
        Finding::note("the program uses musl, not glibc, so flarena has no effect in it")
            .remedy("use a build of the program for glibc")
    } else if let Some(privilege) = s.privilege {
        let is_privileged = format!("{} {}", s.program, privilege.name());
        let fact = is_privileged + ", so the loader ignored LD_PRELOAD and flarena has no effect";
        Finding::warning(fact).remedy(privilege.remedy())
    } else if let Some(preload) = preload {
        let fact = format!("LD_PRELOAD names {preload}, but the loader could not load it: this process runs without flarena");
        let remedy = "run `flarena doctor` (without a PID) in the environment of the process: it gives the reason";
        Finding::error(fact).remedy(remedy)
    } else if header.is_some_and(|header| header.interpreter.is_none()) {
        Finding::warning("the program is statically linked, so no preload can replace its malloc")
            .remedy(LINK_DYNAMICALLY)
    } else if let Some((parent, launcher)) = s.deployment.launch {
        let fact = "libflarena.so is not loaded";
        let has_it = |pid| format!("{fact}, but process {pid}, which launched this job, has it");
        let of_parent = parent.map(|pid| Finding::warning(has_it(pid)));
        of_parent
            .unwrap_or(Finding::note(fact))
            .remedy(launcher.remedy())
    } else {
        Finding::note("libflarena.so is not loaded: this process runs without flarena")
            .remedy("start it with `flarena run -- COMMAND`")
    })
}

/// Which file serves malloc. The pointers in the process prove it. Without them the process's own
/// answer counts, else the files that define malloc.
pub fn owner(s: &Subject) -> Option<Finding> {
    let others: Vec<&str> = s.bindings.other_definers().map(file_name).collect();
    let is_loaded = s.mapped_library().is_some();
    let (fact, is_active) = if let Some(server) = s.bindings.server() {
        let calls = s.bindings.calls.iter();
        let count = calls.filter(|(_, to)| to == server).count();
        let fact = format!("{server} serves malloc to {count} of the loaded files");
        (fact, !is_loaded || file_name(server) == FILE_NAME)
    } else if let Some(stats) = s.answer() {
        match stats.value("owner") {
            Some(false) => ("another allocator serves malloc".to_owned(), false),
            _ => ("flarena reports that it serves malloc".to_owned(), true),
        }
    } else if others.is_empty() {
        return Some(Finding::note("the C library serves malloc"));
    } else {
        let others = others.join(", ");
        let fact = format!("beside the C library, these define malloc: {others}; the doctor cannot see which one is used");
        return Some(Finding::note(fact));
    };
    Some(match is_active {
        true => Finding::ok(fact),
        false => Finding::error(fact + ", so flarena is inactive").remedy(REMOVE_OTHER),
    })
}

/// Libraries that are bound to another malloc. A block of one malloc must not reach the free of
/// another.
pub fn deep_bound(s: &Subject) -> Option<Finding> {
    let strays = s.bindings.strays();
    let first = file_name(&strays.first()?.0);
    let more = match strays.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let fact = format!(
        "another malloc, which flarena does not manage, serves {first}{more} (loaded with RTLD_DEEPBIND, or linked with a malloc)"
    );
    if s.reported("settings", "FLARENA_ALLOCATOR").as_deref() != Some("jemalloc") {
        return Some(Finding::note(fact));
    }
    let danger = ". A block that one malloc allocates and another frees crashes the program";
    let remedy = "start it with `flarena run --allocator glibc`";
    Some(Finding::warning(fact + danger).remedy(remedy))
}

/// No answer of the library.
pub fn channel(s: &Subject) -> Option<Finding> {
    s.mapped_library()?;
    Some(match s.stats.as_ref()?.as_ref().err()? {
        error @ AskError::NoChannel { .. } => Finding::note(error.to_string()),
        error => Finding::warning(format!("{error}. So its options are not checked")),
    })
}

/// The effective options, as the allocator reports them.
pub fn allocator(s: &Subject) -> Option<Finding> {
    let allocator = s.answer()?.text("allocator").unwrap_or("unknown");
    Some(Finding::ok(if allocator == "jemalloc" {
        let words = ["narenas", "dirty_decay_ms", "muzzy_decay_ms", "thp"];
        let option = |name| Some(format!("{name} {}", s.reported("backend", name)?));
        let options: Vec<_> = words.into_iter().filter_map(option).collect();
        format!("jemalloc is active: {}", options.join(", "))
    } else {
        let arenas = s.reported("settings", "MALLOC_ARENA_MAX");
        let arenas = arenas.as_deref().unwrap_or("?");
        format!("{allocator} is active, with at most {arenas} arenas")
    }))
}

/// jemalloc's default decay is ten seconds, and an idle program's dirty pages stay for ever.
pub fn no_decay(s: &Subject) -> Option<Finding> {
    let names = ["dirty_decay_ms", "muzzy_decay_ms"];
    let is_never = |name| s.reported("backend", name).as_deref() == Some("-1");
    let conf = s.text("MALLOC_CONF");
    let is_set = |name: &str| {
        let mut pairs = malloc_conf::pairs(conf.as_bytes(), |_, _| ());
        pairs.any(|pair| pair.key == name.as_bytes())
    };
    let server = s.bindings.server().map(file_name).unwrap_or_default();
    let is_plain = server.contains("jemalloc") || s.maps_file("libjemalloc.so");
    let fact = if names.into_iter().any(is_never) {
        "jemalloc keeps free pages for ever, because its decay is -1"
    } else if is_plain && s.mapped_library().is_none() && !names.into_iter().all(is_set) {
        "jemalloc runs without dirty_decay_ms and muzzy_decay_ms, so it keeps freed pages longer than NVFlare advises"
    } else {
        return None;
    };
    let conf = defaults::MALLOC_CONF;
    let remedy =
        format!("set the options before the program starts:\n    export MALLOC_CONF={conf}");
    Some(Finding::warning(fact).remedy(remedy))
}

/// Libraries that keep RDMA registrations overwrite libc's code to see unmapped pages.
pub fn unmap_hooks(s: &Subject) -> Option<Finding> {
    let are_installed = s.reported("recycler", "unmap_hooks")? == "true";
    let fact = "libc's madvise is overwritten, as caches of RDMA registrations (UCX, libfabric, Open MPI) do: \
                flarena reports each unmapping through it and moves no pages between blocks";
    are_installed.then(|| Finding::ok(fact))
}

/// A jemalloc inside another library.
pub fn other_jemallocs(s: &Subject) -> Vec<Finding> {
    let finding = |(path, mallctl): &(String, String)| {
        if s.bindings.server() == Some(path) || file_name(path) == FILE_NAME {
            return None;
        }
        let prefix = plain(mallctl.strip_suffix("mallctl")?).to_uppercase();
        let fact = format!("{path} contains a jemalloc ({mallctl}), whose memory flarena neither returns nor records");
        let remedy = format!(
            "set {prefix}MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0; it then returns free memory at rest"
        );
        Some(Finding::note(fact).remedy(remedy))
    };
    s.bindings.jemallocs.iter().filter_map(finding).collect()
}

pub fn bad_settings(s: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    s.settings(|problem| {
        let row = settings::setting(problem.key);
        let value = String::from_utf8_lossy(problem.value);
        let shown = match value.char_indices().nth(60) {
            Some((end, _)) => format!("{}...", &value[..end]),
            None => value.into_owned(),
        };
        let remedy = format!("set {} to {}, or unset it", row.name, row.accepts);
        findings.push(Finding::warning(problem.sentence(shown).to_string()).remedy(remedy));
    });
    if s.get(settings::REMOVED_NAME).is_some() {
        findings.push(Finding::warning(settings::NAME_WAS_REMOVED));
    }
    findings
}

/// Variables that look like settings but are not, most likely misspelt.
pub fn unknown_settings(s: &Subject) -> Vec<Finding> {
    let finding = |fact| Finding::warning(fact).remedy("correct its name, or unset it");
    let facts = messages_about_unknown_names(s.environment.names());
    facts.map(finding).collect()
}

pub fn no_effect(s: &Subject) -> Vec<Finding> {
    let is_set = |key| s.get(settings::setting(key).name).is_some();
    let finding = |fact| Finding::note(fact).remedy("set both, or unset it");
    s.settings(|_| ())
        .without_effect(is_set)
        .map(finding)
        .collect()
}

/// Markers to a file that cannot be created would go to stderr only.
pub fn marker_file(s: &Subject) -> Option<Finding> {
    let fault = s.marker_folder_fault.as_ref()?;
    let file = s.text("FLARENA_MARKER_FILE");
    let fact = format!("the folder of FLARENA_MARKER_FILE={file} takes no file: {fault}");
    Some(Finding::warning(fact).remedy("create the folder, or correct the path"))
}

pub fn malloc_conf_faults(s: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    let conf = s.text("MALLOC_CONF");
    let report = |pair: &[u8], fault| {
        let fact = format!("MALLOC_CONF: {}", describe_fault(pair, fault));
        let remedy = "correct it or remove it; until then jemalloc ignores it";
        findings.push(Finding::warning(fact).remedy(remedy));
    };
    malloc_conf::pairs(conf.as_bytes(), report).for_each(drop);
    findings
}

/// glibc's setting for huge pages. glibc mode follows it.
pub fn hugetlb(s: &Subject) -> Option<Finding> {
    let tunables = s.text("GLIBC_TUNABLES");
    let mut last_first = tunables.split(':').rev();
    let value = last_first.find_map(|one| one.strip_prefix("glibc.malloc.hugetlb="))?;
    let has_no_effect = value != "0" && s.settings(|_| ()).allocator() == Allocator::Jemalloc;
    let fact = "glibc.malloc.hugetlb has no effect, because jemalloc serves this process";
    let remedy = "FLARENA_HUGE=2M does the same in both modes; docs/huge-pages.md";
    has_no_effect.then(|| Finding::note(fact).remedy(remedy))
}

pub fn missing_preloads(s: &Subject) -> Vec<Finding> {
    let finding = |preload: &Preload| {
        let (entry, fault) = (&preload.entry, preload.fault.as_ref()?);
        let fact = format!("LD_PRELOAD names {entry}, {fault}: programs start without it");
        Some(Finding::error(fact).remedy("correct the path or remove the entry"))
    };
    s.preloads.iter().filter_map(finding).collect()
}

/// Options that stop the hooks. The hooks mark stages, collect garbage there, and make NVFlare's cleanup purge jemalloc.
/// Without them the governor still collects garbage.
pub fn isolated_python(s: &Subject) -> Option<Finding> {
    let line = python_line::read(s.arguments.iter().map(|word| word.as_encoded_bytes()));
    if !s.is_python() || !s.settings(|_| ()).wants_hooks() {
        None
    } else if line.has(b'S') {
        let fact = "python -S does not run flarena's hooks: no stage is marked, no garbage is collected at stages, and NVFlare's cleanup does not purge jemalloc";
        Some(Finding::warning(fact).remedy("start it without -S"))
    } else if line.has(b'I') || line.has(b'E') {
        let fact = "python -I or -E ignores PYTHONPATH, so flarena's hooks do not run: no stage is marked, and no garbage is collected at stages";
        let remedy = "install the flarena package into this Python, or start it without -I and -E";
        Some(Finding::warning(fact).remedy(remedy))
    } else {
        None
    }
}

/// `FLARENA_GC=auto` without an effect.
pub fn uncounted_garbage(s: &Subject) -> Option<Finding> {
    let fact = s.settings(|_| ()).why_gc_is_inactive()?;
    let remedy = "unset FLARENA_RECYCLE; FLARENA_GC=off only removes this note";
    s.is_python().then(|| Finding::note(fact).remedy(remedy))
}

fn is_free_threaded(s: &Subject) -> bool {
    let mut files = s.maps.iter().map(Mapping::file_name);
    is_free_threaded_python(file_name(&s.program)) || files.any(is_free_threaded_python)
}

pub fn python_mimalloc(s: &Subject) -> Option<Finding> {
    let is_there = s.is_python() && is_free_threaded(s);
    let fact = "free-threaded Python allocates its objects with its own mimalloc";
    is_there.then(|| mimalloc(s, fact))?
}

/// Any program has smaller arenas.
const MIN_ARENA_BYTES: u64 = 16 << 20;

/// Python's own allocator, and the size of its arenas, if the library or the kernel's names of mappings show it.
pub fn pymalloc(s: &Subject) -> Option<Finding> {
    if !s.is_python() || is_free_threaded(s) || s.text("PYTHONMALLOC").starts_with("malloc") {
        return None;
    }
    let named = |map: &&Mapping| map.name.starts_with("[anon:") && map.name.contains("pymalloc");
    let mapped: u64 = s.maps.iter().filter(named).map(|map| map.rss_bytes).sum();
    let reported = s.answer().and_then(|stats| stats.number("pymalloc_bytes"));
    let arenas = reported.or((mapped > 0).then_some(mapped));
    let held = match arenas {
        Some(..MIN_ARENA_BYTES) => return None,
        Some(size) => format!("; they hold {}", bytes(size)),
        None => String::new(),
    };
    let fact = format!(
        "Python's pymalloc allocates objects up to 512 bytes in arenas of 1 MB and returns only empty arenas{held}"
    );
    let remedy = "if that grows, set PYTHONMALLOC=malloc, which costs CPU time";
    Some(Finding::note(fact).remedy(remedy).bytes(arenas))
}
