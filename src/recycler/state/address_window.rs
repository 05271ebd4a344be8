//! The address window: a range of addresses for the recycler's mappings, far below the addresses
//! that the kernel selects itself.
//!
//! In the window, adjacent mappings stay adjacent, and no other code maps a hole that the recycler
//! leaves. Only `ops::reserve` changes the window, under the lock of the state.

use crate::core::unit::Extent;
use std::ops::Range;

/// The window starts `DISTANCE` below other mappings and is `BYTES` long.
const DISTANCE: usize = 8 << 40;
const BYTES: usize = DISTANCE / 4 * 3;
/// The start is a multiple of this. If the next addresses are taken, the window skips this many
/// bytes.
const STEP: usize = 64 << 30;

pub struct AddressWindow {
    /// The kernel returns these addresses only on request, so the recycler may map a hole in them
    /// again. Outside, another thread may have mapped the hole.
    addresses: Range<usize>,
    /// The address for the next mapping. 0: the kernel selects it.
    hint: usize,
    /// True after the first call of `hint`.
    was_requested: bool,
}

impl AddressWindow {
    pub const fn new() -> Self {
        AddressWindow {
            addresses: 0..0,
            hint: 0,
            was_requested: false,
        }
    }

    /// The start of a window, given an address that the kernel selected. `None`: there is no room.
    pub fn place(usual: usize) -> Option<usize> {
        (usual > 2 * DISTANCE).then(|| (usual - DISTANCE) / STEP * STEP)
    }

    /// The address to request for the next mapping. 0: the kernel selects it. `None` for the first
    /// caller, which must open the window.
    pub fn hint(&mut self) -> Option<usize> {
        std::mem::replace(&mut self.was_requested, true).then_some(self.hint)
    }

    pub fn open(&mut self, start: usize) {
        self.addresses = start..start + BYTES;
        self.hint = start;
    }

    /// Advances the window after a mapping that was requested at `hint` and placed at `start`.
    pub fn advance(&mut self, hint: usize, start: usize, bytes: usize) {
        if hint == 0 {
            return;
        }
        let next = if start == hint {
            start + bytes
        } else if hint == self.hint {
            hint + STEP
        } else {
            // Another thread requested the same addresses, got them and advanced the window.
            return;
        };
        // At the end of the window this hint is refused, so the kernel selects the address.
        self.hint = if self.addresses.contains(&(next + bytes)) {
            next
        } else {
            hint
        };
    }

    pub fn holds(&self, extent: Extent) -> bool {
        self.addresses.contains(&extent.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::unit::id_of;

    const USUAL: usize = 0x7f12_3456_7000;
    const MIB: usize = 1 << 20;

    fn opened() -> (AddressWindow, usize) {
        let start = AddressWindow::place(USUAL).expect("there is room");
        let mut window = AddressWindow::new();
        assert_eq!(window.hint(), None);
        window.open(start);
        assert_eq!(window.hint(), Some(start));
        (window, start)
    }

    #[test]
    fn the_window_ends_two_tebibytes_below_other_mappings() {
        let (window, start) = opened();
        let end = window.addresses.end;
        assert_eq!(start % STEP, 0);
        assert!(start + DISTANCE <= USUAL && USUAL < start + DISTANCE + STEP);
        assert_eq!(end - start, 6 << 40);
        assert_eq!(AddressWindow::place(2 * DISTANCE), None);
        let at = |address| Extent::unit(id_of(address));
        assert!(window.holds(at(start)) && window.holds(at(end - 2 * MIB)));
        assert!(!window.holds(at(start - 2 * MIB)) && !window.holds(at(end)));
    }

    #[test]
    fn mappings_are_adjacent_and_skip_taken_addresses() {
        let (mut window, start) = opened();
        window.advance(start, start, 4 * MIB);
        assert_eq!(window.hint(), Some(start + 4 * MIB));
        window.advance(start + 4 * MIB, USUAL, 4 * MIB);
        assert_eq!(window.hint(), Some(start + 4 * MIB + STEP));
    }

    #[test]
    fn no_addresses_are_skipped_for_a_thread_that_requested_those_of_another() {
        let (mut window, start) = opened();
        for (placed, loser_comes_first) in [(start, false), (start + 2 * MIB, true)] {
            let hint = window.hint().expect("the window is open");
            assert_eq!(hint, placed);
            if loser_comes_first {
                window.advance(hint, USUAL, 2 * MIB);
            }
            window.advance(hint, hint, 2 * MIB);
            if !loser_comes_first {
                window.advance(hint, USUAL, 2 * MIB);
            }
            assert_eq!(window.hint(), Some(hint + 2 * MIB));
        }
    }

    #[test]
    fn without_a_window_or_at_its_end_the_kernel_selects_the_address() {
        let mut none = AddressWindow::new();
        none.advance(0, USUAL, 4 * MIB);
        assert_eq!((none.hint(), none.hint()), (None, Some(0)));
        let (mut window, _) = opened();
        let last = window.addresses.end - 4 * MIB;
        window.advance(last, last, 4 * MIB);
        assert_eq!(
            window.hint(),
            Some(last),
            "the window is full: the kernel selects the next address"
        );
    }
}
