//! glibc's `struct mallinfo` and `struct mallinfo2`.

use std::ffi::c_int;

/// `struct mallinfo2` of malloc.h, since glibc 2.33.
pub type Mallinfo2 = Numbers<usize>;
/// `struct mallinfo` of malloc.h: the same fields, 32 bits wide; glibc lets them wrap.
pub type Mallinfo = Numbers<c_int>;

macro_rules! numbers {
    ($($field:ident)*) => {
        #[repr(C)]
        #[derive(Debug, Clone, Copy, Default)]
        pub struct Numbers<T> {
            $(pub $field: T,)*
        }

        impl<T> Numbers<T> {
            fn map<U>(self, convert: impl Fn(T) -> U) -> Numbers<U> {
                Numbers {
                    $($field: convert(self.$field),)*
                }
            }
        }
    };
}

// The order is that of malloc.h.
numbers! { arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost }

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
