//! A pool beside malloc that holds most of what grows outside of it.

use crate::report::finding::{Finding, Holder, Parts};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    Pymalloc,
    Arrow,
    Pinned,
}

impl Pool {
    /// Where memory outside of malloc grows most, and one pool has at least half of that.
    pub fn of(finding: &Finding) -> Option<Pool> {
        let first = finding.causes.first()?;
        (first.holder == Holder::Outside).then(|| Pool::most_of(&finding.parts))?
    }

    fn most_of(parts: &Parts) -> Option<Pool> {
        let growth = [
            (Pool::Pymalloc, parts.pymalloc),
            (Pool::Arrow, parts.arrow),
            (Pool::Pinned, parts.pinned),
        ];
        let known = growth.into_iter().filter(|(_, bytes)| !bytes.is_nan());
        let (pool, bytes) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (bytes >= 0.5 * parts.other).then_some(pool)
    }

    /// Completes "memory outside of malloc 80 % (...)".
    pub fn name(self) -> &'static str {
        match self {
            Pool::Pymalloc => "small Python objects",
            Pool::Arrow => "Apache Arrow's pool",
            Pool::Pinned => "memory pinned for the GPU",
        }
    }

    pub fn remedy(self) -> &'static str {
        match self {
            Pool::Pymalloc => {
                "look for a list, cache or history of small Python objects that gains entries each time; \
                 Python's tracemalloc names the line"
            }
            Pool::Arrow => {
                "look for Arrow tables or batches that are kept; ARROW_DEFAULT_MEMORY_POOL=system, as flarena run \
                 sets it, lets `flarena run --sites` name the line"
            }
            Pool::Pinned => {
                "call flarena.trim() at the end of each round, which empties PyTorch's cache of pinned memory; if it \
                 grows all the same, look for pinned tensors that are kept"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::report::evidence;
    use crate::report::judge::judge;
    use crate::report::model::{Place, Sample, Size, Store};

    const MB: f64 = 1024.0 * 1024.0;

    /// Sentence and remedy of a process that grows outside of malloc, a part of it in this pool.
    fn said(pool: Option<Size>, share: f64) -> (String, String) {
        let mut store = Store::default();
        for round in 0..24 {
            let grown = 10.0 * MB * round as f64;
            let mut sample = Sample::of_round(round);
            let sizes = [
                (Size::Rss, 300.0 * MB + grown),
                (Size::Anon, 300.0 * MB + grown),
                (Size::Live, 100.0 * MB),
                (Size::Retained, 0.0),
                (Size::Recycled, 0.0),
                (Size::File, 0.0),
                (Size::Shmem, 0.0),
                (Size::Swap, 0.0),
                (Size::Pymalloc, MB),
            ];
            for (size, bytes) in sizes {
                sample.sizes[size] = bytes;
            }
            if let Some(pool) = pool {
                sample.sizes[pool] = 50.0 * MB + share * grown;
            }
            store.add(&sample, &Place::ANY);
        }
        let process = store.finish().0.remove(0);
        let finding = judge(&process).unwrap().0;
        let remedy = evidence::remedy(&process, &finding).unwrap();
        (evidence::sentence(&process, &finding), remedy)
    }

    #[test]
    fn the_pool_that_grows_is_named_and_so_is_its_remedy() {
        for (size, name, remedy) in [
            (Size::Pymalloc, "small Python objects).", "tracemalloc"),
            (Size::Arrow, "Arrow's pool).", "ARROW_DEFAULT_MEMORY_POOL"),
            (Size::Pinned, "pinned for the GPU).", "flarena.trim()"),
        ] {
            let (sentence, advice) = said(Some(size), 0.8);
            assert!(sentence.contains(name), "{sentence}");
            assert!(advice.contains(remedy), "{advice}");
        }
    }

    #[test]
    fn a_pool_with_a_small_part_of_the_growth_is_not_blamed() {
        for (pool, share) in [(None, 0.0), (Some(Size::Arrow), 0.3)] {
            let (sentence, advice) = said(pool, share);
            assert!(
                sentence.contains("small Python objects, pinned or mapped buffers"),
                "{sentence}"
            );
            assert!(advice.contains("--sites"), "{advice}");
        }
    }
}
