//! Processes with known contents and random numbers, for tests.

use super::{findings, Finding};
use crate::report::model::{Order, Process, Size, Sizes, Store};
use crate::report::units::MB;
use flarena_shared::marker::Marker;

/// These sizes in MB; the others are unknown.
pub fn sizes(known: &[(Size, f64)]) -> Sizes {
    let mut sizes = Sizes::default();
    for (size, megabytes) in known {
        sizes.set(*size, if_known(megabytes * MB));
    }
    sizes
}

/// A number that is unknown if it is NaN.
pub fn if_known(number: f64) -> Option<f64> {
    Some(number).filter(|number| !number.is_nan())
}

/// So many megabytes; unknown if they are NaN.
pub fn bytes(megabytes: f64) -> Option<u64> {
    if_known(megabytes * MB).map(|bytes| bytes as u64)
}

/// One marker per round, all of one process and one stage, ten seconds apart.
pub fn sample(round: usize, sizes: Sizes) -> Marker {
    let mut marker = Marker {
        pid: Some(7),
        start: Some(1),
        proc: "TR".into(),
        site: Some("site-1".into()),
        round: Some(round as i64),
        stage: "send".into(),
        alloc: "glibc".into(),
        t: Some(10.0 * round as f64),
        seq: Some(round as u64),
        ..Marker::default()
    };
    for (size, field) in Size::FIELDS {
        if let Some(bytes) = sizes.get(*size) {
            marker.set(field, &(bytes as u64).to_string());
        }
    }
    marker
}

pub fn processes(markers: impl IntoIterator<Item = Marker>) -> Vec<Process> {
    let mut store = Store::default();
    for marker in markers {
        let (epoch, seq) = (0, marker.seq.unwrap_or(1));
        store.add(&marker, "x", Order { epoch, seq });
    }
    store.finish().0
}

/// Judges processes that may run, without `--limit`.
pub fn analyse(processes: Vec<Process>) -> Vec<Finding<'static>> {
    findings(processes.leak(), None, |_| true)
}

/// Judges processes that do not run any more.
pub fn analyse_ended(processes: Vec<Process>) -> Vec<Finding<'static>> {
    findings(processes.leak(), None, |_| false)
}

/// The finding for the only process of these markers.
pub fn finding_of(markers: impl IntoIterator<Item = Marker>) -> Finding<'static> {
    analyse(processes(markers)).remove(0)
}

/// Random numbers (SplitMix64). A seed gives the same numbers on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9_7F4A_7C15)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform over `from..to`.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform over `0..limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.between(0.0, 1.0) < probability
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.between(1e-300, 1.0).ln()).sqrt();
        radius * self.between(0.0, std::f64::consts::TAU).cos()
    }
}
