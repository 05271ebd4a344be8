use super::*;

fn sample() -> Marker {
    let minimal = r#"{"v":1,"t":1763619820.123456,"mono":2147.873748,"pid":7,"stage":"send"}"#;
    Marker {
        proc: "TR".into(),
        site: Some("site-1".into()),
        round: Some(3),
        boot: Some(ShortHash(0x00c0_ffee)),
        rss_bytes: Some(537_184_665),
        asked_bytes: Some(24 << 20),
        left_bytes: Some(3 << 20),
        asked_at: Some("train.py:12 in step".into()),
        ..serde_json::from_str(minimal).unwrap()
    }
}

#[test]
fn the_text_form_equals_nvflares_line() {
    assert_eq!(
        sample().to_text_line(),
        "[RSS] TR s=site-1 r=3 send: 512.3 MB\n"
    );
}

#[test]
fn a_text_marker_inside_a_log_line_is_parsed() {
    let line = format!(
        "2026-11-20 - mem_utils - INFO - {}",
        sample().to_text_line()
    );
    let read = parse_text(&line).unwrap();
    assert_eq!(
        (&*read.proc, read.site.as_deref(), read.round),
        ("TR", Some("site-1"), Some(3))
    );
    let size = read.rss_bytes.map(|bytes| bytes >> 20);
    assert_eq!((&*read.stage, size), ("send", Some(512)));
}

#[test]
fn a_text_line_needs_a_process_a_stage_and_a_size_but_no_site() {
    for (proc, stage, size) in [("", "send", "1"), ("TR", "", "1"), ("TR", "send", "-1")] {
        let line = format!("[RSS] {proc} s=site-1 r=3 {stage}: {size} MB");
        assert_eq!(parse_text(&line), None, "{line}");
    }
    for site in ["", "-"] {
        let line = format!("[RSS] TR s={site} r=3 send: 1 MB");
        assert_eq!(
            parse_text(&line).map(|read| read.site),
            Some(None),
            "{line}"
        );
    }
}

#[test]
fn the_task_behind_the_site_in_lines_of_nvflare_is_no_part_of_the_site() {
    let read = parse_text("[RSS] CJ s=site-1 t=train r=0 relay: 93.4 MB").unwrap();
    assert_eq!(
        (read.site.as_deref(), read.round, &*read.stage),
        (Some("site-1"), Some(0), "relay")
    );
}

#[test]
fn missing_names_of_process_and_allocator_become_a_dash() {
    let read: Marker = serde_json::from_str(r#"{"v":1,"t":0,"pid":7,"stage":"send"}"#).unwrap();
    assert_eq!((&*read.proc, &*read.alloc), ("-", "-"));
}

#[test]
fn docs_markers_md_lists_the_fields_in_the_order_of_the_record() {
    let line = serde_json::to_string(&sample()).unwrap();
    let mut written = line.as_str();
    for (field, _) in FIELDS {
        let key = written.find(&format!("\"{field}\":"));
        written = &written[key.unwrap_or_else(|| panic!("{field} in {line}"))..];
    }
    assert_eq!(line.matches("\":").count(), FIELDS.len());

    let page = include_str!("../../../docs/markers.md");
    let section = page.split("\n## Fields\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut rows = section.lines().filter(|line| line.starts_with("| `"));
    for (field, meaning) in FIELDS {
        let expected = format!("| `{field}` | {meaning} |");
        assert_eq!(rows.next(), Some(&*expected), "docs/markers.md");
    }
    assert_eq!(rows.next(), None, "docs/markers.md");
}

#[test]
fn the_json_form_keeps_microseconds_and_the_digits_of_the_boot() {
    let marker = sample();
    let line = marker.to_json_line();
    assert!(
        line.starts_with(r#"{"v":1,"t":1763619820.123456,"mono":2147.873748,"pid":7,"#),
        "{line}"
    );
    assert!(line.contains(r#""boot":"00c0ffee""#), "{line}");
    assert_eq!(serde_json::from_str::<Marker>(&line).unwrap(), marker);
}

#[test]
fn names_with_newlines_quotes_and_spaces_stay_on_one_line() {
    let odd = Marker {
        stage: "a\n\"b\" c".into(),
        site: Some("my site\t1".into()),
        ..sample()
    };
    assert_eq!(
        odd.to_text_line(),
        "[RSS] TR s=my_site?1 r=3 a?\"b\" c: 512.3 MB\n"
    );
    assert_eq!(odd.to_json_line().matches('\n').count(), 1);
    assert_eq!(
        serde_json::from_str::<Marker>(&odd.to_json_line()).unwrap(),
        odd
    );
}

#[test]
fn long_names_are_cut_between_characters_and_bad_utf8_is_replaced() {
    assert_eq!(name_from_bytes(&[b'x'; 1 << 20]).len(), NAME_MAX_BYTES);
    let umlauts = "ü".repeat(100);
    let odd = format!("x{umlauts}");
    assert!(odd.starts_with(&name_from_bytes(odd.as_bytes())));
    assert_eq!(name_from_bytes(b"a\xFFb"), "a\u{FFFD}b");
    // Only a cut character is left out. Bytes that are not UTF-8 are replaced.
    let bad = [&[b'x'; NAME_MAX_BYTES - 5][..], &[0xFF; 10]].concat();
    assert!(name_from_bytes(&bad).ends_with("x\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"));
}

#[test]
fn an_odd_value_leaves_its_field_unknown_and_is_an_error_only_for_a_size() {
    let mut marker = Marker::default();
    for (name, json, is_known, is_error) in [
        ("seq", "18446744073709551615", true, false),
        ("rss_bytes", "1048576.5", true, false),
        ("live_bytes", "\"many\"", true, true),
        ("anon_bytes", "-3", true, true),
        ("swap_bytes", "null", true, false),
        ("cgroup_limit_bytes", "9223372036854771712", true, false),
        ("pid", "\"7\"", true, false),
        ("site", "\"-\"", true, false),
        ("settings", "\"\"", true, false),
        ("unheard_of", "1", false, false),
    ] {
        assert_eq!(marker.set(name, json), is_known, "{name}");
        assert_eq!(is_invalid(name, json), is_error, "{name}");
    }
    let expected = Marker {
        seq: Some(u64::MAX),
        rss_bytes: Some(1_048_576),
        settings: Some(String::new()),
        ..Marker::default()
    };
    assert_eq!(marker, expected);
}

#[test]
fn a_memory_line_completes_the_marker_of_its_process_and_round() {
    let marker = parse_text("[RSS] SJ s=server r=2 send: 512.0 MB").unwrap();
    let complete = |line: &str| {
        let mut marker = marker.clone();
        marker.complete(Marker::from_memory_line(line).unwrap());
        marker
    };
    let same = complete("[MEM] SJ s=server r=2 live=402.0 file=90.0 left=24.0 limit=1024.0 MB");
    let megabytes = |bytes: Option<u64>| bytes.map(|bytes| bytes >> 20);
    assert_eq!(
        (&*same.stage, megabytes(same.rss_bytes)),
        ("send", Some(512))
    );
    let sizes = [same.live_bytes, same.anon_bytes, same.cgroup_bytes].map(megabytes);
    assert_eq!(sizes, [402, 422, 1000].map(Some));
    assert_eq!(complete("[MEM] TR s=server r=2 live=402.0 MB"), marker);
}

#[test]
fn other_lines_are_not_markers() {
    for line in [
        "",
        "[RSS] ",
        "[RSS] TR s=a r=1 send: many MB",
        "RSS TR s=a r=1 x: 1 MB",
    ] {
        assert_eq!(parse_text(line), None, "{line}");
    }
}
