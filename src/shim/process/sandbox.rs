//! Whether the program has closed itself in. Behind a seccomp list that kills, malloc may make no system call but those
//! that glibc's malloc makes: brk, mmap, munmap, mremap, mprotect, madvise, futex. The list cannot be asked
//! what it holds, nor whether it is there, without a call that it may punish. So the program is watched on its way
//! in (`abi::sandbox`).

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

static CLOSED: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// True from the moment when the program says that it goes in; there is no way out.
#[inline]
pub fn is_closed() -> bool {
    CLOSED.load(Relaxed)
}

pub fn close() {
    CLOSED.store(true, Relaxed);
}

/// Called by the constructor, and in a forked child.
pub fn remember_process() {
    PROCESS.store(this_process(), Relaxed);
}

/// False in a vfork child, which uses its parent's memory and closes only itself in.
pub fn is_own_memory() -> bool {
    PROCESS.load(Relaxed) == this_process()
}

fn this_process() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
