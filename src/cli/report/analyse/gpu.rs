//! Growth of the memory that PyTorch holds on GPUs. It is no part of the process's memory, so it has a finding of its own.

use super::fit::without_gaps;
use super::stats::{median, Estimate, Trend, TrendClass};
use crate::report::model::{Series, Size};

/// The growth per unit of the finding.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuGrowth {
    /// That of what PyTorch's caching allocator has reserved, or of the tensors if these grow inside it.
    pub slope: Estimate,
    pub reserved_grows: bool,
    /// The growth of the tensors in it.
    pub allocated: Allocated,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allocated {
    /// It grows: the program holds more.
    Grows,
    /// It grows, and the cache is level.
    GrowsInside,
    /// The cache holds more free memory.
    DoesNotGrow,
    /// Unknown, or neither is certain.
    Unclear,
}

/// The growth at a stage; `None` without growth that matters.
pub fn growth(series: &Series) -> Option<GpuGrowth> {
    let (x, sizes) = (series.positions(), without_gaps(series.points()));
    let trend = |size: Size| {
        let values: Option<Vec<f64>> = sizes.iter().map(|one| one.get(size)).collect();
        values.map(|values| Trend::of(&x, &values, median(&values)))
    };
    let [reserved, tensors] = [Size::GpuReserved, Size::GpuAllocated].map(trend);
    let is_level = |all: &Trend| all.class == TrendClass::Level && all.steps.is_empty();
    let has_room = reserved.as_ref().is_some_and(is_level);
    let reserved = reserved.filter(Trend::is_growing);
    let allocated = match (&tensors, &reserved) {
        (Some(tensors), _) if tensors.is_growing() => match has_room {
            true => Allocated::GrowsInside,
            false => Allocated::Grows,
        },
        (Some(tensors), Some(all)) if tensors.slope.high < all.slope.low => Allocated::DoesNotGrow,
        _ => Allocated::Unclear,
    };
    let reserved_grows = reserved.is_some();
    let growing = reserved.or(tensors.filter(Trend::is_growing))?;
    Some(GpuGrowth {
        slope: growing.slope,
        reserved_grows,
        allocated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};

    fn found(of: impl Fn(f64) -> [f64; 2]) -> Option<(Allocated, i64)> {
        let marker = |round: usize| {
            let [allocated, reserved] = of(round as f64);
            let of_gpu = [
                (Size::GpuAllocated, allocated),
                (Size::GpuReserved, reserved),
            ];
            sample(round, sizes(&[&[(Size::Rss, 900.0)], &of_gpu[..]].concat()))
        };
        let processes = processes((0..24).map(marker));
        let found = growth(processes[0].series("send").unwrap())?;
        Some((
            found.allocated,
            (found.slope.value / (1 << 20) as f64).round() as i64,
        ))
    }

    #[test]
    fn a_cache_that_grows_is_told_from_tensors_that_grow() {
        let cache = found(|round| [300.0, 500.0 + 12.0 * round]);
        assert_eq!(cache, Some((Allocated::DoesNotGrow, 12)));
        let tensors = found(|round| [300.0 + 12.0 * round, 500.0 + 12.0 * round]);
        assert_eq!(tensors, Some((Allocated::Grows, 12)));
        let unknown = found(|round| [f64::NAN, 500.0 + 12.0 * round]);
        assert_eq!(unknown, Some((Allocated::Unclear, 12)));
        let inside_cache = found(|round| [300.0 + 8.0 * round, 500.0]);
        assert_eq!(inside_cache, Some((Allocated::GrowsInside, 8)));
        let unknown_cache = found(|round| [300.0 + 8.0 * round, f64::NAN]);
        assert_eq!(unknown_cache, Some((Allocated::Grows, 8)));
        assert_eq!(found(|_| [300.0, 500.0]), None);
        assert_eq!(found(|_| [f64::NAN; 2]), None);
    }
}
