//! The calling thread's errno.

pub fn get() -> i32 {
    // SAFETY: the location is valid for the calling thread's life.
    unsafe { *libc::__errno_location() }
}

pub fn set(value: i32) {
    // SAFETY: the location is valid for the calling thread's life, and only this thread writes it.
    unsafe { *libc::__errno_location() = value }
}

/// Restores errno when it is dropped, whatever the system calls in between did to it.
pub struct SavedErrno(i32);

impl SavedErrno {
    #[inline]
    pub fn save() -> Self {
        SavedErrno(get())
    }
}

impl Drop for SavedErrno {
    #[inline]
    fn drop(&mut self) {
        set(self.0);
    }
}
