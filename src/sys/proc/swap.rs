//! How much of this process could still go to swap.

use crate::{proc::cgroup, proc::procfs};

/// A part of the swap that is left to others.
const RESERVE_PARTS: u64 = 10;

/// Bytes that the system's swap has free beyond a reserve, and that the control group may still put there. 0 without swap.
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
    fn a_tenth_of_the_swap_is_left_to_others() {
        let text = b"MemTotal: 9 kB\nSwapTotal:  1000 kB\nSwapFree:  600 kB\n";
        assert_eq!(free_bytes(text), Some(500 << 10));
        assert_eq!(
            free_bytes(b"SwapTotal: 1000 kB\nSwapFree: 90 kB\n"),
            Some(0)
        );
        assert_eq!(free_bytes(b"MemTotal: 9 kB\n"), None);
    }
}
