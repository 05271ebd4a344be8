//! A question that only the interpreter can answer: who holds the blocks of a site. The governor passes
//! it to the main thread, which answers when it comes to a safe point; the client asks again meanwhile.

use std::ffi::{c_int, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Relaxed};

use crate::python::{self, Object};
use crate::sites;

/// The site that a client wants to know of; 0: none.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// Null, or a boxed answer that nobody has taken yet.
static ANSWER: AtomicPtr<Answer> = AtomicPtr::new(ptr::null_mut());

struct Answer {
    site: u32,
    text: String,
}

/// Nobody asked the child.
pub fn after_fork_in_child() {
    WANTED.store(0, Relaxed);
}

pub fn wanted() -> Option<u32> {
    Some(WANTED.load(Relaxed)).filter(|site| *site != 0)
}

fn put(answer: Option<Box<Answer>>) -> Option<Box<Answer>> {
    let new = answer.map_or(ptr::null_mut(), Box::into_raw);
    let old = ANSWER.swap(new, AcqRel);
    // SAFETY: only pointers of boxes are put there, and the exchange took this one out.
    (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
}

/// The package answers what was wanted.
pub fn give(text: &str) {
    let site = WANTED.swap(0, Relaxed);
    if site != 0 {
        let text = text.to_owned();
        drop(put(Some(Box::new(Answer { site, text }))));
    }
}

/// The answer, once; until it is there, the main thread is asked.
pub fn take(site: u32) -> Option<String> {
    if let Some(answer) = put(None).filter(|answer| answer.site == site) {
        return Some(answer.text);
    }
    if WANTED.load(Relaxed) != site && sites::reads_python() {
        WANTED.store(site, Relaxed);
        if !python::ask(run_package) {
            WANTED.store(0, Relaxed);
        }
    }
    None
}

/// A pending call. One statement, without a name in the program's own module.
extern "C" fn run_package(_: Object) -> c_int {
    const ANSWER: &CStr =
        c"if 'flarena._sites' in __import__('sys').modules: __import__('flarena._holders', None, None, ['answer']).answer()";
    // SAFETY: called by Python's main thread alone, as a pending call.
    unsafe { python::run(ANSWER, c"answer") };
    0
}
