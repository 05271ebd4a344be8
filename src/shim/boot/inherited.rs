//! `FLARENA_INHERITED`: what a process with this library passes to its children, as
//! `name=value;name=value`. From it a child knows which values are its parent's defaults and not the
//! user's choice, and which messages were written already.

use std::ffi::CString;

use flarena_sys::env::{self, Snapshot};
use flarena_sys::identity::{self, FIRST, JOB, NAMED, NEAREST};

/// The values that this process adds to those of its parent.
#[derive(Default)]
pub struct Inherited {
    pub arena_max: Option<String>,
    pub warned: Option<String>,
    pub start: Option<String>,
}

/// The fields by which children name themselves: the first process, the one that has the name, the
/// nearest NVFlare process, and its job.
fn of_identity(environment: &Snapshot) -> [(&'static str, Option<String>); 4] {
    let found = identity::identity();
    let first = environment.inherited(FIRST).is_none();
    [
        (FIRST, first.then(|| std::process::id().to_string())),
        (NAMED, found.named()),
        (NEAREST, found.proc.map(|proc| proc.name().to_owned())),
        (JOB, found.job_id.clone()),
    ]
}

impl Inherited {
    pub fn export(self, environment: &Snapshot) {
        let mut text = String::new();
        let fields = [
            ("arena_max", self.arena_max),
            ("warned", self.warned),
            ("told", self.start),
        ];
        for (name, value) in fields.into_iter().chain(of_identity(environment)) {
            let parents = || Some(String::from_utf8_lossy(environment.inherited(name)?).into());
            if let Some(value) = value.or_else(parents) {
                let separator = if text.is_empty() { "" } else { ";" };
                text.push_str(&format!("{separator}{name}={value}"));
            }
        }
        if !text.is_empty() {
            export(env::INHERITED, &text);
        }
    }
}

/// Sets a variable for the children. Never in a set-user-id process.
pub fn export(name: &str, value: &str) {
    if env::is_secure() {
        return;
    }
    if let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) {
        // SAFETY: both are NUL-terminated and copied; no other thread runs yet.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
}
