//! The Python of this process, if it has one: asking its main thread to do something between two of its
//! instructions (`Py_AddPendingCall`), and running a text there. A thread that waits in C never comes by. And reading what
//! `gc` tells its callbacks.

use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::ptr;

use flarena_sys::sync::racy_once::RacyOnceCell;
use flarena_sys::{loader::objects, loader::symbols};

/// `Py_file_input`: a text is whole statements.
const STATEMENTS: c_int = 257;
/// The generation that holds all others.
const FULL: c_long = 2;

pub type Object = *mut c_void;
/// What the main thread is to do; answers 0.
pub type Call = extern "C" fn(Object) -> c_int;

/// What we need of Python, under the names that every version since 3.9 gives it.
struct Api {
    is_initialized: unsafe extern "C" fn() -> c_int,
    add_pending_call: unsafe extern "C" fn(Call, Object) -> c_int,
    this_interpreter: unsafe extern "C" fn() -> Object,
    main_interpreter: unsafe extern "C" fn() -> Object,
    frame: unsafe extern "C" fn() -> Object,
    builtins: unsafe extern "C" fn() -> Object,
    new_dict: unsafe extern "C" fn() -> Object,
    set_item: unsafe extern "C" fn(Object, *const c_char, Object) -> c_int,
    item: unsafe extern "C" fn(Object, *const c_char) -> Object,
    run: unsafe extern "C" fn(*const c_char, c_int, Object, Object, *mut c_void) -> Object,
    modules: unsafe extern "C" fn() -> Object,
    release: unsafe extern "C" fn(Object),
    clear_error: unsafe extern "C" fn(),
    compare: unsafe extern "C" fn(Object, *const c_char) -> c_int,
    number: unsafe extern "C" fn(Object) -> c_long,
}

/// Nothing where the process has no Python.
static API: RacyOnceCell<Api> = RacyOnceCell::new();

/// Looks Python's functions up; false where there are none. Called by the governor when it starts, and by the Python
/// package, before anything here is used: the loader's lock is then not needed at a time when the program may fork.
pub fn find() -> bool {
    if api().is_none() {
        if let Some(found) = Api::find() {
            API.get_or_insert(found);
        }
    }
    api().is_some()
}

/// True in a process that runs Python.
pub fn is_running() -> bool {
    // SAFETY: the function may be called at any time.
    api().is_some_and(|api| unsafe { (api.is_initialized)() } != 0)
}

/// Hands a call to the main thread; false where there is none to ask, or its queue is full.
pub fn ask(call: Call) -> bool {
    let Some(api) = api().filter(|_| is_running()) else {
        return false;
    };
    // SAFETY: Python is initialised and takes a call from any thread; the call is `extern "C"` and never goes
    // away. Were Python to end at this very moment, it takes down what a pending call needs only milliseconds later.
    unsafe { (api.add_pending_call)(call, ptr::null_mut()) == 0 }
}

/// Runs statements with names of their own; true when they have defined `answer`. Nothing runs outside of
/// the main interpreter's frames.
///
/// # Safety
/// Only in a call that [`ask`] handed over: there Python's lock is held.
pub unsafe fn run(statements: &CStr, answer: &CStr) -> bool {
    // SAFETY: Python's lock is held: only a call that `ask` handed over comes here.
    api().is_some_and(|api| unsafe { api.run_text(statements, answer) })
}

/// True where the program has imported one of these modules.
///
/// # Safety
/// As for [`run`].
pub unsafe fn has_imported(names: &[&CStr]) -> bool {
    api().is_some_and(|api| {
        // SAFETY: Python's lock is held; both answers are borrowed and not kept.
        let modules = unsafe { (api.modules)() };
        names.iter().any(|name| {
            // SAFETY: Python's lock is held, and `modules` is its dictionary; a missing name sets no error.
            !modules.is_null() && !unsafe { (api.item)(modules, name.as_ptr()) }.is_null()
        })
    })
}

/// What `gc` tells a callback: true where a full collection begins, false where it ends, none of any other.
///
/// # Safety
/// The thread is attached to Python (it holds its lock, where it has one); a str and a dict.
pub unsafe fn full_collection_begins(phase: Object, info: Object) -> Option<bool> {
    let api = api()?;
    // SAFETY: the thread is attached, says the caller; what is looked up is borrowed, and not kept.
    unsafe {
        let generation = (api.item)(info, c"generation".as_ptr());
        let is_full = !generation.is_null() && (api.number)(generation) == FULL;
        is_full.then(|| (api.compare)(phase, c"start".as_ptr()) == 0)
    }
}

fn api() -> Option<&'static Api> {
    API.get()
}

impl Api {
    fn find() -> Option<Api> {
        fn function<F>(name: &CStr) -> Option<F> {
            // SAFETY: each field below has the type that Python's headers give to the function.
            unsafe { objects::cast(symbols::first(name)) }
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
            modules: function(c"PyImport_GetModuleDict")?,
            release: function(c"Py_DecRef")?,
            clear_error: function(c"PyErr_Clear")?,
            compare: function(c"PyUnicode_CompareWithASCIIString")?,
            number: function(c"PyLong_AsLong")?,
        })
    }

    /// # Safety
    /// Python's lock is held.
    unsafe fn run_text(&self, statements: &CStr, answer: &CStr) -> bool {
        // SAFETY: all of these ask for Python's lock alone. Borrowed are the frame, the builtins and the item;
        // the dictionary and the result are ours until released.
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
                    statements.as_ptr(),
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
            let answered = !(self.item)(names, answer.as_ptr()).is_null();
            (self.release)(names);
            answered
        }
    }
}
