//! What full garbage collections released, as the markers tell.

use super::order::Order;
use super::sample::{Sample, Size};

/// One marker that followed a collection, or several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collected {
    pub order: Order,
    pub released: f64,
    /// Live memory after it; NaN: not known.
    pub live_after: f64,
}

/// The collections of one process, in the order of its markers.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    each: Vec<Collected>,
    /// Those that released something, beyond the ones that are kept, too.
    pub count: u64,
    pub released: f64,
    pub ms: f64,
}

/// Thins out what has grown too long, from the first on.
pub fn every_second() -> impl FnMut() -> bool {
    let mut keep = false;
    move || {
        keep = !keep;
        keep
    }
}

/// Enough to see a shape; a long run keeps every second one, again and again.
const MOST: usize = 512;

impl Collections {
    pub fn add(&mut self, sample: &Sample, order: Order) {
        if sample.gc_ms > 0.0 {
            self.ms += sample.gc_ms;
        }
        // Also false for what is not known.
        if sample.gc_released > 0.0 {
            self.count += 1;
            self.released += sample.gc_released;
            self.each.push(Collected {
                order,
                released: sample.gc_released,
                live_after: sample.sizes[Size::Live],
            });
            if self.each.len() > MOST {
                let mut keep = every_second();
                self.each.retain(|_| keep());
            }
        }
    }

    /// Those that released at least this much.
    pub fn of_at_least(&self, bytes: f64) -> Vec<Collected> {
        let kept = self.each.iter().filter(|each| each.released >= bytes);
        kept.copied().collect()
    }
}
