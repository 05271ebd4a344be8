//! The name of a user.

use std::ffi::CStr;

/// The name, as `ps` shows it; the number for a user without a name.
pub fn user_name(uid: u32) -> String {
    const LONGEST_ENTRY: usize = 16 << 10;
    let mut buffer = [0; LONGEST_ENTRY];
    // SAFETY: `passwd` is plain data, and zeroes are a valid value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live values, and the length is that of the buffer.
    let error = unsafe {
        libc::getpwuid_r(
            uid,
            &mut entry,
            buffer.as_mut_ptr(),
            buffer.len(),
            &mut found,
        )
    };
    if error != 0 || found.is_null() || entry.pw_name.is_null() {
        return uid.to_string();
    }
    // SAFETY: the call succeeded, so the name is a NUL-terminated string in `buffer`.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_name_is_shown_by_its_number() {
        assert_eq!(user_name(0), "root");
        assert_eq!(user_name(4_000_000_123), "4000000123");
    }
}
