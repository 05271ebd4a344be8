//! Texts about allocation sites that `flarena who` and `flarena report` share.

use crate::units::bytes;

/// `77.2 MB are in blocks below ...`, without an end
pub fn unrecorded_small_blocks(count: u64) -> String {
    format!(
        "{} are in blocks below `FLARENA_RECYCLE_MIN` (512 KB by default), which \
         `FLARENA_SITES_SAMPLE=off` does not record",
        bytes(count)
    )
}

pub fn lost_samples(count: u64) -> String {
    format!("{count} samples found no room in the table: the figures of small blocks are too low")
}

/// `± 1.20 MB`, or `-` for an exact value.
pub fn standard_error(error: u64) -> String {
    match error {
        0 => "-".to_owned(),
        error => format!("± {}", bytes(error)),
    }
}
