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
fn nothing_set_gives_the_defaults_and_no_complaint() {
    assert_eq!(read_pairs(&[]), (Settings::DEFAULT, vec![]));
}

#[test]
fn the_table_is_indexed_by_its_keys() {
    for (index, row) in TABLE.iter().enumerate() {
        assert_eq!(row.key as usize, index, "{}", row.name);
    }
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let documented = |key| setting(key).default.as_bytes();
    assert_eq!(
        recycle_min(documented(Key::RecycleMin)),
        Some(defaults::RECYCLE_MIN_BYTES)
    );
    assert_eq!(decay_ms(documented(Key::DecayMs)), Some(defaults::DECAY_MS));
    assert_eq!(setting(Key::MallocConf).default, defaults::MALLOC_CONF);
    assert_eq!(log(documented(Key::Log)), Some(Settings::DEFAULT.log));
    assert_eq!(
        parse::boolean(documented(Key::Recycle)),
        Some(Settings::DEFAULT.recycle)
    );
}

#[test]
fn the_allocator_by_name_wins_over_nvflares_switch() {
    let (s, problems) = read_pairs(&[
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "true"),
        ("FLARENA_ALLOCATOR", "glibc"),
    ]);
    assert_eq!((s.allocator, problems.len()), (Allocator::Glibc, 0));
    let (s, _) = read_pairs(&[("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "YES")]);
    assert_eq!(s.allocator, Allocator::Jemalloc);
}

#[test]
fn an_unknown_allocator_is_reported_and_the_switch_decides() {
    let pairs = [
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "1"),
        ("FLARENA_ALLOCATOR", "tcmalloc"),
    ];
    let (s, problems) = read_pairs(&pairs);
    assert_eq!(s.allocator, Allocator::Jemalloc);
    assert_eq!(problems[0].key, Key::Allocator);
    assert_eq!(problems[0].value, b"tcmalloc");
    assert!(problems[0].used.starts_with("jemalloc"));
}

#[test]
fn each_bad_value_is_reported_once_and_the_default_used() {
    let pairs = [
        ("NVFLARE_ENABLE_JEMALLOC_PRELOAD", "maybe"),
        ("FLARENA_ROLE", "boss"),
        ("MALLOC_ARENA_MAX", "two"),
        ("NVFLARE_CLIENT_MEMORY_PROFILE", "2"),
        ("FLARENA_RECYCLE", "sometimes"),
        ("FLARENA_RECYCLE_MIN", "100T"),
        ("FLARENA_DECAY_MS", "-1"),
        ("FLARENA_MEMORY_LIMIT", "lots"),
        ("FLARENA_PRESSURE", "high"),
        ("FLARENA_LOG", "debug"),
    ];
    let (s, problems) = read_pairs(&pairs);
    assert_eq!(s, Settings::DEFAULT);
    let names: Vec<_> = problems.iter().map(|p| setting(p.key).name).collect();
    assert_eq!(names, pairs.map(|(name, _)| name));
}

#[test]
fn a_recycle_min_of_one_byte_is_refused() {
    let (s, problems) = read_pairs(&[("FLARENA_RECYCLE_MIN", "1")]);
    assert_eq!(
        (s.recycle_min_bytes, problems.len()),
        (defaults::RECYCLE_MIN_BYTES, 1)
    );
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
    assert_eq!((s.recycle_min_bytes, s.decay_ms), (2 << 20, 1000));
    assert_eq!(
        (s.memory_limit_bytes, s.log),
        (Some(8 << 30), LogLevel::Info)
    );
}

#[test]
fn the_readme_and_the_header_list_every_setting_as_the_table_does() {
    let readme = include_str!("../../README.md");
    let header = include_str!("../../flarena.h");
    for row in TABLE {
        let line = format!("| `{}` | {} | {} |", row.name, row.default, row.doc);
        assert!(readme.contains(&line), "README.md has no line {line}");
        assert!(
            header.contains(&format!(" * {} ", row.name)),
            "flarena.h: {}",
            row.name
        );
    }
}
