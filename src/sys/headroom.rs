//! How many bytes the process may still take before the distance to its memory limits must be measured.
//!
//! Invariant: `charge` only counts, in one word, so signal handlers and forks are harmless. The library measures, and
//! calls `set`. Nothing here makes a system call.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::attention;

/// No limit is watched. Charges do not change this value.
const UNWATCHED: i64 = i64::MAX;

static LEFT: AtomicI64 = AtomicI64::new(UNWATCHED);
/// The allowance at the last `set`.
static ALLOWED: AtomicI64 = AtomicI64::new(UNWATCHED);

/// Counts memory that the program is about to touch for the first time.
#[inline]
pub fn charge(bytes: u64) {
    if LEFT.load(Relaxed) != UNWATCHED {
        // Large requests that fail must not wrap the sum.
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(1 << 46);
        // After a `set(None)` in between, the lower value is still far above the memory of any machine.
        if LEFT.fetch_sub(bytes, Relaxed) <= bytes {
            attention::set(attention::HEADROOM);
        }
    }
}

/// True if `bytes` of free memory may stay resident: the remaining allowance covers them.
#[inline]
pub fn may_keep(bytes: u64) -> bool {
    i64::try_from(bytes).unwrap_or(i64::MAX) <= LEFT.load(Relaxed)
}

pub fn is_watched() -> bool {
    LEFT.load(Relaxed) != UNWATCHED
}

/// True if the next measurement is due.
pub fn is_used_up() -> bool {
    charged_bytes_if_due().is_some()
}

/// The bytes that were charged since the last `set`, if they use up the allowance. The program may not have touched
/// any of them yet, so the usage may contain none.
#[inline]
pub fn charged_bytes_if_due() -> Option<u64> {
    let left = LEFT.load(Relaxed);
    (left <= 0).then(|| ALLOWED.load(Relaxed).abs_diff(left))
}

/// The next measurement is due after this many bytes. `None`: no limit is watched.
pub fn set(bytes: Option<u64>) {
    let left = bytes.map_or(UNWATCHED, |bytes| bytes.min(1 << 60) as i64);
    ALLOWED.store(left, Relaxed);
    LEFT.store(left, Relaxed);
    if left == 0 {
        attention::set(attention::HEADROOM);
    }
    if is_watched() {
        attention::set(attention::WATCHED);
    }
}

/// The next measurement is due after `bytes` more. Unlike after `set`, the charges so far still count. The caller
/// excludes a `set` at the same time.
pub fn defer(bytes: u64) {
    let left = LEFT.load(Relaxed);
    if left != UNWATCHED {
        let more = bytes.min(1 << 60) as i64 - left;
        ALLOWED.fetch_add(more, Relaxed);
        LEFT.fetch_add(more, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurement_is_due_for_all_charged_bytes_when_they_use_up_the_allowance() {
        charge(u64::MAX);
        assert_eq!(charged_bytes_if_due(), None, "no limit is watched");
        set(Some(100));
        charge(99);
        assert_eq!(charged_bytes_if_due(), None);
        assert!(may_keep(1) && !may_keep(2));
        charge(8);
        assert_eq!(charged_bytes_if_due(), Some(107));
        defer(10);
        assert_eq!(charged_bytes_if_due(), None);
        charge(10);
        assert_eq!(charged_bytes_if_due(), Some(117), "all since the last set");
        set(Some(u64::MAX));
        charge(u64::MAX);
        assert_eq!(charged_bytes_if_due(), None);
        set(None);
        defer(0);
        charge(1);
        assert_eq!(charged_bytes_if_due(), None);
        assert!(may_keep(u64::MAX), "no limit is watched");
    }
}
