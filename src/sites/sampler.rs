//! Chooses the small blocks that are recorded: a Poisson process over the bytes that are allocated, one hit per
//! `FLARENA_SITES_SAMPLE` bytes on average. A block is recorded if one of its bytes is hit.
//!
//! Each thread counts down the bytes to its next hit. Distances between hits are exponential and have no memory, so a
//! block of s bytes is recorded with probability 1 - exp(-s / period), whatever was allocated before it. Only the thread
//! itself, and signal handlers on it, access its state: a handler that interrupts an update can at most displace one hit.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Mean distance of two hits in bytes; 0: no small block is recorded.
static PERIOD: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// A thread that found no period asks again after so many bytes. When sites start, it may see the fast path's new targets
/// before it sees the period (arm64).
const WITHOUT_PERIOD: i64 = 1 << 30;

/// The state of a thread, zero at its start. `abi::counted` counts down `left` in assembly, so it is the first field.
#[repr(C)]
pub struct Countdown {
    /// Bytes to the next hit. Negative from the assembly's subtraction to `count_again`.
    left: AtomicI64,
    /// The state of the random numbers; 0: the thread has drawn none.
    random: AtomicU64,
}

pub fn configure(period: u64) {
    PERIOD.store(period, Relaxed);
}

/// `None` if small blocks are not recorded.
pub fn period() -> Option<u64> {
    Some(PERIOD.load(Relaxed)).filter(|period| *period > 0)
}

/// Counts the bytes of a block. True if one of them is hit.
#[inline]
pub fn count(bytes: usize) -> bool {
    with_countdown(|countdown| countdown.count(bytes))
}

/// As [`count`], after assembly has subtracted the bytes.
pub fn count_again(bytes: usize) -> bool {
    with_countdown(|countdown| countdown.count_again(bytes))
}

impl Countdown {
    #[cfg(any(test, miri))]
    const fn new() -> Countdown {
        Countdown {
            left: AtomicI64::new(0),
            random: AtomicU64::new(0),
        }
    }

    #[inline]
    fn count(&self, bytes: usize) -> bool {
        let (left, bytes) = (self.left.load(Relaxed), bytes as i64);
        if left >= bytes {
            self.left.store(left - bytes, Relaxed);
            return false;
        }
        self.draw_and_count(bytes)
    }

    fn count_again(&self, bytes: usize) -> bool {
        let left = self.left.load(Relaxed).wrapping_add(bytes as i64);
        self.left.store(left, Relaxed);
        self.count(bytes)
    }

    #[cold]
    fn draw_and_count(&self, bytes: i64) -> bool {
        let Some(period) = period() else {
            self.left.store(WITHOUT_PERIOD, Relaxed);
            return false;
        };
        if self.random.load(Relaxed) != 0 {
            self.left.store(self.draw(period), Relaxed);
            return true;
        }
        // The thread's first block: it had no distance yet.
        let seed = SEED.fetch_add(GOLDEN, Relaxed) ^ (std::ptr::from_ref(self).addr() as u64);
        self.random.store(mixed(seed) | 1, Relaxed);
        self.left.store(self.draw(period), Relaxed);
        self.count(bytes as usize)
    }

    /// A distance to the next hit.
    fn draw(&self, period: u64) -> i64 {
        let state = self.random.load(Relaxed).wrapping_add(GOLDEN);
        // 0 stands for a thread without a state.
        self.random.store(state.max(1), Relaxed);
        // Of 53 bits, from above 0 to 1.
        let uniform = ((mixed(state) >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
        (-libm::log(uniform) * period as f64) as i64
    }
}

/// The last step of SplitMix64.
fn mixed(state: u64) -> u64 {
    let one = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let two = (one ^ (one >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    two ^ (two >> 31)
}

/// The probability 1 - exp(-bytes / period) that a block of this size is recorded.
pub fn probability(bytes: usize, period: u64) -> f64 {
    -libm::expm1(-(bytes as f64 / period as f64))
}

#[cfg(miri)]
fn with_countdown<R>(work: impl FnOnce(&Countdown) -> R) -> R {
    thread_local!(static HERE: Countdown = const { Countdown::new() });
    HERE.with(work)
}

#[cfg(not(miri))]
#[inline(always)]
fn with_countdown<R>(work: impl FnOnce(&Countdown) -> R) -> R {
    // SAFETY: the variable is 16 zero bytes at the start of the thread, aligned, and lives until its end. It consists of
    // atomics, and the reference does not leave this thread.
    work(unsafe { &*here() })
}

// The variable is initial-exec: its address needs no call that may allocate.
#[cfg(not(miri))]
std::arch::global_asm!(
    ".pushsection .tbss.flarena_countdown, \"awT\", @nobits",
    ".balign 16",
    ".globl flarena_countdown",
    ".hidden flarena_countdown",
    ".type flarena_countdown, @object",
    ".size flarena_countdown, 16",
    "flarena_countdown: .zero 16",
    ".popsection",
);

#[cfg(not(miri))]
#[inline(always)]
fn here() -> *const Countdown {
    let at: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the psABI stores the thread pointer at the address that it points to, and the GOT has the distance of the
    // variable from it.
    unsafe {
        std::arch::asm!(
            "mov {at}, fs:[0]",
            "add {at}, [rip + flarena_countdown@GOTTPOFF]",
            at = out(reg) at, options(nostack, readonly, pure)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: every program may read the thread pointer, and the GOT has the distance of the variable from it.
    unsafe {
        std::arch::asm!(
            "adrp {offset}, :gottprel:flarena_countdown",
            "ldr {offset}, [{offset}, :gottprel_lo12:flarena_countdown]",
            "mrs {at}, tpidr_el0",
            "add {at}, {at}, {offset}",
            at = out(reg) at, offset = out(reg) _, options(nostack, readonly, pure, preserves_flags)
        );
    }
    std::ptr::with_exposed_provenance(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probability_has_nine_digits() {
        for bytes in [1usize, 64, 600, 100_000, 524_288, 5 << 20, 100 << 20] {
            let expected = -(-(bytes as f64) / 524_288.0).exp_m1();
            let p = probability(bytes, 524_288);
            assert!((p / expected - 1.0).abs() < 1e-9, "{bytes}: {p} {expected}");
        }
    }

    /// The sum of sizes of the recorded blocks, each divided by its probability, estimates the sum of all sizes.
    #[test]
    fn estimate_of_recorded_blocks_is_unbiased() {
        const PERIOD: u64 = 4096;
        configure(PERIOD);
        let rounds = if cfg!(miri) { 50 } else { 200_000 };
        for sizes in [&[16usize][..], &[600, 100, 3000], &[100_000, 24], &[4096]] {
            let countdown = Countdown::new();
            let (mut estimate, mut variance, mut total) = (0.0, 0.0, 0.0);
            for round in 0..rounds {
                let bytes = sizes[round % sizes.len()];
                total += bytes as f64;
                if countdown.count(bytes) {
                    let (p, bytes) = (probability(bytes, PERIOD), bytes as f64);
                    estimate += bytes / p;
                    variance += bytes * bytes * (1.0 - p) / (p * p);
                }
            }
            let error = (estimate - total).abs();
            assert!(
                error < 5.0 * variance.sqrt() + 1.0,
                "{sizes:?}: {estimate} of {total}, error {}",
                variance.sqrt()
            );
        }
    }

    #[test]
    fn handler_that_interrupts_a_hit_does_not_end_the_sampling() {
        configure(4096);
        let countdown = Countdown::new();
        countdown.count(1);
        // The assembly subtracts 16 bytes from 10, and a handler allocates before `count_again`.
        countdown.left.store(10 - 16, Relaxed);
        countdown.count(100);
        countdown.count_again(16);
        assert!((0..1000).any(|_| countdown.count(4096)));
    }
}
