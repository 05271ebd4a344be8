//! Reads clocks. `clock` has the function for callers that must not reach another library's `clock_gettime`.

use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

/// Called once by the constructor. The first reading looks up functions of the kernel in the loader, and may change errno,
/// which malloc must do neither of.
pub fn configure() {
    now(ClockId::Monotonic);
}

/// CPU time of all threads of the process so far, user and system. Unlike other clocks it needs a
/// system call.
pub fn process_cpu_ms() -> u64 {
    now(ClockId::ProcessCPUTime).as_millis() as u64
}

/// The time of a clock since its start.
pub fn now(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub fn now_us(clock: ClockId) -> u64 {
    now(clock).as_micros() as u64
}
