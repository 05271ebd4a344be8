//! Answers of the library's own functions, as snprintf gives them.

use std::ffi::{c_char, c_int};
use std::ptr;

/// Copies what fits of the text, NUL-terminated, and answers the bytes of the whole without the NUL.
///
/// # Safety
/// `buffer` is NULL or has room for `len` bytes.
pub unsafe fn fill(buffer: *mut c_char, len: usize, text: &str) -> c_int {
    if !buffer.is_null() && len > 0 {
        let copied = text.len().min(len - 1);
        // SAFETY: the buffer has room for `len` bytes by this function's contract, and copied + 1 are at
        // most as many.
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
    fn a_short_buffer_is_cut_and_the_whole_length_is_told() {
        let mut buffer = [1 as c_char; 8];
        // SAFETY: four of eight bytes, then none.
        unsafe {
            assert_eq!(fill(buffer.as_mut_ptr(), 4, "abcdef"), 6);
            assert_eq!(fill(ptr::null_mut(), 0, "abcdef"), 6);
            assert_eq!(CStr::from_ptr(buffer.as_ptr()), c"abc");
        }
        assert_eq!(buffer[4], 1);
    }
}
