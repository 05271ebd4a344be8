//! Another allocator serves the process: what still reaches us is the part of the family that it
//! leaves out (few have `reallocarray` or `free_sized`). Its blocks must not meet another heap,
//! so these calls are put together from the functions that it does have.

use std::ffi::{c_int, c_void, CStr};
use std::ptr;

use flarena_sys::errno;
use flarena_sys::racy_once::Found;
use flarena_sys::{loader::objects, loader::symbols};

/// What the other allocator offers; `None` is what it leaves to us.
pub struct Functions {
    realloc: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void)>,
    posix_memalign: Option<unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int>,
    memalign: Option<unsafe extern "C" fn(usize, usize) -> *mut c_void>,
}

static FUNCTIONS: Found<Functions> = Found::new();

/// Called once by the constructor, when `malloc` is found in another object than ours.
pub fn configure() {
    // SAFETY: each name is given the type that C or malloc.h declares for it.
    let functions = unsafe {
        Functions {
            realloc: theirs(c"realloc"),
            free: theirs(c"free"),
            posix_memalign: theirs(c"posix_memalign"),
            memalign: theirs(c"memalign"),
        }
    };
    FUNCTIONS.keep(functions);
}

/// # Safety
/// `F` must be the type of a function pointer that fits the symbol.
unsafe fn theirs<F>(name: &CStr) -> Option<F> {
    let address = symbols::first(name);
    // SAFETY: F fits every function of this name by this function's contract, whoever defines it.
    (!symbols::is_inside_us(address)).then(|| unsafe { objects::cast(address) })?
}

/// The other allocator's functions; `None` where malloc is ours.
#[inline]
pub fn functions() -> Option<&'static Functions> {
    FUNCTIONS.get()
}

impl Functions {
    /// # Safety
    /// As C's realloc, for a block of theirs.
    pub unsafe fn realloc(&self, block: *mut c_void, size: usize) -> *mut c_void {
        match self.realloc {
            // SAFETY: the block is theirs by this function's contract, and C gives
            // their realloc this type.
            Some(realloc) => unsafe { realloc(block, size) },
            None => fail(libc::ENOMEM),
        }
    }

    /// # Safety
    /// As C's free, for a block of theirs.
    pub unsafe fn free(&self, block: *mut c_void) {
        // An allocator without free keeps its blocks.
        if let Some(free) = self.free {
            // SAFETY: the block is theirs by this function's contract, and C gives
            // their free this type.
            unsafe { free(block) }
        }
    }

    /// # Safety
    /// `align` is a power of two.
    pub unsafe fn memalign(&self, align: usize, size: usize) -> *mut c_void {
        if let Some(memalign) = self.memalign {
            // SAFETY: a power of two by this function's contract, and malloc.h gives
            // their memalign this type.
            return unsafe { memalign(align, size) };
        }
        let Some(posix_memalign) = self.posix_memalign else {
            return fail(libc::ENOMEM);
        };
        let mut block = ptr::null_mut();
        // SAFETY: a power of two that is no smaller than a pointer, and a place for the result.
        match unsafe { posix_memalign(&mut block, align.max(size_of::<usize>()), size) } {
            0 => block,
            error => fail(error),
        }
    }
}

fn fail(error: c_int) -> *mut c_void {
    errno::set(error);
    ptr::null_mut()
}
