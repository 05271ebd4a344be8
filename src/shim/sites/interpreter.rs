//! Finding Python in this process, once, by the Python package's request: never inside malloc.

use std::ffi::{c_void, CStr};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::layout::{self, Layout, DEBUG_WORDS};
use super::memory::{self, Checked, Memory};
use super::table;
use super::walk::{self, Interpreter, RawFrame};
use flarena_sys::{loader::objects, loader::symbols};

/// What is read of the interpreter, and how this thread's state is found.
pub struct Python {
    pub interpreter: Interpreter,
    this_thread: unsafe extern "C" fn() -> *mut c_void,
}

/// Null until it was found; made once and never freed.
static PYTHON: AtomicPtr<Python> = AtomicPtr::new(std::ptr::null_mut());

#[inline]
pub fn prepared() -> Option<&'static Python> {
    // SAFETY: null, or a value that prepare() leaked.
    unsafe { PYTHON.load(Ordering::Acquire).as_ref() }
}

impl Python {
    /// The frames of the calling thread; none where it has no state of Python's.
    #[inline(always)]
    pub fn walk(&self, memory: &impl Memory, each: impl FnMut(RawFrame)) {
        // SAFETY: a function of the interpreter's without arguments; it reads a thread-local value.
        let thread = unsafe { (self.this_thread)() } as usize;
        if thread != 0 {
            walk::walk(memory, &self.interpreter, thread, each);
        }
    }
}

/// Finds the interpreter of this version (the upper half of `PY_VERSION_HEX`). May allocate.
pub fn prepare(version: u32) -> Result<(), &'static str> {
    if !memory::may_check() {
        return Err("the system does not let process_vm_readv read this process");
    }
    let missing = "this process has no interpreter to be asked";
    // SAFETY: the type is that of CPython's function.
    let this_thread = unsafe { objects::cast(first(c"PyGILState_GetThisThreadState")) };
    let python = Python {
        this_thread: this_thread.ok_or(missing)?,
        interpreter: Interpreter {
            layout: find_layout(version)?,
            code_type: first(c"PyCode_Type") as usize,
        },
    };
    if python.interpreter.code_type == 0 {
        return Err(missing);
    }
    if prepared().is_none() {
        PYTHON.store(Box::into_raw(Box::new(python)), Ordering::Release);
    }
    Ok(())
}

fn find_layout(version: u32) -> Result<Layout, &'static str> {
    if let Some(layout) = layout::known(version) {
        return Ok(layout);
    }
    let told = first(c"_PyRuntime") as usize;
    if told == 0 {
        return Err(layout::UNKNOWN);
    }
    let mut words = [0; DEBUG_WORDS];
    for (index, word) in words.iter_mut().enumerate() {
        let read = Checked.word(told + index * size_of::<u64>());
        *word = read.ok_or(layout::UNKNOWN)? as u64;
    }
    layout::told(version, &words)
}

fn first(name: &CStr) -> *const c_void {
    symbols::first(name)
}

/// The calling thread's frames as the kernel reads them for us: a wrong layout gives nonsense or
/// nothing, and no crash. One line each: file, line, function, with tabs between.
pub fn check_frames() -> String {
    let mut text = String::new();
    let Some(python) = prepared() else {
        return text;
    };
    python.walk(&Checked, |raw| {
        let (file, function, line) = table::decode(&Checked, &python.interpreter, &raw);
        for part in [
            file.as_bytes(),
            b"\t",
            line.to_string().as_bytes(),
            b"\t",
            function.as_bytes(),
            b"\n",
        ] {
            text.push_str(&String::from_utf8_lossy(part));
        }
    });
    text
}
