//! A full garbage collection, asked of Python from outside: `Py_AddPendingCall` lets the main thread of
//! the main interpreter run it between two of its instructions. A thread that waits in C never comes
//! by, and then nothing is collected.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::symbols;
use crate::recycler;
use crate::report::garbage;

/// Whether it may run here, and the collection itself; what the Python package does at its stages.
const TEXT: &str = concat!(
    include_str!("../../python/flarena/_safety.py"),
    "\nif may_collect():\n    gc.collect()\n    collected = True\n\0"
);
/// `Py_file_input`: the text is whole statements.
const STATEMENTS: c_int = 257;

type Object = *mut c_void;

/// What we need of Python, under the names that every version since 3.9 gives it.
struct Api {
    is_initialized: unsafe extern "C" fn() -> c_int,
    add_pending_call: unsafe extern "C" fn(extern "C" fn(Object) -> c_int, Object) -> c_int,
    this_interpreter: unsafe extern "C" fn() -> Object,
    main_interpreter: unsafe extern "C" fn() -> Object,
    frame: unsafe extern "C" fn() -> Object,
    builtins: unsafe extern "C" fn() -> Object,
    new_dict: unsafe extern "C" fn() -> Object,
    set_item: unsafe extern "C" fn(Object, *const c_char, Object) -> c_int,
    item: unsafe extern "C" fn(Object, *const c_char) -> Object,
    run: unsafe extern "C" fn(*const c_char, c_int, Object, Object, *mut c_void) -> Object,
    release: unsafe extern "C" fn(Object),
    clear_error: unsafe extern "C" fn(),
}

/// Null where the process has no Python. Never freed.
static API: AtomicPtr<Api> = AtomicPtr::new(ptr::null_mut());
/// Calls that were handed over, and those that have run.
static ASKED: AtomicU64 = AtomicU64::new(0);
static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Looks Python's functions up. Called by the governor when it starts, before anything here is used:
/// the loader's lock is then not needed at a time when the program may fork.
pub fn find() {
    if let Some(api) = Api::find().filter(|_| api().is_none()) {
        API.store(Box::leak(Box::new(api)), Release);
    }
}

/// True in a process that runs Python.
pub fn is_running() -> bool {
    // SAFETY: the function may be called at any time.
    api().is_some_and(|api| unsafe { (api.is_initialized)() } != 0)
}

/// Asks for one collection; false where nobody can be asked, or the last one is still to come.
pub fn ask() -> bool {
    let Some(api) = api().filter(|_| is_running() && !is_waiting()) else {
        return false;
    };
    // SAFETY: Python is initialised, and the call is `extern "C"` and never goes away. Were Python to
    // end at this very moment, it takes down what a pending call needs only milliseconds later.
    if unsafe { (api.add_pending_call)(collect, ptr::null_mut()) } != 0 {
        return false;
    }
    ASKED.fetch_add(1, Relaxed);
    true
}

/// A collection was asked for and has not run yet.
pub fn is_waiting() -> bool {
    ANSWERED.load(Relaxed) < ASKED.load(Relaxed)
}

/// Waits until what was asked for has run; false when it has not.
pub fn wait(patience: Duration) -> bool {
    let end = Instant::now() + patience;
    while is_waiting() && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
    !is_waiting()
}

/// A forked child has none of its parent's pending calls, as it has no governor.
pub fn after_fork_in_child() {
    ANSWERED.store(ASKED.load(Relaxed), Relaxed);
}

fn api() -> Option<&'static Api> {
    // SAFETY: null, or what find() leaked.
    unsafe { API.load(Acquire).as_ref() }
}

/// The pending call: in Python's main thread, with its lock.
extern "C" fn collect(_: Object) -> c_int {
    if let Some(api) = api() {
        let (collections, before) = (garbage::total().collections, recycler::live_bytes());
        let started = Instant::now();
        let collected = api.collect();
        // Where the Python package watches, it has told of it already.
        if collected && garbage::total().collections == collections {
            let released = before.saturating_sub(recycler::live_bytes());
            garbage::note(released, started.elapsed().as_micros() as u64);
        }
    }
    ANSWERED.store(ASKED.load(Relaxed), Relaxed);
    0
}

impl Api {
    fn find() -> Option<Api> {
        fn function<F>(name: &CStr) -> Option<F> {
            // SAFETY: each field below has the type that Python's headers give to the function.
            unsafe { symbols::cast(symbols::first(name)) }
        }
        Some(Api {
            is_initialized: function(c"Py_IsInitialized")?,
            add_pending_call: function(c"Py_AddPendingCall")?,
            this_interpreter: function(c"PyInterpreterState_Get")?,
            main_interpreter: function(c"PyInterpreterState_Main")?,
            frame: function(c"PyEval_GetFrame")?,
            builtins: function(c"PyEval_GetBuiltins")?,
            new_dict: function(c"PyDict_New")?,
            set_item: function(c"PyDict_SetItemString")?,
            item: function(c"PyDict_GetItemString")?,
            run: function(c"PyRun_StringFlags")?,
            release: function(c"Py_DecRef")?,
            clear_error: function(c"PyErr_Clear")?,
        })
    }

    /// Runs the text with names of its own; true when it collected.
    fn collect(&self) -> bool {
        // SAFETY: a pending call holds Python's lock, which all of these ask for. Borrowed are the
        // frame, the builtins and the item; the dictionary and the result are ours until released.
        unsafe {
            // Calls that are left when Python ends run outside of any frame.
            if (self.frame)().is_null() || (self.this_interpreter)() != (self.main_interpreter)() {
                return false;
            }
            let names = (self.new_dict)();
            if names.is_null() {
                (self.clear_error)();
                return false;
            }
            let result = match (self.set_item)(names, c"__builtins__".as_ptr(), (self.builtins)()) {
                0 => (self.run)(
                    TEXT.as_ptr().cast(),
                    STATEMENTS,
                    names,
                    names,
                    ptr::null_mut(),
                ),
                _ => ptr::null_mut(),
            };
            if result.is_null() {
                (self.clear_error)();
            } else {
                (self.release)(result);
            }
            let collected = !(self.item)(names, c"collected".as_ptr()).is_null();
            (self.release)(names);
            collected
        }
    }
}
