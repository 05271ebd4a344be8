//! The full garbage collections of one process, as its markers report them.

use super::order::Order;
use flarena_shared::marker::Marker;

/// The collections since the previous marker, as one marker reports them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collection {
    pub order: Order,
    pub released: f64,
    /// The least memory in large blocks right after them.
    pub live_after: Option<f64>,
}

/// The collections of one process, in the order of its markers.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    pub kept: Vec<Collection>,
    /// All markers that reported a release, including those no longer in `kept`.
    pub count: u64,
    pub released: f64,
    pub ms: f64,
}

/// If more are kept, every second one is dropped. The shape over time stays visible.
const MAX_KEPT: usize = 512;

impl Collections {
    pub fn add(&mut self, marker: &Marker, order: Order) {
        let released = marker.gc_released_bytes.unwrap_or(0) as f64;
        self.ms += marker.gc_ms.unwrap_or(0) as f64;
        self.released += released;
        self.count += u64::from(released > 0.0);
        let one = Collection {
            order,
            released,
            live_after: marker.gc_live_after_bytes.map(|bytes| bytes as f64),
        };
        let is_known = released > 0.0 || one.live_after.is_some();
        self.kept.extend(is_known.then_some(one));
        if self.kept.len() > MAX_KEPT {
            self.kept = self.kept.iter().copied().step_by(2).collect();
        }
    }

    /// The number of kept collections that released at least `bytes`.
    pub fn releasing_at_least(&self, bytes: f64) -> usize {
        let kept = self.kept.iter();
        kept.filter(|one| one.released >= bytes).count()
    }
}
