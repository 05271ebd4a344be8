//! Sentences about growth of PyTorch's memory on GPUs.

use super::phrases::rate_per;
use crate::report::analyse::{Allocated, GpuGrowth};
use crate::report::units::{printable, Amount};

/// `GPU memory grows by 12.0 MB/round (95 % interval: 11.8 to 12.2 MB) at stage send: PyTorch's cache has reserved more, and the
/// tensors in it do not grow.`
pub fn sentence(growth: &GpuGrowth) -> String {
    let rate = rate_per(&growth.reserved, growth.unit.name(), Amount::Size);
    let part = match growth.allocated {
        Allocated::Grows => "the program holds more in tensors",
        Allocated::DoesNotGrow => {
            "PyTorch's cache has reserved more, and the tensors in it do not grow as fast"
        }
        Allocated::Unclear => "PyTorch's cache has reserved more",
    };
    let stage = printable(&growth.stage);
    format!("GPU memory grows by {rate} at stage {stage}: {part}.")
}

pub fn remedy(growth: &GpuGrowth) -> &'static str {
    match growth.allocated {
        Allocated::Grows => {
            "GPU: look for tensors that are kept from round to round, such as losses that keep their graph"
        }
        Allocated::DoesNotGrow | Allocated::Unclear => {
            "GPU: set cuda_empty_cache=True in the recipe, or NVFLARE_CUDA_EMPTY_CACHE=true with \
             NVFLARE_CLIENT_MEMORY_GC_ROUNDS=1. If the cache grows again inside a round, its free memory is in pieces: \
             PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::stats::Slope;
    use crate::report::model::Unit;
    use crate::report::units::MB;

    #[test]
    fn growth_of_the_cache_has_its_rate_and_its_setting() {
        let reserved = Slope {
            per_x: 12.0 * MB,
            low: 11.0 * MB,
            high: 13.0 * MB,
        };
        let growth = GpuGrowth {
            reserved,
            allocated: Allocated::DoesNotGrow,
            unit: Unit::Round,
            stage: "send".into(),
        };
        assert_eq!(
            sentence(&growth),
            "GPU memory grows by 12.0 MB/round (95 % interval: 11.0 to 13.0 MB) at stage send: PyTorch's cache has \
             reserved more, and the tensors in it do not grow as fast."
        );
        assert!(remedy(&growth).contains("cuda_empty_cache=True"));
    }
}
