//! Rules about a program: its malloc, the allocator's options, its environment, and Python's allocators.

use flarena_shared::kernel_path::{self, file_name};
use flarena_shared::pools::is_free_threaded_python;
use flarena_shared::settings::{self, Allocator, Settings};
use flarena_shared::{defaults, malloc_conf, python_line};

use super::finding::Finding;
use super::memory::mimalloc;
use super::subject::Subject;
use crate::control::AskError;
use crate::library::elf::Header;
use crate::library::privilege::Privilege;
use crate::library::search::FILE_NAME;
use crate::output::plain;
use crate::proc::Mapping;
use crate::run::{describe_fault, messages_about_unknown_names};
use crate::units::bytes;

/// Whether the library would serve malloc in the program of a command.
pub fn program(s: &Subject) -> Option<Finding> {
    let Some(program) = &s.command else {
        let name = s.arguments.first()?.display();
        let fact = format!("the command {name} cannot be found or read");
        return Some(Finding::error(fact).remedy("correct its path"));
    };
    let path = program.path.display();
    if let Some(refusal) = program.refusal() {
        let fact = refusal + ", so flarena run starts it without the library";
        let remedy = "use a build of the program for this machine's glibc, without a sanitizer";
        return Some(Finding::error(fact).remedy(remedy));
    }
    if let Some(reason) = program.why_no_effect() {
        let remedy = program
            .privilege
            .map_or(LINK_DYNAMICALLY, Privilege::remedy);
        return Some(Finding::warning(reason).remedy(remedy));
    }
    Some(match &s.first_malloc {
        _ if !matches!(s.library, Some(Ok(_))) => {
            Finding::note(format!("{path} would start with the system's malloc"))
        }
        Some(first) if first.ends_with(FILE_NAME) => {
            Finding::ok(format!("{path} would get its malloc from {first}"))
        }
        Some(first) => {
            let fact =
                format!("{path} would get its malloc from {first}, so flarena would be inactive");
            Finding::error(fact).remedy(REMOVE_OTHER)
        }
        None => {
            let fact = format!(
                "the loader does not list the libraries of {path}, so its malloc is unknown"
            );
            Finding::warning(fact).remedy("start it with flarena run, then run flarena doctor PID")
        }
    })
}

const LINK_DYNAMICALLY: &str = "use a dynamically linked build of the program";
const REMOVE_OTHER: &str =
    "remove the other allocator from LD_PRELOAD, or link the program without it";

/// Whether the library is loaded, and if not, whether it should be.
pub fn library(s: &Subject) -> Option<Finding> {
    if let Some(map) = s.mapped_library() {
        let path = map.path();
        if kernel_path::is_deleted(&map.name) {
            let fact = format!("{path} was replaced on disk; this process still runs the old file");
            let remedy = "restart the process when its job has ended";
            return Some(Finding::note(fact).remedy(remedy));
        }
        return Some(Finding::ok(format!("{path} is loaded")));
    }
    if s.header.as_ref().is_some_and(Header::uses_musl) {
        let fact = "the program uses musl, not glibc, so flarena has no effect in it";
        return Some(Finding::note(fact).remedy("use a build of the program for glibc"));
    }
    if let Some(privilege) = s.privilege {
        let fact = format!(
            "{} {}, so the loader ignored LD_PRELOAD and flarena has no effect",
            s.program,
            privilege.name()
        );
        return Some(Finding::warning(fact).remedy(privilege.remedy()));
    }
    if let Some(preload) = s.preloads.iter().find(|preload| preload.is_flarena()) {
        let fact = format!(
            "LD_PRELOAD names {}, but the loader could not load it: this process runs without flarena",
            preload.entry
        );
        let remedy = "run `flarena doctor` (without a PID) in the environment of the process: it gives the reason";
        return Some(Finding::error(fact).remedy(remedy));
    }
    if s.header
        .as_ref()
        .is_some_and(|header| header.interpreter.is_none())
    {
        let fact = "the program is statically linked, so no preload can replace its malloc";
        return Some(Finding::warning(fact).remedy(LINK_DYNAMICALLY));
    }
    if let Some(launch) = &s.deployment.launch {
        let finding = match launch.parent_with_library {
            Some(parent) => Finding::warning(format!(
                "libflarena.so is not loaded, but process {parent}, which launched this job, has it"
            )),
            None => Finding::note("libflarena.so is not loaded"),
        };
        return Some(finding.remedy(launch.launcher.remedy()));
    }
    let fact = "libflarena.so is not loaded: this process runs without flarena";
    Some(Finding::note(fact).remedy("start it with `flarena run -- COMMAND`"))
}

/// Which file serves malloc. The pointers in the process prove it. Without them the process's own
/// answer counts, else the files that define malloc.
pub fn owner(s: &Subject) -> Option<Finding> {
    let bindings = &s.bindings;
    if let Some(server) = bindings.server().filter(|_| bindings.is_proven) {
        let count = bindings.calls.iter().filter(|(_, to)| to == server).count();
        let fact = format!("{server} serves malloc to {count} of the loaded files");
        let is_inactive = s.mapped_library().is_some() && file_name(server) != FILE_NAME;
        return Some(match is_inactive {
            true => Finding::error(fact + ", so flarena is inactive").remedy(REMOVE_OTHER),
            false => Finding::ok(fact),
        });
    }
    if let Some(stats) = s.answer() {
        return Some(match stats.flag("owner") {
            Some(false) => {
                let fact = "another allocator serves malloc, so flarena is inactive";
                Finding::error(fact).remedy(REMOVE_OTHER)
            }
            _ => Finding::ok("flarena reports that it serves malloc"),
        });
    }
    let others: Vec<&str> = bindings.other_definers().map(file_name).collect();
    Some(Finding::note(match others.as_slice() {
        [] => "the C library serves malloc".to_owned(),
        others => format!(
            "beside the C library, these define malloc: {}; the doctor cannot see which one is used",
            others.join(", ")
        ),
    }))
}

/// Libraries that are bound to another malloc. A block of one malloc must not reach the free of
/// another.
pub fn deep_bound(s: &Subject) -> Option<Finding> {
    let strays = s.bindings.strays();
    let (first, _) = strays.first()?;
    let more = match strays.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let fact = format!(
        "another malloc, which flarena does not manage, serves {}{more} (loaded with RTLD_DEEPBIND, or linked with a malloc)",
        file_name(first)
    );
    Some(
        match s.reported("settings", "FLARENA_ALLOCATOR").as_deref() {
            Some("jemalloc") => {
                let fact = fact
                    + ". A block that one malloc allocates and another frees crashes the program";
                Finding::warning(fact).remedy("start it with `flarena run --allocator glibc`")
            }
            _ => Finding::note(fact),
        },
    )
}

/// No answer of the library.
pub fn channel(s: &Subject) -> Option<Finding> {
    let error = s
        .stats
        .as_ref()
        .err()
        .filter(|_| s.mapped_library().is_some())?;
    Some(match error {
        AskError::NoChannel { .. } => Finding::note(error.to_string()),
        _ => Finding::warning(format!("{error}. So its options are not checked")),
    })
}

/// The effective options, as the allocator reports them.
pub fn allocator(s: &Subject) -> Option<Finding> {
    let allocator = s.answer()?.text("allocator").unwrap_or("unknown");
    if allocator == "jemalloc" {
        let words = ["narenas", "dirty_decay_ms", "muzzy_decay_ms", "thp"];
        let option = |name| Some(format!("{name} {}", s.reported("backend", name)?));
        let options: Vec<_> = words.into_iter().filter_map(option).collect();
        return Some(Finding::ok(format!(
            "jemalloc is active: {}",
            options.join(", ")
        )));
    }
    let arenas = s.reported("settings", "MALLOC_ARENA_MAX");
    let arenas = arenas.as_deref().unwrap_or("?");
    Some(Finding::ok(format!(
        "{allocator} is active, with at most {arenas} arenas"
    )))
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
    let is_plain = s.mapped_library().is_none()
        && (server.contains("jemalloc") || s.maps_file("libjemalloc.so"));
    let fact = if names.into_iter().any(is_never) {
        "jemalloc keeps free pages for ever, because its decay is -1"
    } else if is_plain && !names.into_iter().all(is_set) {
        "jemalloc runs without dirty_decay_ms and muzzy_decay_ms, so it keeps freed pages longer than NVFlare advises"
    } else {
        return None;
    };
    Some(Finding::warning(fact).remedy(format!(
        "set the options before the program starts:\n    export MALLOC_CONF={}",
        defaults::MALLOC_CONF
    )))
}

/// Libraries that keep RDMA registrations, and overwrite libc's code to see unmapped pages.
const RDMA: [&str; 3] = ["libucm.so", "libfabric.so", "libopen-pal.so"];

pub fn unmap_hooks(s: &Subject) -> Option<Finding> {
    if s.reported("recycler", "unmap_hooks")? != "true" {
        return None;
    }
    let loaded: Vec<_> = RDMA.into_iter().filter(|name| s.maps_file(name)).collect();
    let loaded = match loaded.as_slice() {
        [] => String::new(),
        names => format!(" ({} is loaded)", names.join(", ")),
    };
    Some(Finding::ok(format!(
        "libc's madvise is overwritten, as caches of RDMA registrations do{loaded}: \
         flarena reports each unmapping through it and moves no pages between blocks"
    )))
}

/// A jemalloc inside another library.
pub fn other_jemallocs(s: &Subject) -> Vec<Finding> {
    let server = s.bindings.server();
    let jemallocs = s.bindings.jemallocs.iter();
    let others =
        jemallocs.filter(|(path, _)| Some(path.as_str()) != server && file_name(path) != FILE_NAME);
    let finding = |(path, mallctl): &(String, String)| {
        let prefix = mallctl.strip_suffix("mallctl").unwrap_or_default();
        let variable = format!("{}MALLOC_CONF", plain(prefix).to_uppercase());
        Finding::note(format!(
            "{path} contains a jemalloc ({mallctl}), whose memory flarena neither returns nor records"
        ))
        .remedy(format!(
            "set {variable}=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0; it then returns free memory at rest"
        ))
    };
    others.map(finding).collect()
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

fn settings_of(s: &Subject) -> Settings {
    s.settings(|_| ())
}

/// Variables that look like settings but are not, most likely misspelt.
pub fn unknown_settings(s: &Subject) -> Vec<Finding> {
    let facts = messages_about_unknown_names(s.environment.names());
    facts
        .map(|fact| Finding::warning(fact).remedy("correct its name, or unset it"))
        .collect()
}

pub fn conflict(s: &Subject) -> Option<Finding> {
    let settings = settings_of(s);
    let is_conflict = settings.jemalloc_preload && settings.allocator() == Allocator::Glibc;
    is_conflict.then(|| {
        let fact = "NVFLARE_ENABLE_JEMALLOC_PRELOAD selects jemalloc, but FLARENA_ALLOCATOR selects glibc, and glibc is used";
        Finding::note(fact).remedy("unset the one that is wrong")
    })
}

pub fn no_effect(s: &Subject) -> Vec<Finding> {
    let is_set = |key| s.get(settings::setting(key).name).is_some();
    let settings = settings_of(s);
    let facts = settings.without_effect(is_set);
    facts
        .map(|fact| Finding::note(fact).remedy("set both, or unset it"))
        .collect()
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

/// The effect of glibc's setting for huge pages on large blocks. glibc alone serves them with 2 and above.
pub fn hugetlb(s: &Subject) -> Option<Finding> {
    let tunables = s.text("GLIBC_TUNABLES");
    let mut values = tunables
        .split(':')
        .filter_map(|one| one.strip_prefix("glibc.malloc.hugetlb="));
    let fact = match (values.next_back()?, settings_of(s).allocator()) {
        ("0", _) => return None,
        (_, Allocator::Jemalloc) => {
            "glibc.malloc.hugetlb has no effect, because jemalloc serves this process"
        }
        ("1", Allocator::Glibc) => {
            "with glibc.malloc.hugetlb=1 large blocks that fill pages of 2 MB, and all of 32 MB and more, ask for such pages"
        }
        (_, Allocator::Glibc) => return None,
    };
    let remedy = "FLARENA_HUGE=2M does the same in both modes; docs/huge-pages.md";
    Some(Finding::note(fact).remedy(remedy))
}

pub fn missing_preloads(s: &Subject) -> Vec<Finding> {
    let fact =
        |(entry, fault)| format!("LD_PRELOAD names {entry}, {fault}: programs start without it");
    let faults = s.preloads.iter();
    let faults = faults.filter_map(|preload| Some((&preload.entry, preload.fault.as_ref()?)));
    faults
        .map(|fault| Finding::error(fact(fault)).remedy("correct the path or remove the entry"))
        .collect()
}

pub fn other_preloads(s: &Subject) -> Vec<Finding> {
    let ahead = s
        .preloads
        .iter()
        .take_while(|preload| !preload.is_flarena());
    let fact = |entry| {
        format!(
            "LD_PRELOAD names another allocator, {entry}, which serves malloc instead of flarena"
        )
    };
    let remedy = "start the program with flarena run, which puts flarena first";
    ahead
        .filter(|preload| preload.defines_malloc)
        .map(|preload| Finding::warning(fact(&preload.entry)).remedy(remedy))
        .collect()
}

/// Options that stop the hooks. The hooks mark stages, collect garbage there, and make NVFlare's cleanup purge jemalloc.
/// Without them the governor still collects garbage.
pub fn isolated_python(s: &Subject) -> Option<Finding> {
    let line = python_line::read(s.arguments.iter().map(|word| word.as_encoded_bytes()));
    if !s.is_python() || !settings_of(s).wants_hooks() {
        return None;
    }
    let (fact, remedy) = if line.has(b'S') {
        ("python -S does not run flarena's hooks: no stage is marked, no garbage is collected at stages, and NVFlare's cleanup does not purge jemalloc",
         "start it without -S")
    } else if line.has(b'I') || line.has(b'E') {
        ("python -I or -E ignores PYTHONPATH, so flarena's hooks do not run: no stage is marked, and no garbage is collected at stages",
         "install the flarena package into this Python, or start it without -I and -E")
    } else {
        return None;
    };
    Some(Finding::warning(fact).remedy(remedy))
}

/// `FLARENA_GC=auto` without an effect.
pub fn uncounted_garbage(s: &Subject) -> Option<Finding> {
    let fact = settings_of(s)
        .why_gc_is_inactive()
        .filter(|_| s.is_python())?;
    let remedy = "unset FLARENA_RECYCLE; FLARENA_GC=off only removes this note";
    Some(Finding::note(fact).remedy(remedy))
}

fn is_free_threaded(s: &Subject) -> bool {
    let mut files = s.maps.iter().map(Mapping::file_name);
    is_free_threaded_python(file_name(&s.program)) || files.any(is_free_threaded_python)
}

pub fn python_mimalloc(s: &Subject) -> Option<Finding> {
    let is_there = s.is_python() && is_free_threaded(s);
    let fact = "free-threaded Python allocates its objects with its own mimalloc";
    is_there.then(|| mimalloc(s, fact))
}

/// Any program has smaller arenas.
const MIN_ARENA_BYTES: u64 = 16 << 20;

/// Python's own allocator, and the size of its arenas, if the library or the kernel's names of mappings show it.
pub fn pymalloc(s: &Subject) -> Option<Finding> {
    if !s.is_python() || is_free_threaded(s) {
        return None;
    }
    if ["malloc", "malloc_debug"].contains(&s.text("PYTHONMALLOC").as_str()) {
        return Some(Finding::ok(
            "PYTHONMALLOC=malloc: Python's small objects come from malloc",
        ));
    }
    let named = |map: &&Mapping| map.name.starts_with("[anon:") && map.name.contains("pymalloc");
    let mapped: u64 = s.maps.iter().filter(named).map(|map| map.rss_bytes).sum();
    let reported = s.answer().and_then(|stats| stats.number("pymalloc_bytes"));
    let arenas = reported.or((mapped > 0).then_some(mapped));
    if arenas.is_some_and(|size| size < MIN_ARENA_BYTES) {
        return None;
    }
    let held = arenas.map_or(String::new(), |size| format!("; they hold {}", bytes(size)));
    let fact = format!(
        "Python's pymalloc allocates objects up to 512 bytes in arenas of 1 MB and returns only empty arenas{held}"
    );
    let remedy = "if that grows, set PYTHONMALLOC=malloc, which costs CPU time";
    Some(Finding::note(fact).remedy(remedy).bytes(arenas))
}
