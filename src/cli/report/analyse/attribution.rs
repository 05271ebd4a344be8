//! Attributes the growth of a process to kinds of memory.

use super::finding::{Cause, GrowthParts, MemoryKind};
use super::stats::{median, Step, Trend};
use crate::report::model::{or_zero, Size, Sizes};

/// The growth of each part, over the rounds that the trend of the footprint covers.
pub fn growth_parts(trend: &Trend, sizes: &[Sizes]) -> GrowthParts {
    parts(|value| {
        let values: Vec<f64> = sizes.iter().map(value).collect();
        match values.iter().any(|v| v.is_nan()) {
            true => f64::NAN,
            false => trend.slope_of(&values),
        }
    })
}

/// The change of each part at a step: the medians of some samples after it and before it. If the judged size does not change
/// by half the height in these, the change is not that of the step, and the parts are unknown.
pub fn step_parts(step: &Step, sizes: &[Sizes], judged: impl Fn(&Sizes) -> f64) -> GrowthParts {
    let index = step.index;
    let median_of = |sizes: &[Sizes], value: &dyn Fn(&Sizes) -> f64| {
        median(&sizes.iter().map(value).collect::<Vec<_>>())
    };
    let change = |samples: usize, value: &dyn Fn(&Sizes) -> f64| {
        let before = &sizes[index.saturating_sub(samples)..index];
        let after = &sizes[index..(index + samples).min(sizes.len())];
        median_of(after, value) - median_of(before, value)
    };
    let shows_step = |samples: &usize| change(*samples, &judged) / step.height >= 0.5;
    match [5, 1].into_iter().find(shows_step) {
        Some(samples) => parts(|value| change(samples, value)),
        None => parts(|_| f64::NAN),
    }
}

/// The parts of a change, from the change of a sum of sizes.
fn parts(growth: impl Fn(&dyn Fn(&Sizes) -> f64) -> f64) -> GrowthParts {
    let growth_of = |size: Size| growth(&move |sizes: &Sizes| sizes[size]);
    let (live, file_backed) = (growth_of(Size::Live), growth(&Sizes::file_backed));
    let footprint = growth(&Sizes::footprint);
    let rest = footprint - or_zero(live) - or_zero(file_backed);
    // If the markers lack retained and cached memory, all memory that is neither live nor
    // file-backed counts as kept by malloc.
    let (kept_free, retained) = match growth(&Sizes::kept_free) {
        unknown if unknown.is_nan() && !live.is_nan() => (rest, rest),
        known => (known, growth(&|sizes| sizes.kept_free() - sizes.cached())),
    };
    GrowthParts {
        live,
        kept_free,
        retained,
        recycled: growth_of(Size::Recycled),
        file: growth_of(Size::File),
        shmem: growth(&|sizes| sizes[Size::Shmem] - sizes.pinned_shared()),
        swap: growth(&|sizes| sizes[Size::Swap]),
        outside_malloc: rest - or_zero(kept_free),
        pymalloc: growth_of(Size::Pymalloc),
        arrow: growth_of(Size::Arrow),
        pinned: growth(&Sizes::pinned_shared),
    }
}

/// The shares of the parts that grow, the largest first. Parts that shrink are left out.
pub fn causes(parts: &GrowthParts) -> Vec<Cause> {
    let rest = match () {
        // No other part contains swapped pages. The rest is swap if swap makes up half of it.
        () if or_zero(parts.swap) >= 0.5 * parts.outside_malloc => MemoryKind::Swap,
        () if parts.live.is_nan() => MemoryKind::Unknown,
        () => MemoryKind::OutsideMalloc,
    };
    let gains = [
        (MemoryKind::Pinned, parts.pinned),
        (MemoryKind::Live, parts.live),
        (MemoryKind::KeptFree, parts.retained),
        (MemoryKind::File, parts.file),
        (MemoryKind::Shmem, parts.shmem),
        (rest, parts.outside_malloc),
    ];
    let gains = gains.into_iter().filter(|(_, bytes)| *bytes > 0.0);
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
    let mut medians = Sizes::UNKNOWN;
    for (i, size) in medians.0.iter_mut().enumerate() {
        *size = median(&all.clone().map(|sizes| sizes.0[i]).collect::<Vec<_>>());
    }
    medians
}
