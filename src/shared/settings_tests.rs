use super::*;

/// Reads settings from pairs; answers with them and with the problems.
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
fn nothing_set_gives_the_defaults_and_no_problem() {
    assert_eq!(read_pairs(&[]), (Settings::DEFAULT, vec![]));
}

#[test]
fn the_table_is_indexed_by_its_keys() {
    for (index, row) in TABLE.iter().enumerate() {
        assert_eq!(row.key as usize, index, "{}", row.name);
    }
}

#[test]
fn defaults_that_are_phrases_name_the_numbers_in_force() {
    let arenas = setting(Key::ArenaMax).default;
    let phrase = format!(
        "{} for a client, {} for a server",
        crate::role::arenas(Some(Role::Client)),
        crate::role::arenas(Some(Role::Server))
    );
    assert_eq!(arenas, phrase);
}

#[test]
fn the_row_of_the_decay_names_the_numbers_that_are_learnt_within() {
    let bounds = format!(
        "auto: {}, and up to {} ",
        defaults::DECAY_AUTO_MS,
        defaults::DECAY_AUTO_MOST_MS
    );
    assert!(setting(Key::DecayMs).doc.contains(&bounds), "{bounds}");
}

#[test]
fn each_row_takes_its_good_values_and_reports_its_bad_ones() {
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
            assert!(!problem.used.is_empty());
        }
    }
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    for row in TABLE {
        for good in row.good {
            let pairs = [(row.name, *good)];
            let (settings, _) = read_pairs(&pairs);
            let Some(shown) = settings.shown(row.key) else {
                assert_eq!(settings, Settings::DEFAULT, "{} is no plain text", row.name);
                continue;
            };
            let pairs = [(row.name, shown.as_str())];
            assert_eq!(read_pairs(&pairs), (settings, vec![]), "{}", row.name);
        }
    }
}

#[test]
fn the_allocator_by_name_wins_over_nvflares_switch() {
    let (s, problems) = read_pairs(&[
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true"),
        ("FLARENA_ALLOCATOR", "glibc"),
    ]);
    assert_eq!((s.allocator(), problems.len()), (Allocator::Glibc, 0));
    let (s, _) = read_pairs(&[("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "YES")]);
    assert_eq!(s.allocator(), Allocator::Jemalloc);
}

#[test]
fn an_unknown_allocator_is_reported_and_the_switch_decides() {
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
fn bad_values_side_by_side_are_reported_one_by_one() {
    let bad = TABLE.iter().filter(|row| row.key != Key::MallocConf);
    let pairs: Vec<_> = bad
        .filter_map(|row| Some((row.name, *row.bad.first()?)))
        .collect();
    let (s, problems) = read_pairs(&pairs);
    assert_eq!(s, Settings::DEFAULT);
    let told: Vec<_> = problems.iter().map(|p| setting(p.key).name).collect();
    let asked: Vec<_> = pairs.iter().map(|(name, _)| *name).collect();
    assert_eq!(told, asked);
}

#[test]
fn an_empty_value_counts_as_not_set() {
    let (s, problems) = read_pairs(&[("FLARENA_LOG", ""), ("FLARENA_DECAY_MS", "  ")]);
    assert_eq!((s, problems.len()), (Settings::DEFAULT, 0));
}

#[test]
fn good_values_are_taken() {
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
    assert_eq!(
        read_pairs(&[("FLARENA_DECAY_MS", "auto")]).0.decay,
        Decay::Auto
    );
    assert_eq!((s.recycle_min_bytes, s.decay), (2 << 20, Decay::Ms(1000)));
    assert_eq!(
        (s.memory_limit_bytes, s.log),
        (Some(8 << 30), LogLevel::Info)
    );
}

/// What a document says of a row; an absent line is printed as it should stand.
fn has_line(document: &str, name: &str, line: &str) {
    assert!(
        document.lines().any(|found| found == line),
        "{name} has no line\n{line}"
    );
}

#[test]
fn the_readme_and_the_header_list_every_setting_as_the_table_does() {
    let readme = include_str!("../../README.md");
    let header = include_str!("../../flarena.h");
    for row in TABLE {
        let line = format!("| `{}` | {} | {} |", row.name, row.default, row.doc);
        has_line(readme, "README.md", &line);
        has_line(
            header,
            "flarena.h",
            &format!(" * {:<33} {}", row.name, row.doc),
        );
    }
}

#[test]
fn the_readme_and_the_header_list_no_other_setting() {
    let readme = include_str!("../../README.md").lines();
    let rows = readme.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let header = include_str!("../../flarena.h").lines();
    let list = header.skip_while(|line| !line.starts_with(" * Settings: "));
    let entries = list.skip(2).take_while(|line| *line != " *");
    let named = entries.filter_map(|line| line.strip_prefix(" * ")?.split(' ').next());
    let expected: Vec<_> = TABLE.iter().map(|row| row.name).collect();
    assert_eq!(rows.collect::<Vec<_>>(), expected, "README.md");
    assert_eq!(named.collect::<Vec<_>>(), expected, "flarena.h");
}

#[test]
fn the_suite_of_settings_tries_each_that_has_a_bad_value() {
    let suite = include_str!("../../tests/settings/run.sh");
    for row in TABLE.iter().filter(|row| !row.bad.is_empty()) {
        let (tried, set) = (format!("{} ", row.name), format!("{}=", row.name));
        let is_tried = suite.contains(&tried) || suite.contains(&set);
        assert!(is_tried, "tests/settings/run.sh: {}", row.name);
    }
}

#[test]
fn python_hooks_are_wanted_by_each_that_needs_them_and_by_nothing_else() {
    let wanted = |pairs: &[(&str, &str)]| read_pairs(pairs).0.wants_hooks();
    let none = ("FLARENA_GC", "off");
    assert!(wanted(&[]));
    assert!(!wanted(&[none]));
    for one in [
        ("NVFLARE_CLIENT_MEMORY_PROFILE", "1"),
        ("FLARENA_SITES", "on"),
        ("FLARENA_ALLOCATOR", "jemalloc"),
    ] {
        assert!(wanted(&[none, one]), "{one:?}");
    }
}

#[test]
fn garbage_that_nobody_counts_is_told_where_the_recycler_is_off_and_collections_are_not() {
    let told = |pairs: &[(&str, &str)]| read_pairs(pairs).0.uncounted_garbage();
    let off = ("FLARENA_RECYCLE", "off");
    assert!(told(&[off]).is_some_and(|text| text.starts_with("FLARENA_RECYCLE=off: ")));
    assert_eq!(told(&[]), None);
    assert_eq!(told(&[off, ("FLARENA_GC", "off")]), None);
    assert_eq!(told(&[("FLARENA_GC", "off")]), None);
}

#[test]
fn an_unknown_allocator_says_which_one_serves_instead() {
    let used = |pairs: &[(&str, &str)]| read_pairs(pairs).1.first().map(|problem| problem.used);
    let bad = ("FLARENA_ALLOCATOR", "tcmalloc");
    assert_eq!(used(&[bad]), Some("glibc"));
    let asked = ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true");
    let named = "jemalloc, as NVFLARE_ENABLE_JEMALLOC_PRELOAD asks";
    assert_eq!(used(&[bad, asked]), Some(named));
}
