//! Aborts a program that misuses its heap: writes a line to stderr, then raises SIGABRT, as glibc does.
//! To continue could corrupt memory that is in use.

use crate::io::quiet_write;

/// Writes the error and the pointer, then aborts.
#[cold]
#[inline(never)]
pub fn abort_with(what: &str, pointer: usize) -> ! {
    let mut line = Line::default();
    line.push(b"flarena: ");
    line.push(what.as_bytes());
    line.push(b" 0x");
    line.push_hex(pointer);
    line.push(b"\n");
    let _ = quiet_write::write(libc::STDERR_FILENO, line.text());
    // SAFETY: abort has no precondition; it ends the process.
    unsafe { libc::abort() }
}

/// A line in a fixed buffer. Text that does not fit is cut.
struct Line {
    bytes: [u8; 128],
    len: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line {
            bytes: [0; 128],
            len: 0,
        }
    }
}

impl Line {
    fn push(&mut self, text: &[u8]) {
        for (slot, byte) in self.bytes.iter_mut().skip(self.len).zip(text) {
            *slot = *byte;
            self.len += 1;
        }
    }

    fn push_hex(&mut self, number: usize) {
        let digits = (usize::BITS - (number | 1).leading_zeros()).div_ceil(4);
        for place in (0..digits).rev() {
            let digit = (number >> (place * 4) & 15) as u8;
            self.push(&[if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            }]);
        }
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(number: usize) -> String {
        let mut line = Line::default();
        line.push_hex(number);
        String::from_utf8_lossy(line.text()).into_owned()
    }

    #[test]
    fn addresses_are_written_as_printf_writes_them() {
        for number in [0, 1, 9, 10, 15, 16, 0x7f12_3456_7000, usize::MAX] {
            assert_eq!(hex(number), format!("{number:x}"));
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        let mut line = Line::default();
        line.push(&[b'a'; 100]);
        line.push(&[b'b'; 100]);
        assert_eq!(line.text().len(), 128);
    }
}
