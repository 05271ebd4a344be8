//! Attributes the growth of a process to kinds of memory.

use super::finding::{Cause, GrowthParts, MemoryKind};
use super::stats::{median, Step, Trend};
use crate::report::model::{Size, Sizes};

/// A sum of sizes, if it is known.
type Value<'a> = &'a dyn Fn(&Sizes) -> Option<f64>;

/// The growth of each part, over the rounds that the trend of the footprint covers.
pub fn growth_parts(trend: &Trend, sizes: &[Sizes]) -> GrowthParts {
    parts(|value| {
        let values: Option<Vec<f64>> = sizes.iter().map(value).collect();
        Some(trend.slope_of(&values?))
    })
}

/// The change of each part at a step: the medians of some samples after it and before it. If the judged size does not change
/// by half the height in these, the change is not that of the step, and the parts are unknown. A fall has the parts of
/// the opposite change.
pub fn step_parts(step: &Step, sizes: &[Sizes], judged: Value) -> GrowthParts {
    const SAMPLES: usize = 5;
    let index = step.index;
    let median_of = |sizes: &[Sizes], value: Value| {
        let values: Option<Vec<f64>> = sizes.iter().map(value).collect();
        Some(median(&values?))
    };
    let change = |value: Value| {
        let before = &sizes[index.saturating_sub(SAMPLES)..index];
        let after = &sizes[index..(index + SAMPLES).min(sizes.len())];
        Some(median_of(after, value)? - median_of(before, value)?)
    };
    let shown = change(judged).filter(|change| change / step.height >= 0.5);
    parts(|value| Some(step.height.signum() * shown.and(change(value))?))
}

/// The parts of a change, from the change of a sum of sizes.
fn parts(growth: impl Fn(Value) -> Option<f64>) -> GrowthParts {
    let growth_of = |size: Size| growth(&move |sizes: &Sizes| sizes.get(size));
    let (live, file_backed) = (growth_of(Size::Live), growth(&Sizes::file_backed));
    let footprint = growth(&|sizes| Some(sizes.footprint())).unwrap_or(0.0);
    let rest = footprint - live.unwrap_or(0.0) - file_backed.unwrap_or(0.0);
    let kept_free = growth(&Sizes::kept_free);
    let retained = growth(&|sizes| Some(sizes.kept_free()? - sizes.cached()));
    // If the markers lack retained and cached memory, all memory that is neither live nor
    // file-backed counts as kept by malloc.
    let all_kept = live.and(Some(rest)).filter(|_| kept_free.is_none());
    GrowthParts {
        live,
        kept_free: kept_free.or(all_kept),
        retained: retained.or(all_kept),
        recycled: growth_of(Size::Recycled),
        file: growth_of(Size::File),
        shmem: growth(&|sizes| Some(sizes.get(Size::Shmem)? - sizes.pinned_shared())),
        swap: growth_of(Size::Swap),
        outside_malloc: rest - kept_free.or(all_kept).unwrap_or(0.0),
        pymalloc: growth_of(Size::Pymalloc),
        arrow: growth_of(Size::Arrow),
        pinned: growth(&|sizes| Some(sizes.pinned_shared())),
    }
}

/// The shares of the parts that grow, the largest first. Parts that shrink are left out.
pub fn causes(parts: &GrowthParts) -> Vec<Cause> {
    let rest = match () {
        // No other part contains swapped pages. The rest is swap if swap makes up half of it.
        () if parts.swap.unwrap_or(0.0) >= 0.5 * parts.outside_malloc => MemoryKind::Swap,
        () if parts.live.is_none() => MemoryKind::Unknown,
        () => MemoryKind::OutsideMalloc,
    };
    let gains = [
        (MemoryKind::Pinned, parts.pinned),
        (MemoryKind::Live, parts.live),
        (MemoryKind::KeptFree, parts.retained),
        (MemoryKind::File, parts.file),
        (MemoryKind::Shmem, parts.shmem),
        (rest, Some(parts.outside_malloc)),
    ];
    let known = gains.into_iter();
    let known = known.filter_map(|(kind, bytes)| Some((kind, bytes?)));
    let gains = known.filter(|(_, bytes)| *bytes > 0.0);
    let total: f64 = gains.clone().map(|(_, bytes)| bytes).sum();
    let cause = |(kind, bytes): (MemoryKind, f64)| Cause {
        kind,
        share: bytes / total,
    };
    let mut causes: Vec<Cause> = gains.map(cause).collect();
    causes.sort_by(|a, b| b.share.total_cmp(&a.share));
    causes
}

/// The median of each size.
pub fn median_sizes<'a>(all: impl Iterator<Item = &'a Sizes> + Clone) -> Sizes {
    let mut medians = Sizes::default();
    for (size, _) in Size::FIELDS {
        let known: Vec<f64> = all.clone().filter_map(|sizes| sizes.get(*size)).collect();
        medians.set(*size, (!known.is_empty()).then(|| median(&known)));
    }
    medians
}
