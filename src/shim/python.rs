//! The CPython interpreter of this process, if there is one: runs code in its main thread between
//! two instructions (`Py_AddPendingCall`), and reads the arguments of `gc` callbacks.
//!
//! Invariant: an address of Python is used only while a `Reference` keeps its library loaded, or in a
//! call from Python. An embedding program may close libpython, and load it again.
//!
//! A main thread that waits in C runs no pending call. A pending call looks nothing up: the loader's
//! lock may be held by a thread that waits for Python's lock.

use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::iter;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use flarena_sys::loader::objects;
use flarena_sys::loader::reference::{self, Reference};

/// `Py_file_input`: the text consists of statements.
const STATEMENTS: c_int = 257;
/// The oldest generation. Its collection includes all others.
const FULL: c_long = 2;
/// An object that defines it is a Python.
const PENDING: &CStr = c"Py_AddPendingCall";

/// Its functions decide what may run, and which exceptions belong to the program.
const SAFETY: &str = concat!(include_str!("../python/flarena/_safety.py"), "\0");

/// A text for [`Attached::run`] around statements that are indented by four spaces. It fails with
/// `raised` in the namespace if an exception belongs to the program, such as that of a signal handler.
macro_rules! guarded_statements {
    ($statements:literal) => {
        concat!(
            "try:\n",
            $statements,
            "except BaseException as error:\n",
            "    if belongs_to_program(error):\n",
            "        raised = True\n",
            "        raise\n\0"
        )
    };
}
pub(crate) use guarded_statements;

/// The result of a run of statements.
#[derive(Clone, Copy, Default)]
pub struct Ran {
    /// The statements defined `done`.
    pub is_done: bool,
    /// An exception of the program is set.
    raises: bool,
}

impl Ran {
    /// The return value of the pending call.
    pub fn status(self) -> c_int {
        if self.raises {
            -1
        } else {
            0
        }
    }
}

pub type Object = *mut c_void;
/// A function for the main thread to run; returns 0, or -1 with an exception set. It passes its argument to [`Attached::new`].
pub type Call = extern "C" fn(Object) -> c_int;

/// The functions of Python that are used. Every version from 3.9 exports them.
struct Api {
    is_initialized: unsafe extern "C" fn() -> c_int,
    version: unsafe extern "C" fn() -> *const c_char,
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
    error: unsafe extern "C" fn() -> Object,
    fetch: unsafe extern "C" fn(*mut Object, *mut Object, *mut Object),
    restore: unsafe extern "C" fn(Object, Object, Object),
    is_kind: unsafe extern "C" fn(Object, Object) -> c_int,
    /// The address of the class `Exception`.
    exception: *const Object,
    thread: unsafe extern "C" fn() -> Object,
    /// Both are from Python 3.11.
    enter_tracing: Option<unsafe extern "C" fn(Object)>,
    leave_tracing: Option<unsafe extern "C" fn(Object)>,
    compare: unsafe extern "C" fn(Object, *const c_char) -> c_int,
    number: unsafe extern "C" fn(Object) -> c_long,
}

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

/// The functions for [`full_collection_begins`], which is called often.
#[derive(Clone, Copy)]
struct ForCallback {
    item: unsafe extern "C" fn(Object, *const c_char) -> Object,
    compare: unsafe extern "C" fn(Object, *const c_char) -> c_int,
    number: unsafe extern "C" fn(Object) -> c_long,
}

/// Null, or a box that is never freed. Used in calls from the Python for which `prepare_callback` was
/// called last.
static FOR_CALLBACK: AtomicPtr<ForCallback> = AtomicPtr::new(ptr::null_mut());

/// Called by the Python package before it adds the function to `gc.callbacks`. False if the process
/// has no Python, or several.
pub fn prepare_callback() -> bool {
    let Some(Python { api, _library }) = Python::running() else {
        return false;
    };
    let Api {
        item,
        compare,
        number,
        ..
    } = api;
    let is_known = for_callback().is_some_and(|known| ptr::fn_addr_eq(known.item, item));
    if !is_known {
        let found = ForCallback {
            item,
            compare,
            number,
        };
        FOR_CALLBACK.store(Box::into_raw(Box::new(found)), Release);
    }
    true
}

fn for_callback() -> Option<&'static ForCallback> {
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
    let api = Box::into_raw(Box::new(api));
    // SAFETY: Python is initialised and accepts a call from any thread. The function is in this
    // library, which is never unloaded. If Python ends right now, it destroys the state of its
    // pending calls only milliseconds later.
    let is_queued = unsafe { add(call, api.cast()) } == 0;
    if !is_queued {
        // SAFETY: the box is from above, and Python did not take it.
        drop(unsafe { Box::from_raw(api) });
    }
    is_queued
}

/// The Python that runs a pending call. Its lock is held.
pub struct Attached(Box<Api>);

impl Attached {
    /// # Safety
    /// Only in a call of [`add_pending_call`], once, with its argument.
    pub unsafe fn new(argument: Object) -> Attached {
        // SAFETY: the argument is the box that `add_pending_call` passed.
        Attached(unsafe { Box::from_raw(argument.cast()) })
    }

    /// Runs the texts of `_safety.py` and of the package's other files in one namespace. Each text
    /// ends in a NUL. Runs nothing outside of the main interpreter's frames.
    pub fn run(&self, texts: &[&str]) -> Ran {
        // SAFETY: Python's lock is held.
        unsafe { self.0.run_texts(texts) }
    }

    /// True if the program has imported one of these modules.
    pub fn has_imported(&self, names: &[&CStr]) -> bool {
        // SAFETY: Python's lock is held. Both references are borrowed and not kept.
        let modules = unsafe { (self.0.modules)() };
        names.iter().any(|name| {
            // SAFETY: Python's lock is held, and `modules` is a dict. A missing name sets no error.
            !modules.is_null() && !unsafe { (self.0.item)(modules, name.as_ptr()) }.is_null()
        })
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

impl Api {
    fn of(library: &Reference) -> Option<Api> {
        // SAFETY: each field has the type that Python's headers declare for the function.
        unsafe {
            Some(Api {
                is_initialized: library.function(c"Py_IsInitialized")?,
                version: library.function(c"Py_GetVersion")?,
                add_pending_call: library.function(PENDING)?,
                this_interpreter: library.function(c"PyInterpreterState_Get")?,
                main_interpreter: library.function(c"PyInterpreterState_Main")?,
                frame: library.function(c"PyEval_GetFrame")?,
                builtins: library.function(c"PyEval_GetBuiltins")?,
                new_dict: library.function(c"PyDict_New")?,
                set_item: library.function(c"PyDict_SetItemString")?,
                item: library.function(c"PyDict_GetItemString")?,
                run: library.function(c"PyRun_StringFlags")?,
                modules: library.function(c"PyImport_GetModuleDict")?,
                release: library.function(c"Py_DecRef")?,
                clear_error: library.function(c"PyErr_Clear")?,
                error: library.function(c"PyErr_Occurred")?,
                fetch: library.function(c"PyErr_Fetch")?,
                restore: library.function(c"PyErr_Restore")?,
                is_kind: library.function(c"PyErr_GivenExceptionMatches")?,
                exception: library.address_of(c"PyExc_Exception").cast(),
                thread: library.function(c"PyThreadState_Get")?,
                enter_tracing: library.function(c"PyThreadState_EnterTracing"),
                leave_tracing: library.function(c"PyThreadState_LeaveTracing"),
                compare: library.function(c"PyUnicode_CompareWithASCIIString")?,
                number: library.function(c"PyLong_AsLong")?,
            })
        }
    }

    /// # Safety
    /// Python's lock is held.
    unsafe fn run_texts(&self, texts: &[&str]) -> Ran {
        let mut ran = Ran::default();
        // SAFETY: Python's lock is held, which is all that these functions require. The frame, the
        // builtins and the item are borrowed; the dict and the result are owned until released.
        unsafe {
            // At Python's end, pending calls that are left run outside of any frame.
            if (self.frame)().is_null() || (self.this_interpreter)() != (self.main_interpreter)() {
                return ran;
            }
            let names = (self.new_dict)();
            if names.is_null() {
                (self.clear_error)();
                return ran;
            }
            if (self.set_item)(names, c"__builtins__".as_ptr(), (self.builtins)()) == 0 {
                let thread = (self.thread)();
                // A tracer or profiler of the program must not see these statements.
                if let Some(enter) = self.enter_tracing {
                    enter(thread);
                }
                ran.raises = iter::once(&SAFETY)
                    .chain(texts)
                    .any(|text| self.raises_for_program(text, names));
                if let Some(leave) = self.leave_tracing {
                    leave(thread);
                }
                ran.is_done = !ran.raises && !(self.item)(names, c"done".as_ptr()).is_null();
            } else {
                (self.clear_error)();
            }
            // The finalizers of the names must not see the exception, so it is not set here.
            if ran.raises {
                let (mut kind, mut value, mut trace) =
                    (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
                (self.fetch)(&raw mut kind, &raw mut value, &raw mut trace);
                (self.release)(names);
                (self.restore)(kind, value, trace);
            } else {
                (self.release)(names);
            }
        }
        ran
    }

    /// Runs one text. True if it raises an exception that belongs to the program, which is then set.
    ///
    /// # Safety
    /// Python's lock is held, and `names` is a dict.
    unsafe fn raises_for_program(&self, text: &str, names: Object) -> bool {
        let Ok(text) = CStr::from_bytes_with_nul(text.as_bytes()) else {
            return false;
        };
        // SAFETY: Python's lock is held. The item and the error are borrowed, and `exception` is the
        // address of a class that lives as long as Python.
        unsafe {
            let result = (self.run)(text.as_ptr(), STATEMENTS, names, names, ptr::null_mut());
            if !result.is_null() {
                (self.release)(result);
                return false;
            }
            let is_ordinary =
                self.exception.is_null() || (self.is_kind)((self.error)(), *self.exception) != 0;
            // PyDict_GetItemString would clear the error.
            let (mut kind, mut value, mut trace) =
                (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            (self.fetch)(&raw mut kind, &raw mut value, &raw mut trace);
            let is_raised = !(self.item)(names, c"raised".as_ptr()).is_null();
            (self.restore)(kind, value, trace);
            if is_ordinary && !is_raised {
                (self.clear_error)();
                return false;
            }
        }
        true
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
