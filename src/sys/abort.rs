//! Aborts a program that misuses its heap: writes a line to stderr, then raises SIGABRT, as glibc does.
//! To continue could corrupt memory that is in use.

use crate::io::quiet_write;

/// Writes the error and the pointer, then aborts.
#[cold]
#[inline(never)]
pub fn abort_with(what: &str, pointer: usize) -> ! {
    let _ = quiet_write::write(libc::STDERR_FILENO, line(what, pointer, &mut [0; 128]));
    // SAFETY: abort has no precondition; it ends the process.
    unsafe { libc::abort() }
}

fn line<'b>(what: &str, pointer: usize, buffer: &'b mut [u8; 128]) -> &'b [u8] {
    quiet_write::line(buffer, format_args!("flarena: {what} {pointer:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(what: &str, pointer: usize) -> String {
        String::from_utf8_lossy(line(what, pointer, &mut [0; 128])).into_owned()
    }

    #[test]
    fn addresses_are_written_as_printf_writes_them() {
        for number in [0, 1, 9, 10, 15, 16, 0x7f12_3456_7000, usize::MAX] {
            let expected = format!("flarena: free(): invalid pointer 0x{number:x}\n");
            assert_eq!(written("free(): invalid pointer", number), expected);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        assert_eq!(written(&"a".repeat(200), 1).len(), 128);
    }
}
