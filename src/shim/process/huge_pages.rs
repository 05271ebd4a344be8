//! The kernel's switches of huge pages, read without allocating: the recycler asks with its first mapping.

use flarena_shared::huge_pages::{Offer, Policy};

use crate::process::procfs::read_file;

/// What decides for large blocks.
pub fn offer() -> Offer {
    let mut buffer = [0; 64];
    Offer::read(|file, top| Policy::parse(read_file(file, &mut buffer)?, top))
}

/// True when pages of 2 MiB come unasked to everyone.
pub fn come_unasked() -> bool {
    offer().large == Policy::Always
}
