//! One module of each crate under test: its entries by name, run over the kept inputs by an ordinary test, and
//! over new ones by libFuzzer (`fuzz/soak.sh`).

/// The name of a folder of `fuzz/corpus`, and what must hold for any input.
pub type Target = (&'static str, fn(&[u8]));

/// The entries of a crate that has a list of targets: for libFuzzer, or for an ordinary test.
// fuzz/Cargo.toml builds this file alone, too, as its library.
#[allow(unused_macros)]
macro_rules! enter {
    ($targets:expr) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|input: &[u8]| driver::run_chosen($targets, input));

        #[cfg(not(fuzzing))]
        #[test]
        fn the_kept_inputs_of_the_fuzzers_find_nothing() {
            driver::run_corpora($targets);
        }
    };
}

/// Runs every kept input, so that none is dead.
#[cfg(not(fuzzing))]
pub fn run_corpora(targets: &[Target]) {
    let corpora = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, run) in targets {
        let files = std::fs::read_dir(corpora.join(name)).expect("each target has a corpus");
        let inputs: Vec<Vec<u8>> = files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect();
        assert!(!inputs.is_empty(), "{name} has no input");
        inputs.iter().for_each(|input| run(input));
    }
}

/// Runs the target that `FUZZ_TARGET` names.
#[cfg(fuzzing)]
pub fn run_chosen(targets: &[Target], input: &[u8]) {
    static CHOSEN: std::sync::OnceLock<fn(&[u8])> = std::sync::OnceLock::new();
    let run = CHOSEN.get_or_init(|| {
        let wanted = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
        let target = targets.iter().find(|(name, _)| *name == wanted);
        target.expect("it is a target of this program").1
    });
    run(input);
}
