//! glibc's `struct mallinfo` and `struct mallinfo2`.

use std::ffi::c_int;

/// `struct mallinfo2` of malloc.h, since glibc 2.33.
pub type Mallinfo2 = Numbers<usize>;
/// `struct mallinfo` of malloc.h: the same fields, 32 bits wide; glibc lets them wrap.
pub type Mallinfo = Numbers<c_int>;

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Numbers<T> {
    pub arena: T,
    pub ordblks: T,
    pub smblks: T,
    pub hblks: T,
    pub hblkhd: T,
    pub usmblks: T,
    pub fsmblks: T,
    pub uordblks: T,
    pub fordblks: T,
    pub keepcost: T,
}

impl<T> Numbers<T> {
    fn map<U>(self, convert: impl Fn(T) -> U) -> Numbers<U> {
        Numbers {
            arena: convert(self.arena),
            ordblks: convert(self.ordblks),
            smblks: convert(self.smblks),
            hblks: convert(self.hblks),
            hblkhd: convert(self.hblkhd),
            usmblks: convert(self.usmblks),
            fsmblks: convert(self.fsmblks),
            uordblks: convert(self.uordblks),
            fordblks: convert(self.fordblks),
            keepcost: convert(self.keepcost),
        }
    }
}

impl From<Mallinfo> for Mallinfo2 {
    fn from(old: Mallinfo) -> Mallinfo2 {
        old.map(|number| number as u32 as usize)
    }
}

impl From<Mallinfo2> for Mallinfo {
    fn from(new: Mallinfo2) -> Mallinfo {
        // The fields are 32 bits wide: saturate instead of wrapping.
        new.map(|number| c_int::try_from(number).unwrap_or(c_int::MAX))
    }
}
