//! Python's hooks parse some settings themselves (`src/python/flarena/_settings.py`), because they
//! also run without the library. These tests compare both parsers with the same texts.

use super::*;
use crate::values::LogLevel;
use std::io::Write;
use std::process::{Command, Stdio};

/// Reads the environment of one process per line, and prints one line for each.
const SCRIPT: &str = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
import _settings
for line in sys.stdin:
    environ = json.loads(line)
    answers = [
        _settings.markers_wanted(environ),
        _settings.sites_wanted(environ),
        _settings.jemalloc_wanted(environ),
        _settings.collections_wanted(environ),
        _settings.gc_rounds(environ),
        _settings.cuda_cache_wanted(environ),
        _settings.pools_wanted(environ),
        _settings.is_silent(environ),
    ]
    print(json.dumps(answers))
"#;

const READ_BY_PYTHON: [Key; 9] = [
    Key::Profile,
    Key::Sites,
    Key::JemallocPreload,
    Key::Allocator,
    Key::Gc,
    Key::GcRounds,
    Key::CudaEmptyCache,
    Key::Pools,
    Key::Log,
];

/// Values that some setting accepts, in several spellings, and values that none accepts.
fn texts() -> Vec<String> {
    let words = TABLE.iter().flat_map(|row| {
        let removed = row.removed.iter().map(|removed| &removed.value);
        row.good.iter().chain(row.bad).chain(removed)
    });
    let booleans = [
        "1", "true", "yes", "on", "0", "false", "no", "off", "y", "n", "", " ",
    ];
    let mut texts = Vec::new();
    for word in words.chain(&booleans) {
        texts.push(word.to_string());
        texts.push(word.to_uppercase());
        texts.push(format!(" {word}\t"));
    }
    texts
}

fn rust(pairs: &[(&str, &str)]) -> serde_json::Value {
    let get = |key: Key| {
        let found = pairs.iter().find(|(name, _)| *name == setting(key).name);
        found.map(|(_, text)| text.as_bytes())
    };
    let settings = read(get, |_| {});
    serde_json::json!([
        settings.profile,
        settings.sites,
        settings.allocator() == Allocator::Jemalloc,
        settings.gc,
        settings.gc_rounds,
        settings.cuda_empty_cache,
        settings.pools,
        settings.log == LogLevel::Off,
    ])
}

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/flarena");

#[test]
#[cfg_attr(miri, ignore = "reads a file")]
fn each_setting_that_python_reads_is_compared() {
    let source = std::fs::read_to_string(format!("{PACKAGE}/_settings.py")).unwrap();
    for row in TABLE {
        let is_read = source.contains(&format!("\"{}\"", row.name));
        assert_eq!(is_read, READ_BY_PYTHON.contains(&row.key), "{}", row.name);
    }
}

/// The answers of one Python process for all cases.
fn python(cases: &[Vec<(&str, &str)>]) -> Vec<serde_json::Value> {
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT, PACKAGE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is installed, which this test needs");
    let mut input = python.stdin.take().unwrap();
    let lines: String = cases
        .iter()
        .map(|pairs| {
            let environ: serde_json::Map<_, _> = pairs
                .iter()
                .map(|(name, text)| (name.to_string(), (*text).into()))
                .collect();
            format!("{}\n", serde_json::Value::from(environ))
        })
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
#[cfg_attr(miri, ignore = "starts a program")]
fn python_and_rust_parse_each_text_alike() {
    let texts = texts();
    let mut cases = vec![vec![]];
    for key in READ_BY_PYTHON {
        cases.extend(texts.iter().map(|text| vec![(setting(key).name, &**text)]));
    }
    // FLARENA_ALLOCATOR overrides NVFlare's switch.
    for text in &texts {
        for switch in ["true", "false"] {
            let names = [Key::Allocator, Key::JemallocPreload].map(|key| setting(key).name);
            cases.push(vec![(names[0], text), (names[1], switch)]);
        }
    }
    let answers = python(&cases);
    assert_eq!(answers.len(), cases.len());
    for (pairs, answer) in cases.iter().zip(answers) {
        assert_eq!(answer, rust(pairs), "{pairs:?}");
    }
}
