//! Who holds what a process gains: the parts of its growth, and their shares.

use crate::report::analyse::finding::{Cause, Holder, Parts};
use crate::report::analyse::stats::{median, Trend};
use crate::report::model::{or_zero, Size, Sizes};

/// The growth of each part, over the rounds that the trend of the whole compares.
pub fn parts(trend: &Trend, x: &[f64], sizes: &[Sizes]) -> Parts {
    let growth = |of: &dyn Fn(&Sizes) -> f64| {
        let values: Vec<f64> = sizes.iter().map(of).collect();
        match values.iter().any(|v| v.is_nan()) {
            true => f64::NAN,
            false => trend.slope_of(x, &values),
        }
    };
    let one = |size: Size| growth(&|sizes| sizes[size]);
    let (live, file_backed) = (one(Size::Live), growth(&Sizes::file_backed));
    let all = growth(&Sizes::footprint);
    let rest = all - or_zero(live) - or_zero(file_backed);
    // What is neither live nor in files nor known to be held back, malloc holds back.
    let held_back = match growth(&Sizes::held_back) {
        unknown if unknown.is_nan() && !live.is_nan() => rest,
        held_back => held_back,
    };
    Parts {
        live,
        held_back,
        recycled: one(Size::Recycled),
        file: one(Size::File),
        shmem: one(Size::Shmem),
        swap: growth(&Sizes::pushed_out),
        other: rest - or_zero(held_back),
        pymalloc: one(Size::Pymalloc),
        arrow: one(Size::Arrow),
        pinned: one(Size::Pinned),
    }
}

/// Shares of what grows, the largest first. What shrinks meanwhile is no cause.
pub fn causes(parts: &Parts) -> Vec<Cause> {
    let rest = match () {
        // Swapped pages are the program's, as far as anybody knows.
        () if or_zero(parts.swap) >= 0.5 * parts.other => Holder::Swap,
        () if parts.live.is_nan() => Holder::Unknown,
        () => Holder::Outside,
    };
    let gains = [
        (Holder::Live, parts.live),
        (Holder::HeldBack, parts.held_back),
        (Holder::File, parts.file),
        (Holder::Shmem, parts.shmem),
        (rest, parts.other),
    ];
    let gains = gains.into_iter().filter(|(_, bytes)| *bytes > 0.0);
    let all: f64 = gains.clone().map(|(_, bytes)| bytes).sum();
    let mut causes: Vec<Cause> = gains
        .map(|(holder, bytes)| Cause {
            holder,
            share: bytes / all,
        })
        .collect();
    causes.sort_by(|a, b| b.share.total_cmp(&a.share));
    causes
}

/// The median of each size.
pub fn typical<'a>(all: impl Iterator<Item = &'a Sizes> + Clone) -> Sizes {
    let mut typical = Sizes::UNKNOWN;
    for (i, size) in typical.0.iter_mut().enumerate() {
        *size = median(&all.clone().map(|sizes| sizes.0[i]).collect::<Vec<_>>());
    }
    typical
}
