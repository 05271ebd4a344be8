//! A pool beside malloc that holds most of what grows outside of it.

use crate::report::analyse::finding::{Finding, Holder};

pub struct Pool {
    /// Completes "memory outside of malloc 80 % (...)".
    pub name: &'static str,
    pub remedy: &'static str,
}

const PYMALLOC: Pool = Pool {
    name: "small Python objects",
    remedy:
        "look for a list, cache or history of small Python objects that gains entries each time; \
             Python's tracemalloc names the line",
};
const ARROW: Pool = Pool {
    name: "Apache Arrow's pool",
    remedy: "look for Arrow tables or batches that are kept; ARROW_DEFAULT_MEMORY_POOL=system, as flarena run \
             sets it, lets `flarena run --sites` name the line",
};
const PINNED: Pool = Pool {
    name: "memory pinned for the GPU",
    remedy: "call flarena.trim() at the end of each round, which empties PyTorch's cache of pinned memory; if it \
             grows all the same, look for pinned tensors that are kept",
};

impl Pool {
    /// Where memory outside of malloc grows most, and one pool has at least half of that.
    pub fn of(finding: &Finding) -> Option<Pool> {
        let parts = &finding.parts;
        let growth = [
            (PYMALLOC, parts.pymalloc),
            (ARROW, parts.arrow),
            (PINNED, parts.pinned),
        ];
        let known = growth.into_iter().filter(|(_, bytes)| !bytes.is_nan());
        let (pool, bytes) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let is_outside = finding.causes.first()?.holder == Holder::Outside;
        (is_outside && bytes >= 0.5 * parts.other).then_some(pool)
    }
}

#[cfg(test)]
mod tests {
    use crate::report::analyse::fixtures::{judged, sample, sizes};
    use crate::report::explain;
    use crate::report::model::Size;
    use crate::report::units::MB;

    /// Sentence and remedy of a process that grows outside of malloc, a part of it in this pool.
    fn said(pool: Option<Size>, share: f64) -> (String, String) {
        let marker = |round: usize| {
            let grown = 10.0 * round as f64;
            let mut sizes = sizes(&[
                (Size::Rss, 300.0 + grown),
                (Size::Anon, 300.0 + grown),
                (Size::Live, 100.0),
                (Size::Retained, 0.0),
                (Size::Recycled, 0.0),
                (Size::File, 0.0),
                (Size::Shmem, 0.0),
                (Size::Swap, 0.0),
                (Size::Pymalloc, 1.0),
            ]);
            if let Some(pool) = pool {
                sizes[pool] = (50.0 + share * grown) * MB;
            }
            sample(round, sizes)
        };
        let (process, finding) = judged((0..24).map(marker));
        let remedy = explain::remedy(&process, &finding).unwrap();
        (explain::sentence(&process, &finding), remedy)
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
            let all = "small Python objects, pinned or mapped buffers";
            assert!(sentence.contains(all), "{sentence}");
            assert!(advice.contains("--sites"), "{advice}");
        }
    }
}
