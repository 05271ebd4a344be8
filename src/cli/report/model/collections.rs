//! The full garbage collections of one process, as its markers report them.

use super::order::Order;
use super::sample::Sample;

/// The collections since the previous marker, as one marker reports them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collection {
    pub order: Order,
    pub released: f64,
    /// The least memory in large blocks right after them; NaN if unknown.
    pub live_after: f64,
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

/// A predicate for `retain` that keeps the first, third, ... item.
pub fn every_second() -> impl FnMut() -> bool {
    let mut keep = false;
    move || {
        keep = !keep;
        keep
    }
}

/// If more are kept, every second one is dropped. The shape over time stays visible.
const MAX_KEPT: usize = 512;

impl Collections {
    pub fn add(&mut self, sample: &Sample, order: Order) {
        let released = sample.gc_released.unwrap_or(0.0);
        self.ms += sample.gc_ms.unwrap_or(0.0);
        self.released += released;
        self.count += u64::from(released > 0.0);
        if released > 0.0 || sample.gc_live_after.is_some() {
            self.kept.push(Collection {
                order,
                released,
                live_after: sample.gc_live_after.unwrap_or(f64::NAN),
            });
            if self.kept.len() > MAX_KEPT {
                let mut keep = every_second();
                self.kept.retain(|_| keep());
            }
        }
    }

    /// The collections that released at least `bytes`.
    pub fn releasing_at_least(&self, bytes: f64) -> Vec<Collection> {
        let kept = self.kept.iter();
        kept.filter(|one| one.released >= bytes).copied().collect()
    }
}
