//! Returns text in a buffer of the caller, like snprintf.

use std::ffi::{c_char, c_int};
use std::ptr;

/// Copies as much of the text as fits, with a NUL. Returns the length of the whole text without it.
///
/// # Safety
/// `buffer` is NULL or has room for `len` bytes.
pub unsafe fn copy_text(buffer: *mut c_char, len: usize, text: &str) -> c_int {
    if !buffer.is_null() && len > 0 {
        let copied = text.len().min(len - 1);
        // SAFETY: the caller's buffer has room for `len` bytes, and copied + 1 <= len.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, copied);
            buffer.add(copied).write(0);
        }
    }
    c_int::try_from(text.len()).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn text_in_short_buffer_is_cut_and_whole_length_is_returned() {
        let mut buffer = [1 as c_char; 8];
        // SAFETY: the lengths do not exceed the buffers.
        unsafe {
            assert_eq!(copy_text(buffer.as_mut_ptr(), 4, "abcdef"), 6);
            assert_eq!(copy_text(ptr::null_mut(), 0, "abcdef"), 6);
            assert_eq!(CStr::from_ptr(buffer.as_ptr()), c"abc");
        }
        assert_eq!(buffer[4], 1);
    }
}
