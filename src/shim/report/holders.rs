//! Asks Python which objects hold the blocks of a site.
//!
//! Only Python's main thread can answer, between two instructions. The governor asks it by a
//! pending call and does not wait; the client repeats its request until the answer is there.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::python::{self, text, Function};
use flarena_sites as sites;
use flarena_sys::sync::lock::Lock;

/// The site that a client asked about; 0: none.
static REQUESTED: AtomicU32 = AtomicU32::new(0);
/// The answer that no client has taken yet, and its site.
static ANSWER: Lock<Option<(u32, String)>> = Lock::new(None);

/// Requests to the parent are not for the child, and an answer is about the parent's objects.
///
/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    REQUESTED.store(0, Relaxed);
    // SAFETY: the child's only thread is in its fork handler, so no other thread uses ANSWER.
    let orphaned = unsafe { ANSWER.take_over_after_fork() };
    if let Some(mut answer) = orphaned.or_else(|| ANSWER.try_lock()) {
        // Not freed: a signal handler that forks may have interrupted malloc.
        std::mem::forget(answer.take());
    }
}

pub fn requested_site() -> Option<u32> {
    Some(REQUESTED.load(Relaxed)).filter(|site| *site != 0)
}

/// Stores the answer of the Python package to the request.
pub fn answer(text: &str) {
    let site = REQUESTED.swap(0, Relaxed);
    if site != 0 {
        *ANSWER.lock() = Some((site, text.to_owned()));
    }
}

/// Takes the answer for the site. Without one, asks the main thread and returns `None`.
pub fn take(site: u32) -> Option<String> {
    if let Some((_, text)) = ANSWER.lock().take().filter(|(of, _)| *of == site) {
        return Some(text);
    }
    if REQUESTED.load(Relaxed) != site && sites::reads_python() {
        REQUESTED.store(site, Relaxed);
        if !python::add_pending_call(|python| python.run(&FIND, 0)) {
            REQUESTED.store(0, Relaxed);
        }
    }
    None
}

/// The package has imported its module when it started the sites.
const FIND: Function = Function {
    name: c"answer",
    text: text(concat!(
        "def answer(_):\n",
        "    holders = sys.modules.get('flarena._holders')\n",
        "    if holders is not None:\n",
        "        holders.answer()\n\0",
    )),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_of_a_fork_has_no_answer_of_its_parent() {
        let answer_for = |site| {
            REQUESTED.store(site, Relaxed);
            answer("{}");
        };
        answer_for(3);
        assert_eq!(take(3).as_deref(), Some("{}"));
        answer_for(3);
        // SAFETY: no other test uses this module.
        unsafe { after_fork_in_child() };
        assert_eq!(take(3), None);
    }
}
