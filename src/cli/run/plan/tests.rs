use super::*;
use crate::library::elf::Header;
use crate::scratch::Scratch;

const NONE: &dyn Fn() -> Option<PathBuf> = &|| None;
const STARTS: &TryPreload = &|_, _| Ok(());

fn library() -> Result<Library, Unusable> {
    Ok(Library {
        path: "/lib/libflarena.so".into(),
        version: "0.1.0".into(),
        hooks: Some("/lib/hooks".into()),
    })
}

fn missing() -> Result<Library, Unusable> {
    Err(Unusable {
        path: None,
        reason: "libflarena.so was not found".into(),
    })
}

fn found(library: Result<Library, Unusable>) -> Found<'static> {
    Found {
        library,
        program: None,
        system_jemalloc: NONE,
        try_preload: STARTS,
    }
}

/// The variables set and the notes after planning `command` in an environment.
fn planned(
    around: &[(&str, &str)],
    command: &[&str],
    found: Found,
) -> (impl Fn(&str) -> Option<String> + use<>, Vec<String>) {
    let around: Vec<(String, OsString)> = around
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.into()))
        .collect();
    let get = |name: &str| {
        around
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, v)| v.clone())
    };
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let mut plan = Plan::new(&get);
    plan.complete(&command, found);
    let set: Vec<(&str, String)> = plan
        .environment
        .set
        .iter()
        .map(|(name, v)| (*name, v.to_string_lossy().into_owned()))
        .collect();
    let notes = plan.notes.clone();
    (
        move |name: &str| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, v)| v.clone())
        },
        notes,
    )
}

#[test]
fn a_removed_value_is_noted_and_its_replacement_is_set() {
    let (set, notes) = planned(&[("FLARENA_DECAY_MS", "auto")], &["true"], found(library()));
    assert_eq!(set("FLARENA_DECAY_MS").unwrap(), "300");
    assert_eq!(notes, ["FLARENA_DECAY_MS=auto was removed; 300 is used"]);
}

#[test]
fn a_probe_of_the_parent_is_not_passed_on() {
    let around = |name: &str| (name == PROBE).then(|| "1".into());
    let mut plan = Plan::new(&around);
    plan.complete(&["true".into()], found(library()));
    assert_eq!(
        (plan.environment.unset.contains(&PROBE), plan.get(PROBE)),
        (true, None)
    );
    assert!(!Plan::new(&|_| None).environment.unset.contains(&PROBE));
}

#[test]
fn the_library_is_first_in_ld_preload_and_other_entries_are_kept() {
    for (old, new) in [
        ("", "/lib/libflarena.so"),
        ("/a.so", "/lib/libflarena.so:/a.so"),
        ("/a.so /b.so", "/lib/libflarena.so:/a.so:/b.so"),
        (":/a.so::/b.so:", "/lib/libflarena.so:/a.so:/b.so"),
        ("/a.so:/lib/libflarena.so", "/lib/libflarena.so:/a.so"),
        ("/old/libflarena.so:/a.so", "/lib/libflarena.so:/a.so"),
    ] {
        let (set, notes) = planned(&[("LD_PRELOAD", old)], &["true"], found(library()));
        assert_eq!(set("LD_PRELOAD").unwrap(), new, "{old}");
        assert_eq!(notes, Vec::<String>::new());
    }
}

#[test]
fn the_hooks_are_added_only_for_collections_markers_or_jemalloc() {
    let (set, _) = planned(&[("FLARENA_GC", "auto")], &["true"], found(library()));
    assert_eq!(set("PYTHONPATH").unwrap(), "/lib/hooks");
    for (setting, wanted) in [
        (("FLARENA_LOG", "warn"), None),
        (
            ("NVFLARE_CLIENT_MEMORY_PROFILE", "yes"),
            Some("/lib/hooks:/mine:"),
        ),
        (
            ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "TRUE"),
            Some("/lib/hooks:/mine:"),
        ),
        (("FLARENA_ALLOCATOR", "jemalloc"), Some("/lib/hooks:/mine:")),
    ] {
        let around = [setting, ("FLARENA_GC", "off"), ("PYTHONPATH", "/mine:")];
        let (set, _) = planned(&around, &["true"], found(library()));
        assert_eq!(set("PYTHONPATH").as_deref(), wanted, "{setting:?}");
    }
}

#[test]
fn missing_hooks_are_noted_for_markers_and_sites_only() {
    let without_hooks = || {
        let mut library = library().unwrap();
        library.hooks = None;
        found(Ok(library))
    };
    let note = "/lib/libflarena.so has no Python hooks beside it";
    for name in ["NVFLARE_CLIENT_MEMORY_PROFILE", "FLARENA_SITES"] {
        let (_, notes) = planned(&[(name, "1")], &["python3"], without_hooks());
        assert!(notes[0].starts_with(note), "{name}: {notes:?}");
        let own = [(name, "1"), ("PYTHONPATH", "/mine:/opt/flarena/hooks")];
        let (_, notes) = planned(&own, &["python3"], without_hooks());
        assert_eq!(notes, Vec::<String>::new());
    }
    let (_, notes) = planned(&[], &["python3"], without_hooks());
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn the_hooks_are_added_once() {
    let around = [
        ("PYTHONPATH", "/mine:/lib/hooks"),
        ("FLARENA_ALLOCATOR", "jemalloc"),
    ];
    let (set, _) = planned(&around, &["true"], found(library()));
    assert_eq!(set("PYTHONPATH").unwrap(), "/lib/hooks:/mine");
}

#[test]
fn a_client_gets_two_arenas_and_a_server_four_recorded_as_defaults() {
    for (role, arenas) in [("client", "2"), ("server", "4")] {
        let (set, _) = planned(&[("FLARENA_ROLE", role)], &["true"], found(library()));
        assert_eq!(set("MALLOC_ARENA_MAX").unwrap(), arenas);
        assert_eq!(
            set("FLARENA_INHERITED").unwrap(),
            format!("arena_max={arenas}")
        );
    }
}

#[test]
fn the_command_line_of_nvflare_selects_the_arenas() {
    let command = [
        "python3",
        "-m",
        "nvflare.private.fed.app.server.server_train",
    ];
    let (set, _) = planned(&[], &command, found(library()));
    assert_eq!(set("MALLOC_ARENA_MAX").unwrap(), "4");
    assert_eq!(
        set("FLARENA_ROLE"),
        None,
        "its children may have another role"
    );
}

#[test]
fn the_startup_folder_of_a_kit_selects_the_role() {
    let kit = Scratch::new();
    kit.write("startup/fed_client.json", "{}");
    let start = kit.path().join("startup/start.sh");
    let (set, _) = planned(&[], &[start.to_str().unwrap()], found(library()));
    assert_eq!(set("FLARENA_ROLE").unwrap(), "client");
    assert_eq!(set("MALLOC_ARENA_MAX").unwrap(), "2");
}

#[test]
fn the_users_arena_count_is_kept() {
    let around = [("FLARENA_ROLE", "client"), ("MALLOC_ARENA_MAX", "4")];
    let (set, _) = planned(&around, &["true"], found(library()));
    assert_eq!(
        (set("MALLOC_ARENA_MAX"), set("FLARENA_INHERITED")),
        (None, None)
    );
}

#[test]
fn an_arena_count_in_glibc_tunables_is_kept() {
    let around = [
        ("FLARENA_ROLE", "client"),
        (
            "GLIBC_TUNABLES",
            "glibc.malloc.check=1:glibc.malloc.arena_max=8",
        ),
    ];
    let (set, _) = planned(&around, &["true"], found(library()));
    assert_eq!(set("MALLOC_ARENA_MAX"), None);
}

#[test]
fn an_inherited_default_is_replaced() {
    let around = [
        ("FLARENA_ROLE", "client"),
        ("MALLOC_ARENA_MAX", "4"),
        ("FLARENA_INHERITED", "warned=77;arena_max=4"),
    ];
    let (set, _) = planned(&around, &["true"], found(library()));
    assert_eq!(set("MALLOC_ARENA_MAX").unwrap(), "2");
    assert_eq!(set("FLARENA_INHERITED").unwrap(), "arena_max=2;warned=77");
}

#[test]
fn the_value_true_is_replaced_so_that_a_kit_preloads_no_second_jemalloc() {
    let around = [("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true")];
    let (set, _) = planned(&around, &["true"], found(library()));
    assert_eq!(set("NVFLARE_ENABLE_JEMALLOC_PRELOAD").unwrap(), "1");
}

#[test]
fn pool_variables_are_set_only_with_the_library_and_without_a_choice_of_the_user() {
    const ARROW: &str = "ARROW_DEFAULT_MEMORY_POOL";
    let chosen = |around: &[(&str, &str)], library| {
        let (set, notes) = planned(around, &["true"], found(library));
        (set(ARROW), notes.len())
    };
    let system = Some("system".to_owned());
    assert_eq!(chosen(&[], library()), (system.clone(), 0));
    assert_eq!(chosen(&[(ARROW, "")], library()), (system.clone(), 0));
    assert_eq!(chosen(&[(ARROW, "jemalloc")], library()), (None, 0));
    assert_eq!(chosen(&[("FLARENA_POOLS", "off")], library()), (None, 0));
    // Without the library malloc may keep more than Arrow's own pool.
    assert_eq!(chosen(&[], missing()), (None, 1));
    let (_, notes) = planned(&[("FLARENA_LOG", "info")], &["true"], found(library()));
    let is_expected = |note: &String| {
        note.starts_with("ARROW_DEFAULT_MEMORY_POOL=system: ") && note.contains("FLARENA_POOLS=off")
    };
    assert!(notes.iter().any(is_expected), "{notes:?}");
}

#[test]
fn a_free_threaded_python_gets_the_variable_of_mimalloc() {
    let dir = Scratch::new();
    let python = dir.write("python3.14t", "");
    let link = dir.path().join("python");
    std::os::unix::fs::symlink(&python, &link).unwrap();
    let header = Header {
        machine: std::env::consts::ARCH,
        interpreter: Some("/lib/ld.so".into()),
    };
    let program = Some(Program {
        path: link,
        header,
        sanitizer: None,
        privilege: None,
    });
    let found = Found {
        program,
        ..found(library())
    };
    let (set, _) = planned(&[], &["python"], found);
    assert_eq!(set("MIMALLOC_PURGE_DELAY").as_deref(), Some("0"));
}

#[test]
fn without_a_library_the_command_starts_with_the_systems_malloc_and_one_note() {
    let (set, notes) = planned(&[], &["true"], found(missing()));
    assert_eq!(set("LD_PRELOAD"), None);
    let line = "libflarena.so was not found; starting with the system's malloc";
    assert_eq!(notes, [line]);
}

/// No usable library, and a jemalloc of the distribution.
fn only_system_jemalloc() -> Found<'static> {
    Found {
        system_jemalloc: &|| Some(PathBuf::from("/usr/lib/libjemalloc.so.2")),
        ..found(missing())
    }
}

#[test]
fn without_a_library_jemalloc_mode_preloads_the_systems_jemalloc() {
    let around = [
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true"),
        ("LD_PRELOAD", "/a.so"),
    ];
    let (set, notes) = planned(&around, &["true"], only_system_jemalloc());
    assert_eq!(
        set("LD_PRELOAD").unwrap(),
        "/usr/lib/libjemalloc.so.2:/a.so"
    );
    assert_eq!(set("MALLOC_CONF").unwrap(), defaults::MALLOC_CONF);
    assert!(
        notes[0].ends_with("; using /usr/lib/libjemalloc.so.2 instead"),
        "{notes:?}"
    );
}

#[test]
fn with_the_systems_jemalloc_the_users_malloc_conf_is_kept() {
    let around = [
        ("FLARENA_ALLOCATOR", "jemalloc"),
        ("MALLOC_CONF", "narenas:1"),
    ];
    let (set, _) = planned(&around, &["true"], only_system_jemalloc());
    assert_eq!(set("MALLOC_CONF"), None);
}

/// A musl program and a usable library.
fn musl_program() -> Found<'static> {
    let interpreter = Some("/lib/ld-musl-x86_64.so.1".to_owned());
    let header = Header {
        machine: std::env::consts::ARCH,
        interpreter,
    };
    let program = Program {
        path: "/bin/app".into(),
        header,
        sanitizer: None,
        privilege: None,
    };
    Found {
        program: Some(program),
        ..found(library())
    }
}

#[test]
fn a_musl_program_gets_no_preload() {
    let (set, notes) = planned(&[("FLARENA_ROLE", "client")], &["/bin/app"], musl_program());
    assert_eq!(set("LD_PRELOAD"), None);
    assert_eq!(
        notes,
        ["/bin/app uses musl, not glibc; starting without flarena"]
    );
}

#[test]
fn an_inherited_preload_of_flarena_is_removed_if_the_library_cannot_be_used() {
    for (old, kept) in [
        ("/opt/libflarena.so", None),
        ("libflarena.so:/a.so /b.so", Some("/a.so:/b.so")),
        ("/a.so /b.so", Some("/a.so /b.so")),
    ] {
        for found in [musl_program(), found(missing())] {
            let get = |name: &str| (name == "LD_PRELOAD").then(|| old.into());
            let mut plan = Plan::new(&get);
            plan.complete(&["true".into()], found);
            assert_eq!(plan.get("LD_PRELOAD"), kept.map(OsString::from), "{old}");
            assert_eq!(
                plan.environment.unset.contains(&"LD_PRELOAD"),
                kept.is_none(),
                "{old}"
            );
        }
    }
}

#[test]
fn beside_the_runtime_of_a_sanitizer_flarena_is_not_preloaded() {
    let around = [("LD_PRELOAD", "/a.so:/usr/lib/libasan.so.8")];
    let (set, notes) = planned(&around, &["python3"], found(library()));
    assert_eq!(set("LD_PRELOAD"), None);
    assert!(
        notes[0].starts_with("/usr/lib/libasan.so.8 in LD_PRELOAD"),
        "{notes:?}"
    );
    assert!(notes[0].ends_with("starting without flarena"), "{notes:?}");
}

#[test]
fn with_a_preload_beside_which_the_library_does_not_start_flarena_is_not_preloaded() {
    let found = || Found {
        try_preload: &|list, _| Err(format!("{} hangs", list.to_string_lossy())),
        ..found(library())
    };
    let (set, notes) = planned(&[("LD_PRELOAD", "/a.so")], &["true"], found());
    assert_eq!(set("LD_PRELOAD"), None);
    let line = "/lib/libflarena.so does not start together with /a.so, which LD_PRELOAD names: \
        /lib/libflarena.so:/a.so hangs; starting without flarena";
    assert_eq!(notes, [line]);
    let (set, notes) = planned(&[], &["true"], found());
    assert_eq!(set("LD_PRELOAD").unwrap(), "/lib/libflarena.so");
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn another_allocator_replaces_flarena_and_its_defaults() {
    let around = [
        ("LD_PRELOAD", "/old/libflarena.so:/a.so"),
        ("MALLOC_ARENA_MAX", "2"),
        ("FLARENA_INHERITED", "arena_max=2"),
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true"),
    ];
    let get = |name: &str| {
        let found = around.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.into())
    };
    let mut plan = Plan::new(&get);
    let (allocator, hooks) = (Path::new("/lib/libjemalloc.so.2"), Path::new("/lib/hooks"));
    plan.use_other(Some(allocator), Some(hooks));
    let value = |name| plan.get(name).map(|value| value.into_string().unwrap());
    assert_eq!(value("LD_PRELOAD").unwrap(), "/lib/libjemalloc.so.2:/a.so");
    assert_eq!(value("MALLOC_CONF").unwrap(), defaults::MALLOC_CONF);
    assert_eq!(value("PYTHONPATH").unwrap(), "/lib/hooks");
    for name in &around[1..] {
        assert_eq!(value(name.0), None, "{}", name.0);
    }
    assert!(!plan.preloads_flarena());
}
