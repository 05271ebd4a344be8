//! Finds the CPython interpreter of this process, once, when the Python package requests it. Never
//! called inside malloc.

use std::ffi::c_void;
use std::fmt::Write;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::layout::{self, Layout, DEBUG_WORDS};
use super::memory::{self, Checked, Memory};
use super::table;
use super::walk::{self, Interpreter, RawFrame};
use flarena_sys::loader::objects;
use flarena_sys::loader::symbols::first_definition as first;

/// The interpreter, and the function that returns the calling thread's state.
pub struct Python {
    pub interpreter: Interpreter,
    this_thread: unsafe extern "C" fn() -> *mut c_void,
}

/// Null until `prepare` succeeds. A value is never freed or changed, and replaced only while no thread
/// reads frames: a Python that ended may be unloaded, and another one started.
static PYTHON: AtomicPtr<Python> = AtomicPtr::new(std::ptr::null_mut());

#[inline]
pub fn prepared() -> Option<&'static Python> {
    // SAFETY: null, or a box that prepare() leaked.
    unsafe { PYTHON.load(Ordering::Acquire).as_ref() }
}

impl Python {
    fn is_same(&self, other: &Python) -> bool {
        std::ptr::fn_addr_eq(self.this_thread, other.this_thread)
            && self.interpreter == other.interpreter
    }

    /// Visits the frames of the calling thread. A thread without a Python state has none.
    #[inline(always)]
    pub fn walk(&self, memory: &impl Memory, each: impl FnMut(RawFrame)) {
        // SAFETY: the function takes no arguments and reads a thread-local value.
        let thread = unsafe { (self.this_thread)() } as usize;
        if thread != 0 {
            walk::walk(memory, &self.interpreter, thread, each);
        }
    }
}

/// Finds the interpreter of this version (the upper half of `PY_VERSION_HEX`). May allocate.
pub fn prepare(version: u32) -> Result<(), &'static str> {
    if !memory::is_permitted() {
        return Err("the system does not let process_vm_readv read this process");
    }
    let missing = "this process has no Python interpreter";
    // SAFETY: CPython declares the function with this type.
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
    // An equal one is kept, because each is leaked and a client may ask again and again.
    if !prepared().is_some_and(|known| known.is_same(&python)) {
        PYTHON.store(Box::into_raw(Box::new(python)), Ordering::Release);
    }
    Ok(())
}

fn find_layout(version: u32) -> Result<Layout, &'static str> {
    if let Some(layout) = layout::known(version) {
        return Ok(layout);
    }
    let runtime = first(c"_PyRuntime") as usize;
    if runtime == 0 {
        return Err(layout::UNKNOWN);
    }
    let memory = Checked::new();
    let mut words = [0; DEBUG_WORDS];
    for (index, word) in words.iter_mut().enumerate() {
        let read = memory.word(runtime + index * size_of::<u64>());
        *word = read.ok_or(layout::UNKNOWN)? as u64;
    }
    layout::from_debug_offsets(version, &words)
}

/// The calling thread's frames, read by the kernel, so that a wrong layout gives wrong text and no
/// crash. One line for each frame: file, line, function, separated by tabs.
pub fn check_frames() -> String {
    let mut text = String::new();
    let Some(python) = prepared() else {
        return text;
    };
    let memory = Checked::new();
    python.walk(&memory, |raw| {
        let (file, function, line) = table::decode(&memory, &python.interpreter, &raw);
        let _ = writeln!(text, "{}\t{line}\t{}", file.as_str(), function.as_str());
    });
    text
}
