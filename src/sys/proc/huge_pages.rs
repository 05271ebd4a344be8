//! Reads the kernel's settings for transparent huge pages. Nothing here allocates, because the recycler reads them
//! at its first mapping, inside malloc.

use std::ffi::CStr;

use flarena_shared::huge_pages::{Offer, Policy};

use crate::proc::procfs::read_file;

/// The settings that apply to large blocks.
pub fn offer() -> Offer {
    Offer::read(policy)
}

/// True if every mapping gets 2 MiB pages without `madvise`. Read at each start.
pub fn are_always_enabled() -> bool {
    Offer::read_large(policy) == Policy::Always
}

fn policy(file: &CStr, top: Policy) -> Option<Policy> {
    Policy::parse(read_file(file, &mut [0; 64])?, top)
}
