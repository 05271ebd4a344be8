//! Defers `pthread_cancel`. Cancellation unwinds the thread's frames, which Rust does not support: a frame
//! that catches panics aborts the process, and values may not be dropped. The malloc path does not need this
//! module: it makes system calls directly, and these are not cancellation points.

use std::ffi::c_int;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// The value in glibc's pthread.h.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Disables cancellation until dropped. Holds the previous state.
pub struct Cancellation(c_int);

impl Cancellation {
    pub fn put_off() -> Self {
        let mut before = 0;
        // SAFETY: the state is valid, and `before` is valid for the write.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before) };
        Cancellation(before)
    }
}

impl Drop for Cancellation {
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: the state is the previous one, and `disabled` is valid for the write.
        unsafe { pthread_setcancelstate(self.0, &mut disabled) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_is_disabled_until_the_outermost_guard_is_dropped() {
        let state = || Cancellation::put_off().0;
        assert_ne!(state(), PTHREAD_CANCEL_DISABLE);
        let outer = Cancellation::put_off();
        assert_eq!(state(), PTHREAD_CANCEL_DISABLE);
        assert_eq!(state(), PTHREAD_CANCEL_DISABLE);
        drop(outer);
        assert_ne!(state(), PTHREAD_CANCEL_DISABLE);
    }
}
