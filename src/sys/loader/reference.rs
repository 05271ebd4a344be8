//! References to loaded objects, through which code of other libraries is called.
//!
//! Invariant: an address that a `Reference` returned is used only while the reference lives. So the
//! library may be unloaded at any other time, and loaded again at another address. The last reference
//! to an object runs its destructors when it is dropped, as `dlclose` does. `dlclose` waits for the
//! governor (`helper::quiesce`), so the program's own reference usually is the last one.

use std::ffi::{c_int, c_void, CStr};

use crate::loader::dl;
use crate::loader::elf::Image;
use crate::loader::objects::{self, cast};

/// A loaded object that stays loaded while this value lives.
pub struct Reference(*mut c_void);

impl Reference {
    /// `None` if no object of this path is loaded. The program has an empty path.
    fn to(path: &CStr) -> Option<Reference> {
        const FLAGS: c_int = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let path = (!path.is_empty()).then_some(path);
        // SAFETY: RTLD_NOLOAD loads no object, so none runs its constructors.
        let handle = unsafe { dl::open(path, FLAGS) };
        // Not `then_some`: it would close the null handle.
        (!handle.is_null()).then(|| Reference(handle))
    }

    /// The address of a function or variable, in this object or in those that it is linked to.
    pub fn address_of(&self, name: &CStr) -> *const c_void {
        // SAFETY: the handle is from `dl::open`, and it is closed only when it is dropped.
        unsafe { dl::symbol(self.0, name) }
    }

    /// # Safety
    /// `F` must be the type of a function pointer that fits the function.
    pub unsafe fn function<F>(&self, name: &CStr) -> Option<F> {
        // SAFETY: F is this function's contract.
        unsafe { cast(self.address_of(name)) }
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // SAFETY: the handle is from `dl::open`, and no address of the object is used any more.
        unsafe { dl::close(self.0) };
    }
}

/// References to the loaded objects that satisfy a condition on their path and symbols, in the order in
/// which they were loaded. The loader's list is locked during the calls of the condition. Of very many
/// objects, some are left out.
pub fn to_objects(mut is_wanted: impl FnMut(&CStr, &Image) -> bool) -> Vec<Reference> {
    // Nothing is allocated while the list is locked: malloc may need a lock of a thread that loads a library.
    const ROOM_BYTES: usize = 8 << 10;
    let mut paths: Vec<u8> = Vec::with_capacity(ROOM_BYTES);
    objects::for_each_object(|path, image| {
        let bytes = path.to_bytes_with_nul();
        if bytes.len() <= paths.capacity() - paths.len() && is_wanted(path, image) {
            paths.extend_from_slice(bytes);
        }
    });
    paths
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|path| CStr::from_bytes_with_nul(path).ok())
        .filter_map(Reference::to)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_finds_the_functions_of_its_object() {
        let name = c"malloc_usable_size";
        let found = to_objects(|_, image| image.is_called(c"libc.so.6"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address_of(name), objects::in_libc(name));
        assert!(found[0].address_of(c"no_such_function").is_null());
        assert!(to_objects(|_, _| false).is_empty());
    }

    #[test]
    fn program_can_be_referred_to() {
        let program = to_objects(|path, _| path.is_empty());
        assert!(!program.is_empty());
        assert!(!program[0].address_of(c"malloc").is_null());
    }
}
