//! The kernel's switches of huge pages, read without allocating: the recycler asks with its first mapping.

use std::ffi::CStr;

use flarena_shared::huge_pages::{Offer, Policy};

use crate::proc::procfs::read_file;

/// What decides for large blocks.
pub fn offer() -> Offer {
    Offer::read(policy)
}

/// True when pages of 2 MiB come unasked to everyone. Asked at each start.
pub fn come_unasked() -> bool {
    Offer::read_large(policy) == Policy::Always
}

fn policy(file: &CStr, top: Policy) -> Option<Policy> {
    Policy::parse(read_file(file, &mut [0; 64])?, top)
}
