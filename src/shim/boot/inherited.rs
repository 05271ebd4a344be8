//! `FLARENA_INHERITED`: what a process with this library passes to its children, as
//! `name=value;name=value`. From it a child knows which values are its parent's defaults and not the
//! user's choice, and which messages were written already.

use flarena_sys::env::{self, Snapshot};
use flarena_sys::identity::{self, FIRST, JOB, NAMED, NEAREST};

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

/// Passes on the parent's values and those that this process adds.
pub fn pass_on(environment: &Snapshot, added: [(&'static str, Option<String>); 3]) {
    let mut fields = Vec::new();
    for (name, value) in added.into_iter().chain(of_identity(environment)) {
        let parents = || Some(String::from_utf8_lossy(environment.inherited(name)?).into());
        let value: Option<String> = value.or_else(parents);
        fields.extend(value.map(|value| format!("{name}={value}")));
    }
    if !fields.is_empty() {
        export(env::INHERITED, &fields.join(";"));
    }
}

/// Sets a variable for the children. Never in a set-user-id process.
pub fn export(name: &str, value: &str) {
    if !env::is_secure() {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var(name, value) };
    }
}
