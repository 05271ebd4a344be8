//! Computes how much swap space this process may still use.

use crate::{proc::cgroup, proc::procfs};

/// One part in `RESERVE_PARTS` of the total swap stays free for other processes.
const RESERVE_PARTS: u64 = 10;

/// The free swap beyond the reserve, in bytes, and at most the rest of the control group's swap limit.
/// 0 without swap.
pub fn room_bytes() -> u64 {
    let mut buffer = [0; 4096];
    let text = procfs::read_file(c"/proc/meminfo", &mut buffer).unwrap_or_default();
    let room = free_bytes(text).unwrap_or(0);
    if room == 0 {
        return 0;
    }
    cgroup::swap_left_bytes().map_or(room, |left| room.min(left))
}

fn free_bytes(meminfo: &[u8]) -> Option<u64> {
    let kilobytes = |label: &[u8]| procfs::labelled_number(meminfo, label);
    let (total, free) = (kilobytes(b"SwapTotal:")?, kilobytes(b"SwapFree:")?);
    Some(free.saturating_sub(total / RESERVE_PARTS) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_total_swap_stays_reserved() {
        let text = b"MemTotal: 9 kB\nSwapTotal:  1000 kB\nSwapFree:  600 kB\n";
        assert_eq!(free_bytes(text), Some(500 << 10));
        assert_eq!(
            free_bytes(b"SwapTotal: 1000 kB\nSwapFree: 90 kB\n"),
            Some(0)
        );
        assert_eq!(free_bytes(b"MemTotal: 9 kB\n"), None);
    }
}
