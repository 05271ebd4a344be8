use super::*;

/// The settings read from pairs, and the problems.
fn read_pairs<'a>(pairs: &'a [(&str, &str)]) -> (Settings, Vec<Problem<'a>>) {
    let mut problems = Vec::new();
    let get = |key: Key| {
        let name = setting(key).name;
        pairs
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.as_bytes())
    };
    let settings = read(get, |problem| problems.push(problem));
    (settings, problems)
}

#[test]
fn no_variable_set_gives_the_defaults_and_no_problem() {
    assert_eq!(read_pairs(&[]), (Settings::DEFAULT, vec![]));
}

#[test]
fn the_table_is_indexed_by_its_keys() {
    for (index, row) in TABLE.iter().enumerate() {
        assert_eq!(row.key as usize, index, "{}", row.name);
    }
}

#[test]
fn the_phrase_of_the_arena_default_names_the_arenas_of_each_role() {
    let arenas = setting(Key::ArenaMax).default;
    let phrase = format!(
        "{} for a client, {} for a server",
        crate::role::arenas(Some(Role::Client)),
        crate::role::arenas(Some(Role::Server))
    );
    assert_eq!(arenas, phrase);
}

#[test]
fn each_row_accepts_its_good_values_and_reports_its_bad_ones() {
    for row in TABLE.iter().filter(|row| row.key != Key::MallocConf) {
        assert!(!row.good.is_empty(), "{} has no good value", row.name);
        for good in row.good {
            let pairs = [(row.name, *good)];
            assert_eq!(read_pairs(&pairs).1, [], "{}={good}", row.name);
        }
        for bad in row.bad {
            let pairs = [(row.name, *bad)];
            let (settings, problems) = read_pairs(&pairs);
            assert_eq!(settings, Settings::DEFAULT, "{}={bad}", row.name);
            assert_eq!(problems.len(), 1, "{}={bad}", row.name);
            let problem = problems[0];
            assert_eq!((problem.key, problem.value), (row.key, bad.as_bytes()));
            assert_eq!(problem.fault, Fault::NotAccepted);
            assert!(!problem.used.is_empty());
        }
    }
}

#[test]
fn a_removed_value_is_reported_and_its_replacement_is_used() {
    let removed = |row: &'static Setting| row.removed.iter().map(move |removed| (row, removed));
    for (row, removed) in TABLE.iter().flat_map(removed) {
        let pairs = [(row.name, removed.value)];
        let (settings, problems) = read_pairs(&pairs);
        let replaced = [(row.name, removed.replacement)];
        assert_eq!((settings, vec![]), read_pairs(&replaced), "{}", row.name);
        let expected = Problem {
            key: row.key,
            value: removed.value.as_bytes(),
            fault: Fault::Removed,
            used: removed.replacement,
        };
        assert_eq!(problems, [expected]);
    }
}

#[test]
fn a_problem_is_one_sentence_with_the_value_and_its_replacement() {
    let sentence = |name: &str, value: &str| {
        let pairs = [(name, value)];
        let problem = read_pairs(&pairs).1[0];
        problem.sentence(value).to_string()
    };
    assert_eq!(
        sentence("FLARENA_DECAY_MS", "Auto"),
        "FLARENA_DECAY_MS=Auto was removed; 300 is used"
    );
    assert_eq!(
        sentence("FLARENA_POOLS", "all"),
        "FLARENA_POOLS=all was removed; auto is used"
    );
    assert_eq!(
        sentence("FLARENA_LOG", "loud"),
        "FLARENA_LOG=loud is not off, warn or info; using warn"
    );
}

#[test]
fn a_shown_value_parses_to_the_same_setting() {
    for row in TABLE {
        for good in row.good {
            let pairs = [(row.name, *good)];
            let (settings, _) = read_pairs(&pairs);
            let Some(shown) = settings.shown(row.key) else {
                assert_eq!(
                    settings,
                    Settings::DEFAULT,
                    "{} has a field but no text",
                    row.name
                );
                continue;
            };
            let pairs = [(row.name, shown.as_str())];
            assert_eq!(read_pairs(&pairs), (settings, vec![]), "{}", row.name);
        }
    }
}

#[test]
fn sizes_are_shown_as_a_user_writes_them() {
    for (written, shown) in [
        ("524288", "512K"),
        ("8GiB", "8G"),
        ("1536M", "1536M"),
        ("1000000", "1000000"),
    ] {
        let (settings, _) = read_pairs(&[("FLARENA_MEMORY_LIMIT", written)]);
        assert_eq!(settings.shown(Key::MemoryLimit).as_deref(), Some(shown));
    }
}

#[test]
fn flarena_allocator_overrides_nvflares_switch() {
    let (s, problems) = read_pairs(&[
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true"),
        ("FLARENA_ALLOCATOR", "glibc"),
    ]);
    assert_eq!((s.allocator(), problems.len()), (Allocator::Glibc, 0));
    let (s, _) = read_pairs(&[("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "YES")]);
    assert_eq!(s.allocator(), Allocator::Jemalloc);
}

#[test]
fn an_unknown_allocator_is_reported_and_nvflares_switch_selects() {
    let pairs = [
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "1"),
        ("FLARENA_ALLOCATOR", "tcmalloc"),
    ];
    let (s, problems) = read_pairs(&pairs);
    assert_eq!(s.allocator(), Allocator::Jemalloc);
    assert_eq!(problems[0].key, Key::Allocator);
    assert_eq!(problems[0].value, b"tcmalloc");
    assert!(problems[0].used.starts_with("jemalloc"));
}

#[test]
fn several_bad_values_are_each_reported() {
    let bad = TABLE.iter().filter(|row| row.key != Key::MallocConf);
    let pairs: Vec<_> = bad
        .filter_map(|row| Some((row.name, *row.bad.first()?)))
        .collect();
    let (s, problems) = read_pairs(&pairs);
    assert_eq!(s, Settings::DEFAULT);
    let reported: Vec<_> = problems.iter().map(|p| setting(p.key).name).collect();
    let set: Vec<_> = pairs.iter().map(|(name, _)| *name).collect();
    assert_eq!(reported, set);
}

#[test]
fn an_empty_value_counts_as_not_set() {
    let (s, problems) = read_pairs(&[("FLARENA_LOG", ""), ("FLARENA_DECAY_MS", "  ")]);
    assert_eq!((s, problems.len()), (Settings::DEFAULT, 0));
}

#[test]
fn good_values_set_their_fields() {
    let (s, problems) = read_pairs(&[
        ("FLARENA_ROLE", "Server"),
        ("MALLOC_ARENA_MAX", "8"),
        ("NVFLARE_CLIENT_MEMORY_PROFILE", "1"),
        ("FLARENA_RECYCLE_MIN", "2M"),
        ("FLARENA_DECAY_MS", "1000"),
        ("FLARENA_MEMORY_LIMIT", "8G"),
        ("FLARENA_PRESSURE", "off"),
        ("FLARENA_LOG", "info"),
    ]);
    assert!(problems.is_empty());
    assert_eq!(s.role, Some(Role::Server));
    assert_eq!(s.arena_max, Some(8));
    assert!(s.profile && !s.pressure);
    assert_eq!((s.recycle_min_bytes, s.decay_ms), (2 << 20, 1000));
    assert_eq!(
        (s.memory_limit_bytes, s.log),
        (Some(8 << 30), LogLevel::Info)
    );
}

#[test]
fn the_readme_and_the_header_have_the_line_of_each_setting() {
    let readme = include_str!("../../../README.md");
    let header = include_str!("../../../include/flarena.h");
    let mut missing = String::new();
    for row in TABLE {
        let in_readme = format!("| `{}` | {} | {} |", row.name, row.default, row.doc);
        let in_header = format!(" * {:<33} {}", row.name, row.doc);
        for (name, document, line) in [
            ("README.md", readme, in_readme),
            ("flarena.h", header, in_header),
        ] {
            if !document.lines().any(|found| found == line) {
                missing += &format!("{name} has no line\n{line}\n");
            }
        }
    }
    assert!(missing.is_empty(), "{missing}");
}

#[test]
fn the_readme_and_the_header_list_no_other_setting() {
    let readme = include_str!("../../../README.md").lines();
    let rows = readme.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let header = include_str!("../../../include/flarena.h").lines();
    let list = header.skip_while(|line| !line.starts_with(" * Settings: "));
    let entries = list.skip(2).take_while(|line| *line != " *");
    let named = entries.filter_map(|line| line.strip_prefix(" * ")?.split(' ').next());
    let expected: Vec<_> = TABLE.iter().map(|row| row.name).collect();
    assert_eq!(rows.collect::<Vec<_>>(), expected, "README.md");
    assert_eq!(named.collect::<Vec<_>>(), expected, "flarena.h");
}

#[test]
fn the_settings_suite_tries_a_bad_value_of_each_row_that_has_one() {
    let suite = include_str!("../../../tests/settings/run.sh");
    for row in TABLE.iter().filter(|row| !row.bad.is_empty()) {
        let (tried, set) = (format!("{} ", row.name), format!("{}=", row.name));
        let is_tried = suite.contains(&tried) || suite.contains(&set);
        assert!(is_tried, "tests/settings/run.sh: {}", row.name);
    }
}

#[test]
fn hooks_are_wanted_only_by_the_settings_that_need_them() {
    let wanted = |pairs: &[(&str, &str)]| read_pairs(pairs).0.wants_hooks();
    let none = ("FLARENA_GC", "off");
    assert!(wanted(&[]));
    assert!(!wanted(&[none]));
    for setting in [
        ("NVFLARE_CLIENT_MEMORY_PROFILE", "1"),
        ("FLARENA_SITES", "on"),
        ("FLARENA_ALLOCATOR", "jemalloc"),
    ] {
        assert!(wanted(&[none, setting]), "{setting:?}");
    }
}

#[test]
fn gc_is_reported_as_inactive_only_with_gc_on_and_the_recycler_off() {
    let reason = |pairs: &[(&str, &str)]| read_pairs(pairs).0.why_gc_is_inactive();
    let off = ("FLARENA_RECYCLE", "off");
    assert!(reason(&[off]).is_some_and(|text| text.starts_with("FLARENA_RECYCLE=off: ")));
    assert_eq!(reason(&[]), None);
    assert_eq!(reason(&[off, ("FLARENA_GC", "off")]), None);
    assert_eq!(reason(&[("FLARENA_GC", "off")]), None);
}

#[test]
fn a_marker_file_without_markers_and_a_cuda_cache_without_rounds_have_no_effect() {
    let sentences = |pairs: &[(&str, &str)]| -> Vec<&str> {
        let is_set = |key| pairs.iter().any(|(name, _)| *name == setting(key).name);
        read_pairs(pairs).0.without_effect(is_set).collect()
    };
    let file = ("FLARENA_MARKER_FILE", "/tmp/rss.jsonl");
    let cuda = ("NVFLARE_CUDA_EMPTY_CACHE", "true");
    let [first, second] = sentences(&[file, cuda])[..] else {
        panic!("{:?}", sentences(&[file, cuda]));
    };
    assert!(first.starts_with("FLARENA_MARKER_FILE has no effect: "));
    assert!(second.starts_with("NVFLARE_CUDA_EMPTY_CACHE=true: "));
    let rounds = ("NVFLARE_CLIENT_MEMORY_GC_ROUNDS", "2");
    for profile in ["1", "off"] {
        let profile = ("NVFLARE_CLIENT_MEMORY_PROFILE", profile);
        assert_eq!(sentences(&[file, profile, cuda, rounds]).len(), 0);
    }
    assert_eq!(sentences(&[("NVFLARE_CUDA_EMPTY_CACHE", "false")]).len(), 0);
}

#[test]
fn a_problem_of_the_allocator_names_the_one_that_serves() {
    let used = |pairs: &[(&str, &str)]| read_pairs(pairs).1.first().map(|problem| problem.used);
    let bad = ("FLARENA_ALLOCATOR", "tcmalloc");
    assert_eq!(used(&[bad]), Some("glibc"));
    let asked = ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true");
    let selected = "jemalloc, selected by NVFLARE_ENABLE_JEMALLOC_PRELOAD";
    assert_eq!(used(&[bad, asked]), Some(selected));
}

#[test]
fn changed_settings_are_listed_without_paths_and_without_defaults() {
    assert_eq!(Settings::DEFAULT.changed(), "");
    let values = [
        (Key::Gc, "off"),
        (Key::Huge, "auto"),
        (Key::Sites, "1"),
        (Key::MarkerFile, "/tmp/secret"),
        (Key::Profile, "1"),
    ];
    let get = |key| {
        let row = values.iter().find(|(known, _)| *known == key);
        row.map(|(_, text)| text.as_bytes())
    };
    let settings = read(get, |problem| panic!("{problem:?}"));
    assert_eq!(settings.changed(), "FLARENA_SITES=on FLARENA_GC=off");
}
