//! The CPython interpreter of this process, if there is one: runs code in its main thread between
//! two instructions (`Py_AddPendingCall`), and reads the arguments of `gc` callbacks.
//!
//! A main thread that waits in C runs no pending call. Only `find` changes the state here.

use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::ptr;

use flarena_sys::sync::racy_once::RacyOnceCell;
use flarena_sys::{loader::objects, loader::symbols};

/// `Py_file_input`: the text consists of statements.
const STATEMENTS: c_int = 257;
/// The oldest generation. Its collection includes all others.
const FULL: c_long = 2;

pub type Object = *mut c_void;
/// A function for the main thread to run; returns 0.
pub type Call = extern "C" fn(Object) -> c_int;

/// The functions of Python that are used. Every version from 3.9 exports them.
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

/// Empty if the process has no Python.
static API: RacyOnceCell<Api> = RacyOnceCell::new();

/// Looks up Python's functions; false if there are none. The governor calls this at its start, and
/// the Python package before it uses them: a later lookup could need the loader's lock during a
/// fork.
pub fn find() -> bool {
    if api().is_none() {
        if let Some(found) = Api::find() {
            API.get_or_insert(found);
        }
    }
    api().is_some()
}

/// True if Python is initialised.
pub fn is_running() -> bool {
    // SAFETY: Py_IsInitialized may be called at any time.
    api().is_some_and(|api| unsafe { (api.is_initialized)() } != 0)
}

/// Queues a call for the main thread; false without Python, or if the queue is full.
pub fn add_pending_call(call: Call) -> bool {
    let Some(api) = api().filter(|_| is_running()) else {
        return false;
    };
    // SAFETY: Python is initialised and accepts a call from any thread. The function is in this
    // library, which is never unloaded. If Python ends right now, it destroys the state of its
    // pending calls only milliseconds later.
    unsafe { (api.add_pending_call)(call, ptr::null_mut()) == 0 }
}

/// Runs statements in a namespace of their own; true if they defined `answer`. Runs nothing outside
/// of the main interpreter's frames.
///
/// # Safety
/// Only in a pending call of [`add_pending_call`], in which Python's lock is held.
pub unsafe fn run(statements: &CStr, answer: &CStr) -> bool {
    // SAFETY: Python's lock is held, because the caller is a pending call.
    api().is_some_and(|api| unsafe { api.run_text(statements, answer) })
}

/// True if the program has imported one of these modules.
///
/// # Safety
/// As for [`run`].
pub unsafe fn has_imported(names: &[&CStr]) -> bool {
    api().is_some_and(|api| {
        // SAFETY: Python's lock is held. Both references are borrowed and not kept.
        let modules = unsafe { (api.modules)() };
        names.iter().any(|name| {
            // SAFETY: Python's lock is held, and `modules` is a dict. A missing name sets no error.
            !modules.is_null() && !unsafe { (api.item)(modules, name.as_ptr()) }.is_null()
        })
    })
}

/// Interprets the arguments of a `gc` callback: true if a full collection begins, false if it ends,
/// `None` for any other collection.
///
/// # Safety
/// The thread is attached to Python (with a GIL: holds it). `phase` is a str and `info` a dict.
pub unsafe fn full_collection_begins(phase: Object, info: Object) -> Option<bool> {
    let api = api()?;
    // SAFETY: the caller is attached to Python. The reference is borrowed and not kept.
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
            // SAFETY: each field has the type that Python's headers declare for the function.
            unsafe { objects::cast(symbols::first_definition(name)) }
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
        // SAFETY: Python's lock is held, which is all that these functions require. The frame, the
        // builtins and the item are borrowed; the dict and the result are owned until released.
        unsafe {
            // At Python's end, pending calls that are left run outside of any frame.
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
