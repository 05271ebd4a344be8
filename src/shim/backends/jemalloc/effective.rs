//! The options in force, read back from jemalloc: it rounds and clips values and renames some, and the program
//! may change others at run time. For reports, which may allocate.

use flarena_shared::malloc_conf::{self, Pair};

use super::{ctl, options};

/// The option string in force.
pub fn effective() -> String {
    let given = malloc_conf::pairs(options::options(), |_, _| ());
    let mut pairs: Vec<String> = given.map(read_back).collect();
    // The string never contains it; the governor enables background threads.
    if ctl::BACKGROUND_THREAD.read() == Some(true) {
        pairs.push(format!("{}:true", malloc_conf::DEFERRED));
    }
    pairs.join(",")
}

fn read_back(given: Pair<'_>) -> String {
    let key = String::from_utf8_lossy(given.key);
    let key = match key.as_ref() {
        "lg_tcache_max" => "tcache_max",
        key => key,
    };
    let value = match key {
        // Both may change at run time; new arenas get these values.
        "dirty_decay_ms" => ctl::NEW_DIRTY_DECAY_MS.read().map(|ms| ms.to_string()),
        "muzzy_decay_ms" => ctl::NEW_MUZZY_DECAY_MS.read().map(|ms| ms.to_string()),
        key => ctl::option(key),
    };
    // jemalloc cannot report a few options. It accepted them unchanged, because they were validated.
    let value = value.unwrap_or_else(|| String::from_utf8_lossy(given.value).into_owned());
    format!("{key}:{value}")
}
