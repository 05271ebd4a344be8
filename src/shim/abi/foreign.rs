//! The malloc family where another allocator serves the process.
//!
//! A function that the other allocator does not define reaches this library, for example `reallocarray` or `free_sized`.
//! It is composed from functions that the other one defines, so that its blocks never reach another heap. If the other
//! allocator defines the function, it made the call itself: it passes its calls on, and the backend serves it.

use std::ffi::{c_int, CStr};
use std::ptr;

use crate::abi::Ptr;
use flarena_sys::errno;
use flarena_sys::sync::racy_once::RacyOnceCell;
use flarena_sys::{loader::objects, loader::symbols};

macro_rules! names {
    ($($name:ident $symbol:literal)*) => {
        /// The functions that not every allocator defines.
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub enum Name {
            $($name),*
        }

        /// In the order of `Name`.
        const NAMES: [&CStr; [$($symbol),*].len()] = [$($symbol),*];
    };
}

names! {
    Memalign c"memalign"
    PosixMemalign c"posix_memalign"
    AlignedAlloc c"aligned_alloc"
    Valloc c"valloc"
    Pvalloc c"pvalloc"
    Reallocarray c"reallocarray"
    FreeSized c"free_sized"
    FreeAlignedSized c"free_aligned_sized"
    Cfree c"cfree"
}

/// The functions of the other allocator; `None`: it does not define the function.
pub struct Functions {
    defines: [bool; NAMES.len()],
    realloc: Option<unsafe extern "C" fn(Ptr, usize) -> Ptr>,
    free: Option<unsafe extern "C" fn(Ptr)>,
    posix_memalign: Option<unsafe extern "C" fn(*mut Ptr, usize, usize) -> c_int>,
    memalign: Option<unsafe extern "C" fn(usize, usize) -> Ptr>,
}

static FUNCTIONS: RacyOnceCell<Functions> = RacyOnceCell::new();

/// Called once by the constructor, if another object defines the process's `malloc`.
pub fn configure() {
    // SAFETY: each type is the one that C or malloc.h declares for the name.
    let functions = unsafe {
        Functions {
            defines: NAMES
                .map(|name| !symbols::is_in_this_library(symbols::first_definition(name))),
            realloc: theirs(c"realloc"),
            free: theirs(c"free"),
            posix_memalign: theirs(c"posix_memalign"),
            memalign: theirs(c"memalign"),
        }
    };
    FUNCTIONS.get_or_insert(functions);
}

/// # Safety
/// `F` must be the type of a function pointer that fits the symbol.
unsafe fn theirs<F>(name: &CStr) -> Option<F> {
    let address = symbols::first_definition(name);
    // SAFETY: F is the type of every function of this name, by this function's contract.
    (!symbols::is_in_this_library(address)).then(|| unsafe { objects::cast(address) })?
}

/// The functions of which this one is composed; `None` if the backend serves it.
#[inline]
pub fn instead_of(name: Name) -> Option<&'static Functions> {
    FUNCTIONS
        .get()
        .filter(|theirs| !theirs.defines[name as usize])
}

impl Functions {
    /// # Safety
    /// As C's realloc, for a block of the other allocator.
    pub unsafe fn realloc(&self, block: Ptr, size: usize) -> Ptr {
        match self.realloc {
            // SAFETY: the block belongs to the other allocator, and C declares this type for realloc.
            Some(realloc) => unsafe { realloc(block, size) },
            None => fail(libc::ENOMEM),
        }
    }

    /// # Safety
    /// As C's free, for a block of the other allocator.
    pub unsafe fn free(&self, block: Ptr) {
        // An allocator without free keeps its blocks.
        if let Some(free) = self.free {
            // SAFETY: the block belongs to the other allocator, and C declares this type for free.
            unsafe { free(block) }
        }
    }

    /// # Safety
    /// `align` is a power of two.
    pub unsafe fn memalign(&self, align: usize, size: usize) -> Ptr {
        if let Some(memalign) = self.memalign {
            // SAFETY: `align` is a power of two, and malloc.h declares this type for memalign.
            return unsafe { memalign(align, size) };
        }
        let Some(posix_memalign) = self.posix_memalign else {
            return fail(libc::ENOMEM);
        };
        let mut block = ptr::null_mut();
        // SAFETY: the alignment is a power of two of at least a pointer's size; `block` is valid for the result.
        match unsafe { posix_memalign(&mut block, align.max(size_of::<usize>()), size) } {
            0 => block,
            error => fail(error),
        }
    }
}

/// Sets errno.
pub fn fail(error: c_int) -> Ptr {
    errno::set(error);
    ptr::null_mut()
}
