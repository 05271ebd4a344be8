//! glibc's `struct mallinfo` and `struct mallinfo2`.

use std::ffi::c_int;

/// `struct mallinfo2` of malloc.h, since glibc 2.33.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Mallinfo2 {
    pub arena: usize,
    pub ordblks: usize,
    pub smblks: usize,
    pub hblks: usize,
    pub hblkhd: usize,
    pub usmblks: usize,
    pub fsmblks: usize,
    pub uordblks: usize,
    pub fordblks: usize,
    pub keepcost: usize,
}

/// `struct mallinfo` of malloc.h: the same fields, 32 bits wide; glibc lets them wrap.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Mallinfo {
    pub arena: c_int,
    pub ordblks: c_int,
    pub smblks: c_int,
    pub hblks: c_int,
    pub hblkhd: c_int,
    pub usmblks: c_int,
    pub fsmblks: c_int,
    pub uordblks: c_int,
    pub fordblks: c_int,
    pub keepcost: c_int,
}

impl From<Mallinfo> for Mallinfo2 {
    fn from(old: Mallinfo) -> Mallinfo2 {
        let wide = |n: c_int| n as u32 as usize;
        Mallinfo2 {
            arena: wide(old.arena),
            ordblks: wide(old.ordblks),
            smblks: wide(old.smblks),
            hblks: wide(old.hblks),
            hblkhd: wide(old.hblkhd),
            usmblks: wide(old.usmblks),
            fsmblks: wide(old.fsmblks),
            uordblks: wide(old.uordblks),
            fordblks: wide(old.fordblks),
            keepcost: wide(old.keepcost),
        }
    }
}

impl From<Mallinfo2> for Mallinfo {
    fn from(new: Mallinfo2) -> Mallinfo {
        // The fields are 32 bits wide: saturate instead of wrapping.
        let narrow = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
        Mallinfo {
            arena: narrow(new.arena),
            ordblks: narrow(new.ordblks),
            smblks: narrow(new.smblks),
            hblks: narrow(new.hblks),
            hblkhd: narrow(new.hblkhd),
            usmblks: narrow(new.usmblks),
            fsmblks: narrow(new.fsmblks),
            uordblks: narrow(new.uordblks),
            fordblks: narrow(new.fordblks),
            keepcost: narrow(new.keepcost),
        }
    }
}
