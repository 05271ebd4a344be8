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
        "slab_sizes" => slab_sizes(given.value),
        key => ctl::option(key),
    };
    // jemalloc cannot report a few options. It accepted them unchanged, because they were validated.
    let value = value.unwrap_or_else(|| String::from_utf8_lossy(given.value).into_owned());
    format!("{key}:{value}")
}

/// The slab sizes in force for the requested block sizes.
fn slab_sizes(given: &[u8]) -> Option<String> {
    let asked = std::str::from_utf8(given).ok()?;
    let page = ctl::PAGE.read()?;
    let bins: Vec<(usize, usize)> = (0..ctl::NBINS.read()?)
        .filter_map(|bin| Some((ctl::bin_size(bin)?, ctl::bin_slab_size(bin)?)))
        .collect();
    let mut slabs = Vec::new();
    for segment in asked.split('|') {
        let (first, last) = segment.split_once(':')?.0.split_once('-')?;
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        let inside = bins
            .iter()
            .filter(|(size, _)| (first..=last).contains(size));
        slabs.extend(inside.map(|(size, slab)| format!("{size}-{size}:{}", slab / page)));
    }
    Some(slabs.join("|"))
}
