//! The rules as tables of situations and findings.

use flarena_shared::cgroup::Memory;
use flarena_shared::huge_pages::{Offer, Policy};
use flarena_shared::role::Proc;
use flarena_shared::settings::{Key, TABLE};
use serde_json::json;

use super::finding::{render, Finding, Level};
use super::jobs::Launcher;
use super::subject::{Kind, Preload, Subject};
use super::{judge, Rule, RULES};
use crate::control::{AskError, Stats};
use crate::library::elf::Header;
use crate::library::privilege::Privilege;
use crate::library::program::Program;
use crate::library::{Library, Unusable};
use crate::proc::{Cgroup, Environment, Mapping};

const MB: u64 = 1 << 20;

fn subject(kind: &str) -> Subject {
    let kind = match kind {
        "machine" => Kind::Machine,
        "command" => Kind::Command,
        _ => Kind::Process,
    };
    Subject {
        kind,
        pid: 42,
        ..Subject::default()
    }
}

/// The findings with this name: level, fact, remedy.
fn text(subject: &Subject, id: &str) -> String {
    let found = judge(subject).into_iter().filter(|found| found.id == id);
    let text = |found: Finding| {
        let remedy = found.remedy.unwrap_or_default();
        format!("{:?}: {} -> {remedy}\n", found.level, found.fact)
    };
    found.map(text).collect()
}

/// A row is a subject, the changes to it, the name of a finding, and parts of its text. Without parts there is no such
/// finding.
macro_rules! situations {
    ($($kind:ident |$s:ident| $edit:expr => $id:literal [$($part:literal),* $(,)?];)*) => {$({
        let mut subject = subject(stringify!($kind));
        let $s = &mut subject;
        let _ = &$s;
        $edit;
        check(&subject, stringify!($edit), $id, &[$($part),*]);
    })*};
}

fn check(subject: &Subject, situation: &str, id: &str, parts: &[&str]) {
    let text = text(subject, id);
    assert_eq!(text.is_empty(), parts.is_empty(), "{situation}: {text}");
    for part in parts {
        assert!(
            text.contains(part),
            "{situation}: {part:?} is not in {text}"
        );
    }
}

fn env(s: &mut Subject, variables: &[&str]) {
    s.environment = Environment::parse(variables.join("\0").as_bytes());
}

fn stats(s: &mut Subject, stats: serde_json::Value) {
    s.stats = Some(Ok(Stats::parse(&stats.to_string()).unwrap()));
}

/// A mapped file with so many resident MB.
fn map(s: &mut Subject, name: &str, mb: u64) {
    s.maps.push(Mapping {
        name: name.into(),
        inode: 1,
        end: 500 * MB,
        rss_bytes: mb * MB,
        ..Mapping::default()
    });
}

fn cgroup(s: &mut Subject, used: u64, reclaimable: u64) {
    let memory = Memory {
        used_bytes: Some(used),
        reclaimable_bytes: Some(reclaimable),
        limit_bytes: Some(100),
    };
    s.cgroup = Some(Cgroup { memory });
}

fn pages(s: &mut Subject, large: Policy, of_64_kb: Policy) {
    let mut smaller = [Policy::Never; 7];
    smaller[2] = of_64_kb;
    s.huge_pages = Offer {
        by_size: true,
        large,
        smaller,
    };
}

fn header(s: &mut Subject, interpreter: Option<&str>) {
    s.header = Some(Header {
        machine: std::env::consts::ARCH,
        interpreter: interpreter.map(str::to_owned),
    });
}

fn preload(s: &mut Subject, entry: &str, fault: Option<&str>) {
    s.preloads.push(Preload {
        entry: entry.to_owned(),
        fault: fault.map(str::to_owned),
    });
}

fn calls(s: &mut Subject, servers: &[&str]) {
    let call = |server: &&str| ("/x/caller.so".to_owned(), (*server).to_owned());
    s.bindings.calls = servers.iter().map(call).collect();
}

fn library(s: &mut Subject) {
    map(s, "/x/libflarena.so", 1);
}

fn usable(hooks: Option<&str>) -> Option<Result<Library, Unusable>> {
    Some(Ok(Library {
        path: "/x/libflarena.so".into(),
        version: "0.1.0".into(),
        hooks: hooks.map(Into::into),
    }))
}

fn program(s: &mut Subject, interpreter: Option<&str>, library: Option<Result<Library, Unusable>>) {
    header(s, interpreter);
    s.library = library;
    s.command = Some(Program {
        path: "/x/program".into(),
        header: s.header.clone().unwrap(),
        sanitizer: None,
        privilege: None,
    });
}

const LOADER: Option<&str> = Some("/lib64/ld-linux-x86-64.so.2");

fn python(s: &mut Subject, words: &str) {
    s.program = "/usr/bin/python3.11".into();
    s.arguments = words.split(' ').map(Into::into).collect();
}

fn config(s: &mut Subject, proc: Proc, config: serde_json::Value) {
    s.proc = Some(proc);
    s.deployment.job_config = Some(config);
}

#[test]
fn rules_about_the_machine() {
    situations! {
        machine |s| s.library = usable(Some("/h")) => "loadable" ["Ok", "/x/libflarena.so 0.1.0 loads here"];
        machine |s| s.library = usable(None) => "loadable" ["Note", "install the whole package"];
        machine |s| s.library = Some(Err(Unusable { path: None, reason: "it was not found".into() })) => "loadable" [
            "Error", "install flarena here; until then jobs start with the system's malloc",
        ];
        machine |s| {
            s.library = Some(Err(Unusable { path: Some("/x".into()), reason: "it is text".into() }));
            env(s, &["FLARENA_LIB=/x"]);
        } => "loadable" ["/x cannot be used: it is text", "correct FLARENA_LIB"];
        machine |s| pages(s, Policy::Always, Policy::Never) => "thp-always" ["Note", "\n    echo madvise > "];
        machine |s| pages(s, Policy::Never, Policy::Never) => "thp-always" [];
        command |s| pages(s, Policy::Always, Policy::Never) => "thp-always" ["Note"];
        machine |s| pages(s, Policy::Never, Policy::Never) => "huge-pages" [
            "Note: huge pages of 64 KB are off", "-> docs/huge-pages.md",
        ];
        machine |s| pages(s, Policy::OnAdvice, Policy::OnAdvice) => "huge-pages" [
            "Note: pages of 64 KB are available on request, but",
        ];
        machine |s| pages(s, Policy::OnAdvice, Policy::Never) => "huge-pages" ["Note: huge pages of 64 KB are off"];
        machine |s| pages(s, Policy::Never, Policy::OnAdvice) => "huge-pages" ["Ok"];
        machine |s| pages(s, Policy::OnAdvice, Policy::Always) => "huge-pages" ["Ok"];
        machine |s| {} => "huge-pages" [];
        machine |s| pages(s, Policy::Always, Policy::Never) => "huge-pages" [];
        command |s| pages(s, Policy::Never, Policy::Never) => "huge-pages" [];
        machine |s| {} => "cgroup" [];
        live |s| s.cgroup = Some(Cgroup::default()) => "cgroup" ["Ok", "no memory limit"];
        live |s| cgroup(s, 95, 0) => "cgroup" ["Warning", "(95 %)", "flarena trim --all"];
        live |s| cgroup(s, 95, 50) => "cgroup" ["Ok", "(45 %)"];
        machine |s| {} => "tmpfs" [];
        machine |s| s.temporary = Some(("/tmp".into(), MB)) => "tmpfs" ["Note", "/tmp", "1.00 MB"];
        command |s| {
            s.temporary = Some(("/tmp".into(), MB));
            s.proc = Some(Proc::ServerParent);
        } => "tmpfs" ["Warning", "export TMPDIR=/var/tmp"];
    }
}

#[test]
fn rules_about_the_library_and_the_allocator() {
    situations! {
        live |s| library(s) => "library" ["Ok: /x/libflarena.so is loaded"];
        live |s| map(s, "/x/libflarena.so (deleted)", 1) => "library" ["Note", "was replaced on disk"];
        live |s| {} => "library" ["Note", "start it with `flarena run -- COMMAND`"];
        live |s| header(s, Some("/lib/ld-musl-x86_64.so.1")) => "library" ["Note", "uses musl"];
        live |s| header(s, None) => "library" ["Warning", "statically linked"];
        live |s| s.privilege = Some(Privilege::SetId) => "library" [
            "Warning", "is set-user-id or set-group-id, so the loader ignored LD_PRELOAD", "chmod ug-s",
        ];
        live |s| preload(s, "/x/libflarena.so", None) => "library" ["Error", "LD_PRELOAD names /x/libflarena.so, but"];
        live |s| s.deployment.launch = Some((Some(7), Launcher::Process)) => "library" [
            "Warning: libflarena.so is not loaded, but process 7, which launched this job, has it", "sudo, env -i",
        ];
        live |s| s.deployment.launch = Some((None, Launcher::Kubernetes)) => "library" [
            "Note: libflarena.so is not loaded", "container: image, or in Kubernetes pod_template",
        ];
        live |s| {
            library(s);
            calls(s, &["/x/libjemalloc.so.2"]);
        } => "owner" ["Error: /x/libjemalloc.so.2 serves malloc to 1 of the loaded files, so flarena is inactive"];
        live |s| {} => "owner" ["Note: the C library serves malloc"];
        live |s| s.bindings.definers = vec!["/libc.so.6".into(), "/x/libtcmalloc.so".into()] => "owner" [
            "Note", "these define malloc: libtcmalloc.so; the doctor cannot see",
        ];
        live |s| stats(s, json!({"owner": false})) => "owner" ["Error", "flarena is inactive"];
        live |s| stats(s, json!({"owner": true})) => "owner" ["Ok"];
        live |s| calls(s, &["/x/libflarena.so"]) => "deepbind" [];
        live |s| calls(s, &["/x/libflarena.so", "/x/libflarena.so", "/libc.so.6"]) => "deepbind" [
            "Note", "serves caller.so (loaded with",
        ];
        live |s| {
            calls(s, &["/x/libflarena.so", "/x/libflarena.so", "/x/libflarena.so", "/libc.so.6", "/libc.so.6"]);
            stats(s, json!({"settings": {"FLARENA_ALLOCATOR": "jemalloc"}}));
        } => "deepbind" ["Warning", "and 1 more", "`flarena run --allocator glibc`"];
        live |s| {} => "channel" [];
        live |s| {
            library(s);
            s.stats = Some(Err(AskError::NoChannel { pid: 42, rss_bytes: MB }));
        } => "channel" ["Note"];
        live |s| {
            library(s);
            s.stats = Some(Err(AskError::HungUp(42)));
        } => "channel" ["Warning", "So its options are not checked"];
        live |s| stats(s, json!({"allocator": "glibc", "settings": {"MALLOC_ARENA_MAX": "2"}})) => "allocator" [
            "Ok: glibc is active, with at most 2 arenas",
        ];
        live |s| stats(s, json!({"allocator": "jemalloc", "backend": {"narenas": 2, "thp": "never"}})) => "allocator" [
            "Ok: jemalloc is active: narenas 2, thp never",
        ];
        live |s| stats(s, json!({"backend": {"dirty_decay_ms": -1}})) => "no-decay" ["Warning", "for ever"];
        live |s| stats(s, json!({"backend": {"dirty_decay_ms": 5000}})) => "no-decay" [];
        live |s| {
            map(s, "/x/libjemalloc.so.2", 1);
            env(s, &["MALLOC_CONF=narenas:1"]);
        } => "no-decay" ["Warning", "before the program starts:\n    export MALLOC_CONF=dirty_decay_ms:"];
        live |s| {
            calls(s, &["/x/libjemalloc.so.2"]);
            env(s, &["MALLOC_CONF=dirty_decay_ms:1,muzzy_decay_ms:1"]);
        } => "no-decay" [];
        live |s| stats(s, json!({"recycler": {"unmap_hooks": true}})) => "unmap-hooks" ["Ok", "moves no pages between blocks"];
        live |s| stats(s, json!({"recycler": {"unmap_hooks": false}})) => "unmap-hooks" [];
        live |s| {
            calls(s, &["/x/libjemalloc.so.2"]);
            let jemallocs = [
                ("/x/libjemalloc.so.2", "mallctl"),
                ("/x/libflarena.so", "mallctl"),
                ("/opt/a.so", "mallctl"),
                ("/opt/b.so", "je_tool_mallctl"),
                ("/opt/c.so", "_rjem_mallctl"),
            ];
            s.bindings.jemallocs = jemallocs.map(|(path, name)| (path.to_owned(), name.to_owned())).into();
        } => "library-jemalloc" [
            "Note: /opt/a.so contains a jemalloc (mallctl)", "-> set MALLOC_CONF=background_thread:true",
            "-> set JE_TOOL_MALLOC_CONF=", "-> set _RJEM_MALLOC_CONF=",
        ];
    }
    let mut process = subject("live");
    process.bindings.jemallocs = vec![("/x/libflarena.so".into(), "mallctl".into())];
    assert_eq!(text(&process, "library-jemalloc"), "");
}

#[test]
fn rules_about_the_environment() {
    situations! {
        machine |s| env(s, &["FLARENA_DECAY_MS=soon"]) => "bad-setting" ["Warning", "set FLARENA_DECAY_MS to "];
        live |s| env(s, &["FLARENA_HIBERNATE=auto"]) => "bad-setting" ["Warning"];
        command |s| env(s, &["FLARENA_ALOCATOR=glibc", "HOME=/"]) => "unknown-setting" [
            "Warning", "did you mean FLARENA_ALLOCATOR?",
        ];
        machine |s| env(s, &["HOME=/"]) => "unknown-setting" [];
        live |s| env(s, &["FLARENA_MARKER_FILE=/tmp/x"]) => "no-effect" ["Note", "set both"];
        machine |s| {
            env(s, &["FLARENA_MARKER_FILE=/no/x"]);
            s.marker_folder_fault = Some("No such file or directory".into());
        } => "marker-file" ["Warning", "FLARENA_MARKER_FILE=/no/x takes no file: No such", "create the folder"];
        live |s| env(s, &["MALLOC_CONF=narenas:2,dirty_decay:1"]) => "malloc-conf" [
            "Warning", "did you mean dirty_decay_ms?",
        ];
        live |s| env(s, &["GLIBC_TUNABLES=glibc.malloc.hugetlb=1"]) => "hugetlb" [];
        live |s| {
            env(s, &["GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "FLARENA_ALLOCATOR=jemalloc"]);
        } => "hugetlb" ["Note", "has no effect"];
        live |s| {
            env(s, &["GLIBC_TUNABLES=glibc.malloc.hugetlb=2", "FLARENA_ALLOCATOR=jemalloc"]);
        } => "hugetlb" ["has no effect"];
        live |s| env(s, &["GLIBC_TUNABLES=glibc.malloc.hugetlb=2"]) => "hugetlb" [];
        live |s| {
            env(s, &["GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.hugetlb=0"]);
        } => "hugetlb" [];
        live |s| env(s, &["GLIBC_TUNABLES=glibc.malloc.perturb=1"]) => "hugetlb" [];
        machine |s| preload(s, "/no/x.so", Some("which does not exist")) => "preload-missing" [
            "Error: LD_PRELOAD names /no/x.so, which does not exist: programs",
        ];
        machine |s| preload(s, "/x.so", None) => "preload-missing" [];
    }
    let quiet = subject("live");
    let ids: Vec<_> = judge(&quiet).iter().map(|found| found.id).collect();
    assert_eq!(ids, ["library", "owner", "memory"]);
}

#[test]
fn each_bad_or_removed_value_is_found_and_no_good_one() {
    let with = |name: &str, value: &str| {
        let mut process = subject("live");
        env(&mut process, &[&format!("{name}={value}")]);
        text(&process, "bad-setting") + &text(&process, "malloc-conf")
    };
    for row in TABLE {
        for good in row.good {
            assert_eq!(with(row.name, good), "", "{}={good}", row.name);
        }
        let removed = row.removed.iter().map(|removed| &removed.value);
        for bad in row.bad.iter().chain(removed) {
            let found = with(row.name, bad);
            assert_eq!(found.lines().count(), 1, "{}={bad}: {found}", row.name);
            assert_eq!(found.contains("MALLOC_CONF:"), row.key == Key::MallocConf);
        }
    }
    let long = with("FLARENA_DECAY_MS", &"x".repeat(1000));
    assert!(long.contains("xxx...") && long.len() < 400, "{long}");
}

#[test]
fn rules_about_commands_and_python() {
    situations! {
        command |s| s.arguments = vec!["no-such-command".into()] => "program" [
            "Error", "the command no-such-command cannot be found",
        ];
        command |s| program(s, LOADER, usable(None)) => "program" ["Ok: /x/program would get its malloc from /x/lib"];
        command |s| program(s, LOADER, None) => "program" ["Note", "would start with the system's malloc"];
        command |s| program(s, None, usable(None)) => "program" ["Warning", "statically linked", "dynamically"];
        command |s| program(s, Some("/lib/ld-musl-x86_64.so.1"), None) => "program" ["Error", "uses musl"];
        command |s| {
            program(s, LOADER, usable(None));
            s.has_malloc = true;
        } => "program" ["Error", "contains a malloc, so flarena would be inactive"];
        command |s| {
            python(s, "python3 -I x.py");
            env(s, &["NVFLARE_CLIENT_MEMORY_PROFILE=1"]);
        } => "python-isolated" ["Warning", "-I or -E ignores PYTHONPATH"];
        live |s| python(s, "python3 -uE x.py") => "python-isolated" ["-I or -E"];
        live |s| python(s, "python3 -W error -I x.py") => "python-isolated" ["-I or -E"];
        live |s| python(s, "python3 -BS x.py") => "python-isolated" ["Warning", "start it without -S"];
        live |s| python(s, "python3 x.py -I") => "python-isolated" [];
        live |s| python(s, "python3 -m mod -E") => "python-isolated" [];
        live |s| python(s, "python3 -c -I") => "python-isolated" [];
        live |s| python(s, "python3 -XI x.py") => "python-isolated" [];
        live |s| {
            python(s, "python3 -I x.py");
            env(s, &["FLARENA_GC=off"]);
        } => "python-isolated" [];
        live |s| s.arguments = vec!["sort".into(), "-I".into()] => "python-isolated" [];
        command |s| {
            s.program = "/bin/bash".into();
            s.arguments = vec!["/opt/pyenv/python3".into(), "-I".into()];
        } => "python-isolated" ["Warning"];
        command |s| {
            python(s, "python3 x.py");
            env(s, &["FLARENA_RECYCLE=off"]);
        } => "uncounted-garbage" ["Note", "unset FLARENA_RECYCLE"];
        command |s| python(s, "python3 x.py") => "uncounted-garbage" [];
        command |s| python(s, "python3 x.py") => "pymalloc" ["Note", "set PYTHONMALLOC=malloc"];
        live |s| {
            python(s, "python3 x.py");
            stats(s, json!({"pymalloc_bytes": 8 * MB}));
        } => "pymalloc" [];
        live |s| {
            python(s, "python3 x.py");
            stats(s, json!({"pymalloc_bytes": 64 * MB}));
        } => "pymalloc" ["; they hold 64.0 MB"];
        live |s| {
            python(s, "python3 x.py");
            map(s, "[anon:cpython:pymalloc]", 32);
        } => "pymalloc" ["; they hold 32.0 MB"];
        live |s| {
            python(s, "python3 x.py");
            env(s, &["PYTHONMALLOC=malloc"]);
        } => "pymalloc" [];
        live |s| s.program = "/usr/bin/python3.13t".into() => "python-mimalloc" ["Note", "its own mimalloc"];
        live |s| s.program = "/usr/bin/python3.13t".into() => "pymalloc" [];
        live |s| s.program = "/usr/bin/python3.13".into() => "python-mimalloc" [];
    }
}

#[test]
fn rules_about_nvflare() {
    fn workflow(s: &mut Subject, path: &str, args: serde_json::Value) {
        config(
            s,
            Proc::ServerJob,
            json!({"workflows": [{"path": path, "args": args}]}),
        );
    }
    situations! {
        live |s| {
            s.proc = Some(Proc::ClientParent);
            env(s, &["MALLOC_ARENA_MAX=4"]);
        } => "kit-arenas" ["Warning", "export MALLOC_ARENA_MAX=2"];
        live |s| {
            s.proc = Some(Proc::ClientParent);
            env(s, &["MALLOC_ARENA_MAX=4", "FLARENA_INHERITED=x=1;arena_max=4"]);
        } => "kit-arenas" [];
        live |s| {
            s.proc = Some(Proc::ServerParent);
            env(s, &["MALLOC_ARENA_MAX=4"]);
        } => "kit-arenas" [];
        live |s| {
            stats(s, json!({"role": "client"}));
            env(s, &["MALLOC_ARENA_MAX=4"]);
        } => "kit-arenas" ["Warning"];
        live |s| {
            stats(s, json!({"role": "server", "settings": {"MALLOC_ARENA_MAX": 4}}));
            s.status.threads = 200;
        } => "server-arenas" ["Note: 200 threads of this server", "\n    export MALLOC_ARENA_MAX=8"];
        live |s| {
            stats(s, json!({"role": "server", "settings": {"MALLOC_ARENA_MAX": 8}}));
            s.status.threads = 200;
        } => "server-arenas" [];
        live |s| {
            stats(s, json!({"role": "server", "settings": {"MALLOC_ARENA_MAX": 4}}));
            s.status.threads = 60;
        } => "server-arenas" [];
        live |s| workflow(s, "nvflare.app_common.workflows.fedavg.FedAvg", json!({"num_rounds": 3})) => "job-cleanup" [
            "Note: the job never cleans up here (memory_gc_rounds of FedAvg is 0)",
            "set it to 1 in the job's config_fed_server.json (some recipes have server_memory_gc_rounds for it); ",
            "if the peak stays flat, try 2, then 5",
        ];
        live |s| workflow(s, "nvflare.x.PTFedAvg", json!({})) => "job-cleanup" ["Note"];
        live |s| workflow(s, "nvflare.x.Scaffold", json!({})) => "job-cleanup" ["Note"];
        live |s| workflow(s, "nvflare.x.Cyclic", json!({})) => "job-cleanup" ["Note"];
        live |s| workflow(s, "nvflare.x.FedAvgLR", json!({})) => "job-cleanup" [];
        live |s| workflow(s, "nvflare.x.ScatterAndGatherScaffold", json!({})) => "job-cleanup" [];
        live |s| workflow(s, "nvflare.x.ScatterAndGather", json!({})) => "job-cleanup" [];
        live |s| workflow(s, "custom.FedAvg", json!({})) => "job-cleanup" [];
        live |s| config(s, Proc::ServerJob, json!(7)) => "job-cleanup" [];
        live |s| {
            let custom = json!([{"path": "nvflare.x.FedAvg", "args": {}}]);
            config(s, Proc::ServerJob, json!({"workflows": [], "components": custom}));
        } => "job-cleanup" [];
        live |s| workflow(s, "nvflare.x.FedAvg", json!({"memory_gc_rounds": 5})) => "job-cleanup" [
            "Ok: the job cleans up after 5 rounds", "set it to 1",
        ];
        live |s| {
            let executor = json!({"path": "nvflare.x.ClientAPIExecutor", "args": {"memory_gc_rounds": 1}});
            config(s, Proc::ClientJob, json!({"executors": [{"tasks": ["*"], "executor": executor}]}));
        } => "job-cleanup" ["Ok: the job cleans up after each round", "try 2, then 5"];
        live |s| {
            let with = |rounds: u64| json!({"path": "a.A", "args": {"memory_gc_rounds": rounds}});
            config(s, Proc::ServerJob, json!({"workflows": [with(0), with(5), with(7)]}));
        } => "job-cleanup" ["after 5 rounds"];
        live |s| {
            let never = json!({"path": "a.A", "args": {"memory_gc_rounds": 0}});
            config(s, Proc::ServerJob, json!({"workflows": [never, never]}));
        } => "job-cleanup" ["Note"];
        live |s| {
            config(s, Proc::ClientJob, json!({}));
            library(s);
            env(s, &["NVFLARE_CLIENT_MEMORY_GC_ROUNDS=3"]);
        } => "job-cleanup" ["Ok: the job cleans up after 3 rounds (NVFLARE_CLIENT_MEMORY_GC_ROUNDS)"];
        live |s| {
            config(s, Proc::ClientJob, json!({}));
            env(s, &["NVFLARE_CLIENT_MEMORY_GC_ROUNDS=3"]);
        } => "job-cleanup" [];
        live |s| {
            config(s, Proc::ServerJob, json!({}));
            library(s);
            env(s, &["NVFLARE_CLIENT_MEMORY_GC_ROUNDS=3"]);
        } => "job-cleanup" [];
        live |s| s.deployment.kit_option = Some("--foreground") => "kit-foreground" [
            "Note", "systemd sees no failure", "daemon_pid.fl", "KIT/startup --foreground",
        ];
        live |s| s.deployment.jobs_without = vec![(7, Launcher::Slurm)] => "job-without-library" [
            "Warning: this process has launched job process 7 without", "forward_env",
        ];
        live |s| {
            s.deployment.jobs_without = vec![(7, Launcher::Docker), (8, Launcher::Docker)];
        } => "job-without-library" [
            "7 and 1 more without", "(container: image, or in Kubernetes pod_template): NVFlare's launcher",
        ];
    }
}

#[test]
fn rules_about_memory() {
    fn malloc(s: &mut Subject, live: u64, free: u64) {
        s.status.rss_bytes = 200 * MB;
        s.status.anon_bytes = 180 * MB;
        s.status.file_bytes = 20 * MB;
        stats(
            s,
            json!({"live_bytes": live * MB, "retained_bytes": free * MB}),
        );
    }
    fn outside(s: &mut Subject, anon: u64, live: u64, pymalloc: u64) {
        s.status.anon_bytes = anon * MB;
        let (live, pymalloc) = (live * MB, pymalloc * MB);
        stats(
            s,
            json!({
                "live_bytes": live, "retained_bytes": 0,
                "pymalloc_bytes": pymalloc, "arrow_bytes": null, "pinned_bytes": 0,
            }),
        );
    }
    fn pinned(s: &mut Subject) {
        s.status.anon_bytes = 100 * MB;
        s.status.shmem_bytes = 600 * MB;
        map(s, "/dev/zero", 590);
        stats(
            s,
            json!({
                "rss_bytes": 700 * MB, "anon_bytes": 100 * MB, "file_bytes": 0,
                "live_bytes": 60 * MB, "retained_bytes": 0, "pinned_bytes": 512 * MB,
            }),
        );
    }
    fn gpu(s: &mut Subject) {
        map(s, "/dev/nvidiactl", 69);
        map(s, "/dev/nvidia-uvm", 258);
        map(s, "/x/libtorch.so", 200);
        s.status.file_bytes = 540 * MB;
    }
    situations! {
        live |s| malloc(s, 170, 0) => "memory" [
            "Note: 200.0 MB are resident: 170.0 MB in use by the program through malloc, 20.0 MB pages of files, ",
            "10.0 MB outside malloc -> ",
            "-> if it grows, `flarena who 42` names", "`flarena who 42 --start`",
        ];
        live |s| malloc(s, 5, 170) => "memory" ["-> run `flarena trim 42`"];
        live |s| malloc(s, 5, 0) => "memory" [
            "175.0 MB outside malloc, 20.0 MB pages of files, 5.00 MB in use by the program through malloc -> \n",
        ];
        live |s| malloc(s, 900, 90) => "memory" ["180.0 MB in use"];
        live |s| {
            malloc(s, 0, 0);
            s.stats = Some(Err(AskError::NoLibrary(42)));
        } => "memory" [
            "200.0 MB are resident: 180.0 MB anonymous (malloc, stacks, direct mmap), 20.0 MB pages of files",
        ];
        live |s| outside(s, 100, 30, 0) => "outside-malloc" [
            "Note: at least 70.0 MB", "nothing: pymalloc, Arrow's pool, a JVM, thread stacks, direct mmap", "-> if it grows",
            "\n    strace -f -k -e trace=mmap -p 42",
        ];
        live |s| outside(s, 60, 8, 8) => "outside-malloc" ["direct mmap -> \n"];
        live |s| outside(s, 60, 50, 0) => "outside-malloc" [];
        live |s| outside(s, 100, 30, 50) => "outside-malloc" ["at least 70.0 MB", "direct mmap -> \n"];
        live |s| outside(s, 60, 42, 20) => "outside-malloc" ["at least 20.0 MB of anonymous memory are outside malloc, "];
        live |s| {
            malloc(s, 170, 0);
            s.status.swap_bytes = 30 * MB;
        } => "memory" ["10.0 MB outside malloc; 30.0 MB more are swapped out"];
        live |_s| {} => "swap" [];
        live |s| s.status.swap_bytes = 30 * MB => "swap" [
            "Warning: 30.0 MB of this process are swapped out", "FLARENA_MEMORY_LIMIT",
        ];
        live |s| {
            map(s, "/data/model.bin", 40);
            s.status.file_bytes = 50 * MB;
        } => "file-maps" ["Note: 50.0 MB are pages of mapped files, 40.0 MB of /data/model.bin"];
        live |s| {
            map(s, "/x/libtorch.so", 30);
            s.maps[0].anon_bytes = 10 * MB;
            s.status.file_bytes = 24 * MB;
        } => "file-maps" ["24.0 MB are pages of mapped files, 20.0 MB of /x/libtorch.so"];
        live |s| {
            map(s, "/x/libtorch.so", 30);
            s.status.file_bytes = 24 * MB;
        } => "file-maps" ["30.0 MB are pages of mapped files, 30.0 MB of /x/libtorch.so"];
        live |s| s.status.file_bytes = 3 * MB => "file-maps" [];
        live |s| gpu(s) => "file-maps" [
            "213.0 MB are pages of mapped files, 200.0 MB of /x/libtorch.so; the kernel drops",
        ];
        live |s| gpu(s) => "cuda" [
            "327.0 MB are pages of the NVIDIA driver; tensors on",
        ];
        live |s| pinned(s) => "shared-memory" [
            "600.0 MB are shared memory, 590.0 MB of /dev/zero; PyTorch has pinned 512.0 MB of it for a GPU, ",
            "call flarena.trim()",
        ];
        live |s| pinned(s) => "outside-malloc" ["at least 40.0 MB of anonymous"];
        live |s| {
            pinned(s);
            s.stats = Some(Err(AskError::NoLibrary(42)));
        } => "shared-memory" [
            "590.0 MB of /dev/zero; tensors passed between processes and memory pinned for a GPU are of this kind",
        ];
        live |s| stats(s, json!({"gpu_reserved_bytes": 3072 * MB, "gpu_allocated_bytes": 1024 * MB})) => "gpu-cache" [
            "Note", "3072.0 MB on the GPUs, 2048.0 MB of them in no tensor",
        ];
        live |s| stats(s, json!({"gpu_reserved_bytes": 300 * MB, "gpu_allocated_bytes": 200 * MB})) => "gpu-cache" [];
        live |s| stats(s, json!({"gpu_reserved_bytes": 9000 * MB, "gpu_allocated_bytes": 7000 * MB})) => "gpu-cache" [];
        live |s| map(s, "/x/libarrow.so.2600", 1) => "arrow-pool" ["Note", "start it with flarena run"];
        live |s| {
            map(s, "/x/libarrow.so.2600", 1);
            env(s, &["ARROW_DEFAULT_MEMORY_POOL=system"]);
        } => "arrow-pool" [];
        live |s| {
            map(s, "/x/libarrow.so.2600", 1);
            stats(s, json!({"arrow_bytes": 64 * MB}));
        } => "arrow-pool" ["; it holds 64.0 MB"];
        live |s| map(s, "/x/libonnxruntime.so.1", 1) => "onnx-arena" ["Note", "enable_cpu_mem_arena"];
        live |s| map(s, "/x/onnxruntime_pybind11_state.so", 1) => "onnx-arena" ["Note"];
        live |s| map(s, "/jvm/libjvm.so", 1) => "java" ["Note", "a JVM is in this process", "-Xmx256m"];
        live |s| s.program = "/usr/bin/python3.13t".into() => "python-mimalloc" [
            "Note", "its own mimalloc; it keeps free memory", "set MIMALLOC_PURGE_DELAY=0,",
        ];
        live |s| {
            s.program = "/usr/bin/python3.13t".into();
            env(s, &["MIMALLOC_PURGE_DELAY=-1"]);
        } => "python-mimalloc" ["Note", "it keeps free memory", "set MIMALLOC_PURGE_DELAY=0,"];
        live |s| {
            s.program = "/usr/bin/python3.13t".into();
            env(s, &["MIMALLOC_PURGE_DELAY=0"]);
        } => "python-mimalloc" [];
    }
}

#[test]
fn an_amount_is_a_number_of_its_finding() {
    let mut process = subject("live");
    map(&mut process, "/x/libarrow.so", 1);
    let bytes = |process: &Subject| {
        let found = judge(process);
        let arrow = found.into_iter().find(|found| found.id == "arrow-pool");
        arrow.unwrap().bytes
    };
    assert_eq!(bytes(&process), None);
    stats(&mut process, json!({"arrow_bytes": 64 * MB}));
    assert_eq!(bytes(&process), Some(64 * MB));
}

#[test]
fn each_rule_has_a_name_of_its_own() {
    let id = |rule: &Rule| match *rule {
        Rule::One(id, ..) | Rule::Each(id, ..) => id,
    };
    let mut ids: Vec<_> = RULES.iter().map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), RULES.len());
}

fn named(level: Level, id: &'static str, fact: &str) -> Finding {
    Finding {
        id,
        ..Finding::new(level, fact)
    }
}

#[test]
fn the_worst_finding_is_last_with_its_remedy_below() {
    let findings = [
        named(Level::Error, "b", "broken").remedy("fix it"),
        named(Level::Ok, "a", "fine"),
        named(Level::Warning, "c", "odd"),
    ];
    let text = render(&findings, None, true);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].contains("fine") && lines[2].contains("odd"),
        "{text}"
    );
    assert!(
        lines[3].contains("broken") && lines[4].contains("-> fix it"),
        "{text}"
    );
    assert_eq!(lines[5], "1 error, 1 warning");
}

#[test]
fn without_all_only_problems_and_answers_are_shown() {
    let findings = [
        named(Level::Ok, "cgroup", "no limit"),
        named(Level::Note, "thp-always", "on"),
        named(Level::Ok, "loadable", "it loads"),
        named(Level::Note, "channel", "no answer"),
        named(Level::Warning, "swap", "swapped"),
    ];
    assert_eq!(
        render(&findings, None, false),
        " LEVEL    FINDING\n ok       it loads\n note     no answer\n warning  swapped\n\
         0 errors, 1 warning\n2 more findings with --all\n"
    );
    assert!(render(&findings, None, true).ends_with("0 errors, 1 warning\n"));
}

#[test]
fn a_narrow_terminal_wraps_text_but_no_line_to_paste() {
    let line = "echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    let finding = named(
        Level::Warning,
        "pages",
        "one two three four five six seven eight nine",
    )
    .remedy(format!(
        "as root on the host of this container:\n    {line}\nand that is all"
    ));
    let indented = format!("\n             {line}\n");
    assert!(render(std::slice::from_ref(&finding), None, true).contains(&indented));
    let text = render(&[finding], Some(30), true);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1..],
        [
            " warning  one two three four",
            "          five six seven eight",
            "          nine",
            "          -> as root on the",
            "             host of this",
            "             container:",
            &format!("    {line}"),
            "             and that is all",
            "0 errors, 1 warning",
        ],
        "{text}"
    );
}

#[test]
fn the_json_form_has_level_id_fact_remedy_and_bytes() {
    let finding = named(Level::Warning, "swap", "7 B swapped")
        .remedy("less")
        .bytes(7);
    let json = serde_json::to_string(&finding).unwrap();
    let expected =
        r#"{"level":"warning","id":"swap","fact":"7 B swapped","remedy":"less","bytes":7}"#;
    assert_eq!(json, expected);
}
