//! A question that only the interpreter can answer: who holds the blocks of a site. The governor passes
//! it to the main thread, which answers when it comes to a safe point; the client asks again meanwhile.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Relaxed};

use crate::process::symbols;
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
        if !ask_main_thread() {
            WANTED.store(0, Relaxed);
        }
    }
    None
}

type PendingCall = unsafe extern "C" fn(*mut c_void) -> c_int;

/// False where the interpreter's queue is full, or there is no interpreter.
fn ask_main_thread() -> bool {
    type Add = unsafe extern "C" fn(PendingCall, *mut c_void) -> c_int;
    // SAFETY: the type is that of CPython's function.
    let add: Option<Add> = unsafe { symbols::cast(symbols::first(c"Py_AddPendingCall")) };
    // SAFETY: CPython takes a call from any thread, without the GIL.
    add.is_some_and(|add| unsafe { add(run_package, ptr::null_mut()) } == 0)
}

/// Runs in the main thread, between two instructions of the program's, with the GIL.
unsafe extern "C" fn run_package(_: *mut c_void) -> c_int {
    type Run = unsafe extern "C" fn(*const std::ffi::c_char) -> c_int;
    // SAFETY: the type is that of CPython's function.
    let run: Option<Run> = unsafe { symbols::cast(symbols::first(c"PyRun_SimpleString")) };
    if let Some(run) = run {
        // One expression: it leaves no name behind in the program's own module.
        let code = c"'flarena._sites' in __import__('sys').modules and __import__('flarena._holders', None, None, ['answer']).answer()";
        // SAFETY: the interpreter called us, so the GIL is held; the text is NUL-terminated.
        unsafe { run(code.as_ptr()) };
    }
    0
}
