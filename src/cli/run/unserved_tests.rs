//! Jobs that no library of ours serves.

use super::tests::{found, library, missing, planned};
use super::*;
use crate::library::elf::Header;

#[test]
fn without_a_library_the_job_starts_with_the_systems_malloc_and_one_line_says_so() {
    let (set, notes) = planned(&[], &["true"], found(missing()));
    assert_eq!(set("LD_PRELOAD"), None);
    let line = "libflarena.so was not found; starting with the system's malloc";
    assert_eq!(notes, [line]);
}

/// No library of ours, but the distribution's jemalloc.
fn only_system_jemalloc() -> Found<'static> {
    Found {
        system_jemalloc: &|| Some(PathBuf::from("/usr/lib/libjemalloc.so.2")),
        ..found(missing())
    }
}

#[test]
fn without_a_library_a_wish_for_jemalloc_is_met_by_the_systems_own() {
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
fn the_users_malloc_conf_is_not_touched() {
    let around = [
        ("FLARENA_ALLOCATOR", "jemalloc"),
        ("MALLOC_CONF", "narenas:1"),
    ];
    let (set, _) = planned(&around, &["true"], only_system_jemalloc());
    assert_eq!(set("MALLOC_CONF"), None);
}

/// A musl program, and a library that would work elsewhere.
fn musl_program() -> Found<'static> {
    let interpreter = Some("/lib/ld-musl-x86_64.so.1".to_owned());
    let header = Header {
        machine: std::env::consts::ARCH,
        interpreter,
    };
    let program = Program {
        path: "/bin/app".into(),
        header,
        is_privileged: false,
    };
    Found {
        program: Some(program),
        ..found(library())
    }
}

#[test]
fn nothing_is_preloaded_into_a_musl_program() {
    let (set, notes) = planned(&[("FLARENA_ROLE", "client")], &["/bin/app"], musl_program());
    assert_eq!(set("LD_PRELOAD"), None);
    assert_eq!(
        notes,
        ["/bin/app uses musl, not glibc; starting without flarena"]
    );
}

#[test]
fn a_library_that_the_environment_names_goes_where_none_can_serve() {
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
            assert_eq!(plan.unset.contains(&"LD_PRELOAD"), kept.is_none(), "{old}");
        }
    }
}
