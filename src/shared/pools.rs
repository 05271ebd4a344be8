//! Environment variables that make the allocators of other libraries keep less free memory. flarena
//! sets a variable only if the user has not set it. docs/allocators.md has the measurements.

/// One variable that another library reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The environment variable.
    pub name: &'static str,
    pub value: &'static str,
    pub applies: Applies,
    /// The effect; completes "name=value: ...".
    pub effect: &'static str,
}

/// The programs that a variable applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    Always,
    /// Programs that likely contain a mimalloc: PyTorch for aarch64 and free-threaded Python do.
    WithMimalloc,
}

pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "ARROW_DEFAULT_MEMORY_POOL",
        value: "system",
        applies: Applies::Always,
        effect: "Arrow's buffers come from malloc",
    },
    // mimalloc has no timer. It checks any other delay only when the program allocates, so an idle
    // program would keep its free memory.
    Variable {
        name: "MIMALLOC_PURGE_DELAY",
        value: "0",
        applies: Applies::WithMimalloc,
        effect: "mimalloc returns free memory at once",
    },
];

/// Whether a file name is that of a free-threaded interpreter, `python3.14t`, or of its library,
/// `libpython3.14t.so.1.0`.
pub fn is_free_threaded_python(file_name: &str) -> bool {
    let name = file_name.strip_prefix("lib").unwrap_or(file_name);
    let rest = name
        .strip_prefix("python3.")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.is_some_and(|rest| rest == "t" || rest.starts_with("t."))
}

/// The variables for a program of this name on this machine.
pub fn for_program(file_name: &str) -> impl Iterator<Item = &'static Variable> + use<> {
    let has_mimalloc = cfg!(target_arch = "aarch64") || is_free_threaded_python(file_name);
    VARIABLES
        .iter()
        .filter(move |variable| has_mimalloc || variable.applies == Applies::Always)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_threaded_builds_are_recognised_by_their_name() {
        for name in ["python3.13t", "libpython3.14t.so.1.0"] {
            assert!(is_free_threaded_python(name), "{name}");
        }
        for name in ["python3", "python3.13", "libpython3.14.so.1.0", "pythont"] {
            assert!(!is_free_threaded_python(name), "{name}");
        }
    }

    #[test]
    fn arrows_variable_is_for_every_program_and_mimallocs_only_for_those_that_contain_one() {
        let names = |program| {
            for_program(program)
                .map(|variable| variable.name)
                .collect::<Vec<_>>()
        };
        let all = ["ARROW_DEFAULT_MEMORY_POOL", "MIMALLOC_PURGE_DELAY"];
        let count = if cfg!(target_arch = "aarch64") { 2 } else { 1 };
        assert_eq!(names("python3"), all[..count]);
        assert_eq!(names("python3.14t"), all);
    }
}
