//! Turns allocation sites on in a running process, for `flarena who --start`.
//!
//! The governor looks up what it needs of Python. Then Python's main thread checks that its frames are read correctly, in
//! a pending call, as at the start of a process (`_frame_check.py`).

use std::time::Duration;

use flarena_shared::sites::Who;

use crate::abi::counted;
use crate::python::{self, text, Attached, Function, MainThreadRequest, Ran};
use crate::report;
use flarena_sites as sites;
use flarena_sys::{owner, seccomp};

/// Time limit for Python's main thread to check its frames.
const TIMEOUT: Duration = Duration::from_secs(5);

const CHECK_FRAMES: Function = Function {
    name: c"start_late",
    text: text(concat!(
        include_str!("../python/_frame_check.py"),
        "\n\n",
        include_str!("start_late.py"),
        "\0"
    )),
};
const NOT_IMPORTED: &str =
    "its Python has not imported ctypes and threading, which the check of its frames needs";
const NOT_RUN: &str = "its main thread has not run the check of its frames within 5 s, because it is in C code or, before \
     Python 3.13, computes without a pause; as soon as it runs the check, sites are on";

pub static CHECK: MainThreadRequest = MainThreadRequest::new(check_frames);

/// Turns sites on, and returns their state. If Python's frames are not read, it has the reason.
pub fn start() -> Who {
    let started = try_start();
    let mut who = report::sites::document();
    if let Err(obstacle) = started {
        who.reason = Some(obstacle.to_owned());
    }
    who
}

/// Succeeds also if the check has failed, which is in the report's reason.
fn try_start() -> Result<(), &'static str> {
    if sites::reads_python() {
        return Ok(());
    }
    if CHECK.is_pending() {
        return Err(NOT_RUN);
    }
    if sites::were_stopped() {
        return Ok(());
    }
    if !owner::owns_malloc() {
        return Err("another library serves its malloc");
    }
    let version = python::version();
    if version.is_some() && !seccomp::allows_rare_calls() {
        return Err("a seccomp filter may not allow process_vm_readv");
    }
    if !sites::is_on() {
        counted::watch_fast_path();
        sites::set_late();
    }
    let Some(version) = version else {
        if !sites::is_on() {
            sites::start_native();
        }
        return Ok(());
    };
    sites::prepare(version)?;
    report::sites::forget_reason();
    if !CHECK.ask() {
        return Err("its Python accepts no call at the moment: try again");
    }
    CHECK.wait(TIMEOUT).then_some(()).ok_or(NOT_RUN)
}

/// The pending call of `CHECK`.
fn check_frames(python: &Attached) -> Ran {
    // Without threading the end of Python is not recognised.
    let can_check = python.has_imported(&[c"ctypes"]) && python.has_imported(&[c"threading"]);
    let ran = if can_check {
        python.run(&CHECK_FRAMES, report::sites::ask as *const () as usize)
    } else {
        report::sites::set_reason(NOT_IMPORTED);
        Ran::NotDone
    };
    if !sites::reads_python() {
        report::sites::set_reason_if_none("the check of its frames did not run: try again");
    }
    CHECK.finish();
    ran
}
