//! Asks Python which objects hold the blocks of a site.
//!
//! Only Python's main thread can answer, between two instructions. The governor asks it by a
//! pending call and does not wait; the client repeats its request until the answer is there.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Relaxed};

use crate::python::{self, text, Function};
use flarena_sites as sites;

/// The site that a client asked about; 0: none.
static REQUESTED: AtomicU32 = AtomicU32::new(0);
/// Null, or a boxed answer that no client has taken yet.
static ANSWER: AtomicPtr<Answer> = AtomicPtr::new(ptr::null_mut());

struct Answer {
    site: u32,
    text: String,
}

/// Requests to the parent are not for the child, and an answer is about the parent's objects.
pub fn after_fork_in_child() {
    REQUESTED.store(0, Relaxed);
    // Not freed: a signal handler that forks may have interrupted malloc.
    ANSWER.store(ptr::null_mut(), Relaxed);
}

pub fn requested_site() -> Option<u32> {
    Some(REQUESTED.load(Relaxed)).filter(|site| *site != 0)
}

fn swap_answer(answer: Option<Box<Answer>>) -> Option<Box<Answer>> {
    let new = answer.map_or(ptr::null_mut(), Box::into_raw);
    let old = ANSWER.swap(new, AcqRel);
    // SAFETY: `ANSWER` holds pointers of boxes only, and the swap made this thread the owner.
    (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
}

/// Stores the answer of the Python package to the request.
pub fn answer(text: &str) {
    let site = REQUESTED.swap(0, Relaxed);
    if site != 0 {
        let text = text.to_owned();
        drop(swap_answer(Some(Box::new(Answer { site, text }))));
    }
}

/// Takes the answer for the site. Without one, asks the main thread and returns `None`.
pub fn take(site: u32) -> Option<String> {
    if let Some(answer) = swap_answer(None).filter(|answer| answer.site == site) {
        return Some(answer.text);
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
        after_fork_in_child();
        assert_eq!(take(3), None);
    }
}
