//! What the program has used so far: all threads but this one, the governor's.

use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

use super::hibernate::Usage;

pub fn of_program() -> Usage {
    Usage {
        cpu: cpu_time(),
        faults: major_faults(libc::RUSAGE_SELF).saturating_sub(major_faults(libc::RUSAGE_THREAD)),
    }
}

/// CPU time of the program's threads.
pub fn cpu_time() -> Duration {
    let ours = clock(ClockId::ThreadCPUTime);
    clock(ClockId::ProcessCPUTime).saturating_sub(ours)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn major_faults(whose: libc::c_int) -> u64 {
    // SAFETY: an all-zero usage is a valid one to fill, and is ours.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whose, &mut usage);
        usage.ru_majflt as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_another_thread_counts() {
        let (before, work) = (of_program().cpu, Duration::from_millis(5));
        let other = std::thread::spawn(move || {
            while clock(ClockId::ThreadCPUTime) < work {
                std::hint::spin_loop();
            }
        });
        other.join().expect("it only counts");
        // The calling thread's own microseconds between two clocks are no other's.
        assert!(of_program().cpu > before + work / 2);
    }
}
