use std::path::Path;

use super::*;

fn names(emitters: [Emitter; 2]) -> Vec<&'static str> {
    let stages = Stage::ALL.iter();
    let emitted = stages.filter(|stage| emitters.contains(&stage.emitter()));
    emitted.map(|stage| stage.name()).collect()
}

/// The Rust sources below a folder, concatenated.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text += &std::fs::read_to_string(&path).unwrap();
        }
    }
    text
}

#[test]
fn the_hooks_know_exactly_the_stages_of_the_hooks() {
    // mypy checks every call of a hook against this Literal.
    let hooks = include_str!("../../python/flarena/_marking.py");
    let list = hooks.split("    Stage = Literal[").nth(1).unwrap();
    let list = list.split(']').next().unwrap();
    let known: Vec<_> = list.split('"').skip(1).step_by(2).collect();
    let expected = names([Emitter::Hooks, Emitter::Both]);
    assert_eq!(known, expected, "Stage in _marking.py, and stages.rs");
}

#[test]
fn the_library_writes_exactly_the_stages_of_the_library() {
    let shim = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../shim"));
    for stage in Stage::ALL {
        let is_emitted = shim.contains(&format!("Stage::{stage:?}"));
        assert_eq!(is_emitted, stage.emitter() != Emitter::Hooks, "{stage:?}");
    }
}

#[test]
fn docs_markers_md_names_the_stages_of_the_callbacks() {
    let page = include_str!("../../../docs/markers.md");
    for callbacks in [
        include_str!("../../python/flarena/lightning.py"),
        include_str!("../../python/flarena/transformers.py"),
    ] {
        let stages: Vec<_> = callbacks.split("self._mark(\"").skip(1).collect();
        assert!(stages.len() > 3);
        for stage in stages.iter().filter_map(|rest| rest.split('"').next()) {
            assert!(
                page.contains(&format!("`{stage}`")),
                "{stage} in docs/markers.md"
            );
        }
    }
}

#[test]
fn docs_markers_md_lists_exactly_these_stages() {
    let page = include_str!("../../../docs/markers.md");
    let section = page.split("\n## Stages\n").nth(1).unwrap();
    let mut rows = section.lines().filter(|line| line.starts_with("| `"));
    for stage in Stage::ALL {
        let emitter = match stage.emitter() {
            Emitter::Library => "library",
            Emitter::Hooks => "hooks",
            Emitter::Both => "library, hooks",
        };
        let expected = format!("| `{}` | {emitter} | {} |", stage.name(), stage.meaning());
        assert_eq!(rows.next(), Some(&*expected), "docs/markers.md");
    }
    assert_eq!(rows.next(), None, "docs/markers.md");
}
