//! Runs a fuzz target over the inputs kept in `fuzz/corpus`. The unit tests of each crate with a
//! fuzz target include this file; `fuzz/soak.sh` runs the same targets with libFuzzer.

/// Runs `target` on each input in the folder `name`.
pub fn run(name: &str, target: fn(&[u8])) {
    let corpora = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = std::fs::read_dir(corpora.join(name)).expect("each target has a corpus");
    let inputs: Vec<Vec<u8>> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(!inputs.is_empty(), "{name} has no input");
    inputs.iter().for_each(|input| target(input));
}
