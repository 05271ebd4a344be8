//! A window of addresses of our own, far below those that the system gives out.

use crate::core::extent::Extent;
use std::ops::Range;

/// How far below usual mappings it begins, and how much of that way it takes.
const DISTANCE: usize = 8 << 40;
const BYTES: usize = DISTANCE / 4 * 3;
/// It begins at a multiple of this; where its next addresses are taken it goes on so much further.
const STEP: usize = 64 << 30;

/// Where the next mapping goes.
pub struct AddressWindow {
    /// Addresses that the kernel gives to nobody who does not ask for them: only there a hole is ours to
    /// fill again. Elsewhere another thread may hold it already.
    addresses: Range<usize>,
    /// The next one in it; 0 where the system chooses.
    hint: usize,
    /// It is sought once, before the first mapping.
    sought: bool,
}

impl AddressWindow {
    pub const fn new() -> Self {
        AddressWindow {
            addresses: 0..0,
            hint: 0,
            sought: false,
        }
    }

    /// Where one begins, by an address of the usual kind. None: there is no room for one.
    pub fn place(usual: usize) -> Option<usize> {
        (usual > 2 * DISTANCE).then(|| (usual - DISTANCE) / STEP * STEP)
    }

    /// The address to ask for next; 0: the system chooses. None, once: the window is to be sought first.
    pub fn hint(&mut self) -> Option<usize> {
        std::mem::replace(&mut self.sought, true).then_some(self.hint)
    }

    pub fn open(&mut self, start: usize) {
        self.addresses = start..start + BYTES;
        self.hint = start;
    }

    /// A mapping that was asked for at `hint` lies at `got`.
    pub fn move_on(&mut self, hint: usize, got: usize, bytes: usize) {
        if hint == 0 {
            return;
        }
        let next = if got == hint {
            got + bytes
        } else {
            hint + STEP
        };
        // At the end of the window the system chooses, and holes are filled.
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
    fn the_window_ends_two_tebibytes_below_usual_mappings() {
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
    fn mappings_follow_each_other_and_pass_over_what_is_taken() {
        let (mut window, start) = opened();
        window.move_on(start, start, 4 * MIB);
        assert_eq!(window.hint(), Some(start + 4 * MIB));
        window.move_on(start + 4 * MIB, USUAL, 4 * MIB);
        assert_eq!(window.hint(), Some(start + 4 * MIB + STEP));
    }

    #[test]
    fn without_a_window_or_at_its_end_the_system_chooses() {
        let mut none = AddressWindow::new();
        none.move_on(0, USUAL, 4 * MIB);
        assert_eq!((none.hint(), none.hint()), (None, Some(0)));
        let (mut window, _) = opened();
        let last = window.addresses.end - 4 * MIB;
        window.move_on(last, last, 4 * MIB);
        assert_eq!(window.hint(), Some(last), "taken: the system chooses");
    }
}
