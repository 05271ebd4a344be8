//! What src/sys/sync/primitives.rs takes from the machine, by loom.

use std::sync::OnceLock;

use loom::sync::{Condvar, Mutex};

pub use std::sync::atomic::Ordering;

// One look more or less makes no new order, and each makes a run longer.
pub const SPINS: u32 = 1;
pub const MAX_FORK_CHECKS: u32 = 1;

pub fn spin_loop() {
    loom::thread::yield_now();
}

pub fn yield_now() {
    loom::thread::yield_now();
}

/// An atomic that a constant can hold: loom's are made at first use.
macro_rules! atomic {
    ($name:ident, $number:ty) => {
        pub struct $name {
            first: $number,
            made: OnceLock<loom::sync::atomic::$name>,
            sleepers: OnceLock<(Mutex<()>, Condvar)>,
        }

        impl $name {
            pub const fn new(first: $number) -> Self {
                Self {
                    first,
                    made: OnceLock::new(),
                    sleepers: OnceLock::new(),
                }
            }

            fn made(&self) -> &loom::sync::atomic::$name {
                self.sleepers
                    .get_or_init(|| (Mutex::new(()), Condvar::new()));
                self.made
                    .get_or_init(|| loom::sync::atomic::$name::new(self.first))
            }

            pub fn load(&self, order: Ordering) -> $number {
                self.made().load(order)
            }

            pub fn store(&self, value: $number, order: Ordering) {
                self.made().store(value, order);
            }

            pub fn swap(&self, value: $number, order: Ordering) -> $number {
                self.made().swap(value, order)
            }

            pub fn fetch_or(&self, value: $number, order: Ordering) -> $number {
                self.made().fetch_or(value, order)
            }

            pub fn fetch_and(&self, value: $number, order: Ordering) -> $number {
                self.made().fetch_and(value, order)
            }

            pub fn compare_exchange(
                &self,
                from: $number,
                to: $number,
                done: Ordering,
                failed: Ordering,
            ) -> Result<$number, $number> {
                self.made().compare_exchange(from, to, done, failed)
            }
        }
    };
}

atomic!(AtomicU64, u64);
atomic!(AtomicU8, u8);

/// The kernel compares and goes to sleep under a lock of its own, which whoever wakes takes, too.
pub fn wait(word: &AtomicU64, value: u64) {
    word.made();
    let (lock, sleepers) = word.sleepers.get().expect("just made");
    let awake = lock.lock().expect("nobody panics with it");
    if word.load(Ordering::SeqCst) as u32 == value as u32 {
        drop(sleepers.wait(awake));
    }
}

pub fn wake_one(word: &AtomicU64) {
    let (lock, sleepers) = word.sleepers.get().expect("somebody sleeps");
    let _awake = lock.lock().expect("nobody panics with it");
    sleepers.notify_one();
}
