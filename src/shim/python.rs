//! The CPython interpreter of this process, if there is one: runs code in its main thread between
//! two instructions (`Py_AddPendingCall`), and reads the arguments of `gc` callbacks.
//!
//! Invariant: an address of Python is used only while a `Reference` keeps its library loaded, or in a
//! call from Python. An embedding program may close libpython, and load it again.
//!
//! A main thread that waits in C runs no pending call. A pending call looks nothing up: the loader's
//! lock may be held by a thread that waits for Python's lock.

use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::{Duration, Instant};

use crate::launch;
use flarena_sys::loader::objects;
use flarena_sys::loader::reference::{self, Reference};
use flarena_sys::thread::{self, helper};

mod originals;

/// `Py_file_input`: the text consists of statements.
const STATEMENTS: c_int = 257;
/// The oldest generation. Its collection includes all others.
const FULL: c_long = 2;
/// An object that defines it is a Python.
const PENDING: &CStr = c"Py_AddPendingCall";

/// Decides what may run, and which exceptions belong to the program. `contained` returns the result of a
/// function, or the exception that it raised if that belongs to the program, such as that of a signal
/// handler.
const BASE: &CStr = text(concat!(
    "__name__ = 'flarena'\n",
    "def load(name, *_):\n",
    "    return originals[name]\n",
    "__builtins__['__import__'] = load\n",
    include_str!("python/_safety.py"),
    "\n\n",
    "def contained(function, argument):\n",
    "    try:\n",
    "        return function(argument)\n",
    "    except BaseException as error:\n",
    "        return error if belongs_to_program(error) else None\n\0",
));
const CONTAINED: &CStr = c"contained";

/// A text in Python. The literal ends in a NUL. Three files of `python/` are links to modules of the package, which runs them,
/// too, also in a process without the library and from a source tree that was not built.
pub const fn text(literal: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(literal.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("one NUL, at the end"),
    }
}

/// A Python function of one number, which the main thread runs. True as its result means that it has done
/// its work.
pub struct Function {
    pub name: &'static CStr,
    /// Defines the function. It may use the names of `_safety.py` and of the texts that ran before it.
    pub text: &'static CStr,
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// The function returned True.
    Done,
    /// It has not run, or not done its work.
    NotDone,
    /// An exception of the program is set.
    Raised,
}

pub type Object = *mut c_void;
/// A function for the main thread to run.
pub type Call = fn(&Attached) -> Ran;

/// One kind of request to the main thread. At most one is pending.
pub struct MainThreadRequest {
    /// It calls `finish`.
    call: Call,
    is_pending: AtomicBool,
}

impl MainThreadRequest {
    pub const fn new(call: Call) -> MainThreadRequest {
        MainThreadRequest {
            call,
            is_pending: AtomicBool::new(false),
        }
    }

    /// False if the process has no Python, if its queue is full, and while a request is pending.
    pub fn ask(&self) -> bool {
        // First, because the call may finish before this thread goes on.
        if self.is_pending.swap(true, Relaxed) {
            return false;
        }
        let is_queued = add_pending_call(self.call);
        if !is_queued {
            self.finish();
        }
        is_queued
    }

    pub fn is_pending(&self) -> bool {
        self.is_pending.load(Relaxed)
    }

    /// Waits until no request is pending. False after this time, and once the governor, which calls this, is to end.
    pub fn wait(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while self.is_pending() && Instant::now() < end && !launch::is_ending() {
            helper::wait_outside_work(|| thread::sleep(Duration::from_millis(5)));
        }
        !self.is_pending()
    }

    /// Called at the end of a request, and in the child of a fork, which has no pending call of its parent.
    pub fn finish(&self) {
        self.is_pending.store(false, Relaxed);
    }
}

/// Defines the functions of Python that are used: each with the type and the name in Python's headers. `others` are what
/// is not one function that every version exports.
macro_rules! api {
    ($library:ident => {
        functions { $($function:ident: $function_type:ty = $name:literal;)* }
        others { $($other:ident: $other_type:ty = $value:expr;)* }
    }) => {
        struct Api {
            $($function: $function_type,)*
            $($other: $other_type,)*
        }

        impl Api {
            fn of($library: &Reference) -> Option<Api> {
                // SAFETY: each field has the type that Python's headers declare for the function.
                unsafe {
                    Some(Api {
                        $($function: $library.function($name)?,)*
                        $($other: $value,)*
                    })
                }
            }
        }
    };
}

api! { library => {
    functions {
        is_initialized: unsafe extern "C" fn() -> c_int = c"Py_IsInitialized";
        version: unsafe extern "C" fn() -> *const c_char = c"Py_GetVersion";
        add_pending_call: unsafe extern "C" fn(extern "C" fn(Object) -> c_int, Object) -> c_int = c"Py_AddPendingCall";
        this_interpreter: unsafe extern "C" fn() -> Object = c"PyInterpreterState_Get";
        main_interpreter: unsafe extern "C" fn() -> Object = c"PyInterpreterState_Main";
        interpreter_dict: unsafe extern "C" fn(Object) -> Object = c"PyInterpreterState_GetDict";
        frame: unsafe extern "C" fn() -> Object = c"PyEval_GetFrame";
        thread: unsafe extern "C" fn() -> Object = c"PyThreadState_Get";
        compile: unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> Object = c"Py_CompileString";
        evaluate: unsafe extern "C" fn(Object, Object, Object) -> Object = c"PyEval_EvalCode";
        call: unsafe extern "C" fn(Object, ...) -> Object = c"PyObject_CallFunctionObjArgs";
        release: unsafe extern "C" fn(Object) = c"Py_DecRef";
        is_true: unsafe extern "C" fn(Object) -> c_int = c"PyObject_IsTrue";
        attribute: unsafe extern "C" fn(Object, *const c_char) -> Object = c"PyObject_GetAttrString";
        type_of: unsafe extern "C" fn(Object) -> Object = c"PyObject_Type";
        new_number: unsafe extern "C" fn(usize) -> Object = c"PyLong_FromSize_t";
        number: unsafe extern "C" fn(Object) -> c_long = c"PyLong_AsLong";
        new_text: unsafe extern "C" fn(*const c_char) -> Object = c"PyUnicode_FromString";
        compare: unsafe extern "C" fn(Object, *const c_char) -> c_int = c"PyUnicode_CompareWithASCIIString";
        new_dict: unsafe extern "C" fn() -> Object = c"PyDict_New";
        item: unsafe extern "C" fn(Object, *const c_char) -> Object = c"PyDict_GetItemString";
        set_item: unsafe extern "C" fn(Object, *const c_char, Object) -> c_int = c"PyDict_SetItemString";
        modules: unsafe extern "C" fn() -> Object = c"PyImport_GetModuleDict";
        new_module: unsafe extern "C" fn(*const c_char) -> Object = c"PyModule_New";
        module_dict: unsafe extern "C" fn(Object) -> Object = c"PyModule_GetDict";
        definition: unsafe extern "C" fn(Object) -> *const c_void = c"PyModule_GetDef";
        new_function: unsafe extern "C" fn(*const originals::Method, Object, Object) -> Object = c"PyCFunction_NewEx";
        error: unsafe extern "C" fn() -> Object = c"PyErr_Occurred";
        clear_error: unsafe extern "C" fn() = c"PyErr_Clear";
        restore: unsafe extern "C" fn(Object, Object, Object) = c"PyErr_Restore";
        is_kind: unsafe extern "C" fn(Object, Object) -> c_int = c"PyErr_GivenExceptionMatches";
        traceback_of: unsafe extern "C" fn(Object) -> Object = c"PyException_GetTraceback";
    }
    others {
        // Public from Python 3.13 on.
        is_finalizing: unsafe extern "C" fn() -> c_int =
            library.function(c"Py_IsFinalizing").or_else(|| library.function(c"_Py_IsFinalizing"))?;
        // Both are from Python 3.11.
        enter_tracing: Option<unsafe extern "C" fn(Object)> = library.function(c"PyThreadState_EnterTracing");
        leave_tracing: Option<unsafe extern "C" fn(Object)> = library.function(c"PyThreadState_LeaveTracing");
        exception: Object = class_in(library, c"PyExc_Exception")?;
        base_exception: Object = class_in(library, c"PyExc_BaseException")?;
        types: Vec<(&'static CStr, Object)> = originals::types_in(library)?;
    }
}}

/// The Python of this process, kept loaded.
struct Python {
    api: Api,
    _library: Reference,
}

impl Python {
    /// The Python that is initialised. `None` if there are several: the main thread of one is not that
    /// of another.
    fn running() -> Option<Python> {
        /// The loader's count when it had no Python. Until it loads another object it has none.
        static ABSENT_AT: AtomicU64 = AtomicU64::new(0);
        let loads = objects::load_count();
        if loads == ABSENT_AT.load(Relaxed) {
            return None;
        }
        let libraries = reference::to_objects(|_, image| image.defines(PENDING));
        if libraries.is_empty() {
            ABSENT_AT.store(loads, Relaxed);
        }
        let mut running = libraries.into_iter().filter_map(Python::running_in);
        running.next().filter(|_| running.next().is_none())
    }

    fn running_in(library: Reference) -> Option<Python> {
        let api = Api::of(&library)?;
        // SAFETY: Py_IsInitialized may be called at any time.
        let is_initialized = unsafe { (api.is_initialized)() } != 0;
        is_initialized.then_some(Python {
            api,
            _library: library,
        })
    }
}

/// Null, or a box that is never freed. Used in calls from the Python for which `prepare_callback` was
/// called last.
static FOR_CALLBACK: AtomicPtr<Api> = AtomicPtr::new(ptr::null_mut());

/// Called by the Python package before it adds the function to `gc.callbacks`. False if the process
/// has no Python, or several.
pub fn prepare_callback() -> bool {
    let Some(Python { api, _library }) = Python::running() else {
        return false;
    };
    if !for_callback().is_some_and(|known| ptr::fn_addr_eq(known.item, api.item)) {
        FOR_CALLBACK.store(Box::into_raw(Box::new(api)), Release);
    }
    true
}

fn for_callback() -> Option<&'static Api> {
    // SAFETY: null, or a box that `prepare_callback` published, which is never freed or changed.
    unsafe { FOR_CALLBACK.load(Acquire).as_ref() }
}

/// True if Python is initialised.
pub fn is_running() -> bool {
    Python::running().is_some()
}

/// The minor version of the running Python, as the upper half of `PY_VERSION_HEX`.
pub fn version() -> Option<u32> {
    let Python { api, _library } = Python::running()?;
    // SAFETY: Py_GetVersion may be called at any time. It returns a constant text.
    let text = unsafe { CStr::from_ptr((api.version)()) };
    parse_version(text.to_str().ok()?)
}

/// Parses "3.11.7 (main, ...)".
fn parse_version(text: &str) -> Option<u32> {
    let mut parts = text.split('.');
    let mut number = || parts.next()?.parse::<u32>().ok();
    Some(number()? << 8 | number()?)
}

/// Queues a call for the main thread; false without Python, or if the queue is full.
pub fn add_pending_call(call: Call) -> bool {
    let Some(Python { api, _library }) = Python::running() else {
        return false;
    };
    let add = api.add_pending_call;
    let pending: *mut (Call, Attached) = Box::into_raw(Box::new((call, Attached(api))));
    // SAFETY: Python is initialised and accepts a call from any thread. The function is in this
    // library, which is never unloaded. If Python ends right now, it destroys the state of its
    // pending calls only milliseconds later.
    let is_queued = unsafe { add(run_pending_call, pending.cast()) } == 0;
    if !is_queued {
        // SAFETY: the box is from above, and Python did not take it.
        drop(unsafe { Box::from_raw(pending) });
    }
    is_queued
}

/// Returns 0, or -1 with an exception set.
extern "C" fn run_pending_call(pending: Object) -> c_int {
    // SAFETY: Python runs a call once, with the box that `add_pending_call` passed.
    let (call, python) = *unsafe { Box::from_raw(pending.cast::<(Call, Attached)>()) };
    match call(&python) {
        Ran::Raised => -1,
        Ran::Done | Ran::NotDone => 0,
    }
}

/// The Python that runs a pending call. Its lock is held.
pub struct Attached(Api);

impl Attached {
    /// Calls a function with a number. Does nothing once Python is ending, in another interpreter than the
    /// main one, and outside of a frame. The function and all that it calls by name are not those of the
    /// program; see `originals`.
    pub fn run(&self, function: &Function, argument: usize) -> Ran {
        let python = &self.0;
        // SAFETY: Python's lock is held, which is all that these functions require.
        unsafe {
            // Python's end first runs the pending calls that are left, outside of any frame.
            if (python.is_finalizing)() != 0
                || (python.frame)().is_null()
                || (python.this_interpreter)() != (python.main_interpreter)()
            {
                return Ran::NotDone;
            }
            let thread = (python.thread)();
            // A tracer or profiler of the program must not see this code.
            if let Some(enter) = python.enter_tracing {
                enter(thread);
            }
            let ran = python.call(function, argument);
            if let Some(leave) = python.leave_tracing {
                leave(thread);
            }
            ran.unwrap_or_else(|| python.failed())
        }
    }

    /// True if the program has imported one of these modules.
    pub fn has_imported(&self, names: &[&CStr]) -> bool {
        // SAFETY: Python's lock is held. Both references are borrowed and not kept.
        let modules = unsafe { (self.0.modules)() };
        // SAFETY: Python's lock is held, and `modules` is a dict.
        let is_there = |name: &&CStr| unsafe { self.0.get(modules, name) }.is_some();
        !modules.is_null() && names.iter().any(is_there)
    }
}

/// Interprets the arguments of a `gc` callback: true if a full collection begins, false if it ends,
/// `None` for any other collection.
///
/// # Safety
/// The thread is attached to Python (with a GIL: holds it). `phase` is a str and `info` a dict.
pub unsafe fn full_collection_begins(phase: Object, info: Object) -> Option<bool> {
    let python = for_callback()?;
    // SAFETY: the caller is attached to Python. The reference is borrowed and not kept.
    unsafe {
        let generation = (python.item)(info, c"generation".as_ptr());
        let is_full = !generation.is_null() && (python.number)(generation) == FULL;
        is_full.then(|| (python.compare)(phase, c"start".as_ptr()) == 0)
    }
}

/// The class to which a variable of Python points. It is static and never changes.
fn class_in(library: &Reference, variable: &CStr) -> Option<Object> {
    let variable: *const Object = library.address_of(variable).cast();
    // SAFETY: null, or a variable of a library that is loaded.
    unsafe { variable.as_ref() }.copied()
}

/// An object that is released when this value is dropped.
struct Owned<'a>(Object, &'a Api);

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: this value owns one reference, and lives only in functions of `Api`, where Python's lock is held.
        unsafe { (self.1.release)(self.0) }
    }
}

impl Api {
    fn owned(&self, object: Object) -> Option<Owned<'_>> {
        (!object.is_null()).then(|| Owned(object, self))
    }

    /// An item of a dict, borrowed from it.
    ///
    /// # Safety
    /// Python's lock is held, and `names` is a dict.
    unsafe fn get(&self, names: Object, name: &CStr) -> Option<Object> {
        // SAFETY: as for this function. A missing name sets no error.
        let item = unsafe { (self.item)(names, name.as_ptr()) };
        (!item.is_null()).then_some(item)
    }

    /// # Safety
    /// Python's lock is held, and `names` is a dict.
    unsafe fn set(&self, names: Object, name: &CStr, value: Object) -> Option<()> {
        // SAFETY: as for this function.
        (unsafe { (self.set_item)(names, name.as_ptr(), value) } == 0).then_some(())
    }

    /// `None` if an exception is set, or if the program has replaced a module that the text needs.
    ///
    /// # Safety
    /// Python's lock is held.
    unsafe fn call(&self, function: &Function, argument: usize) -> Option<Ran> {
        // SAFETY: Python's lock is held. `names` is a dict, and it keeps the functions that are borrowed from
        // it alive.
        unsafe {
            let names = self.names()?;
            let mut called = self.get(names, function.name);
            if called.is_none() {
                self.define(function.text, names)?;
                called = self.get(names, function.name);
            }
            let contained = self.get(names, CONTAINED)?;
            let number = self.owned((self.new_number)(argument))?;
            let end = ptr::null_mut::<c_void>();
            let result = self.owned((self.call)(contained, called?, number.0, end))?;
            if (self.is_kind)(result.0, self.base_exception) != 0 {
                let (kind, traceback) = ((self.type_of)(result.0), (self.traceback_of)(result.0));
                // It takes these three references.
                (self.restore)(kind, result.0, traceback);
                std::mem::forget(result);
                return Some(Ran::Raised);
            }
            let is_done = (self.is_true)(result.0) == 1;
            Some(if is_done { Ran::Done } else { Ran::NotDone })
        }
    }

    /// The namespace of the texts, in which `BASE` has run. The interpreter's state keeps it until Python ends.
    ///
    /// # Safety
    /// Python's lock is held.
    unsafe fn names(&self) -> Option<Object> {
        const KEY: &CStr = c"flarena";
        // SAFETY: Python's lock is held. The dict and its items are borrowed from the interpreter.
        unsafe {
            let kept = (self.interpreter_dict)((self.this_interpreter)());
            if kept.is_null() {
                return None;
            }
            if let Some(known) = self.get(kept, KEY) {
                return Some(known);
            }
            let names = self.namespace()?;
            self.define(BASE, names.0)?;
            self.set(kept, KEY, names.0)?;
            Some(names.0)
        }
    }

    /// Runs a text. Not by `PyRun_String`: that would forget that Ctrl-C has ended the program, so Python
    /// would not end by this signal.
    ///
    /// # Safety
    /// Python's lock is held, and `names` is a dict.
    unsafe fn define(&self, text: &CStr, names: Object) -> Option<()> {
        // SAFETY: Python's lock is held.
        unsafe {
            let code = (self.compile)(text.as_ptr(), c"<flarena>".as_ptr(), STATEMENTS);
            let code = self.owned(code)?;
            self.owned((self.evaluate)(code.0, names, names))?;
            Some(())
        }
    }

    /// What a failure leaves: an exception such as KeyboardInterrupt belongs to the program.
    ///
    /// # Safety
    /// Python's lock is held.
    unsafe fn failed(&self) -> Ran {
        // SAFETY: Python's lock is held. The error is borrowed, and `exception` is a static class.
        unsafe {
            let error = (self.error)();
            if !error.is_null() && (self.is_kind)(error, self.exception) == 0 {
                return Ran::Raised;
            }
            (self.clear_error)();
            Ran::NotDone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_the_text_of_python() {
        assert_eq!(parse_version("3.11.7 (main, Jan  1 2026)"), Some(0x030b));
        assert_eq!(parse_version("3.14.0rc2+ (heads/x)"), Some(0x030e));
        assert_eq!(parse_version("three"), None);
    }
}
