//! Allocators that other libraries bring along: the environment that keeps them small, where the user
//! has chosen nothing. docs/allocators.md has the measurements behind each row.

/// One variable that another library reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The environment variable.
    pub name: &'static str,
    pub value: &'static str,
    pub applies: Applies,
    /// What comes of it; completes "name=value: ...".
    pub effect: &'static str,
}

/// To which programs a row applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    Always,
    /// A mimalloc is likely there: PyTorch for aarch64 brings one, and so does free-threaded Python.
    WithMimalloc,
}

pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "ARROW_DEFAULT_MEMORY_POOL",
        value: "system",
        applies: Applies::Always,
        effect: "Arrow's buffers come from malloc",
    },
    // Not a timer: mimalloc looks at any other delay only when the program allocates, so an idle one
    // would keep everything.
    Variable {
        name: "MIMALLOC_PURGE_DELAY",
        value: "0",
        applies: Applies::WithMimalloc,
        effect: "mimalloc gives back at once what is free",
    },
];

/// The interpreter of a free-threaded build, by the name of its file: `python3.14t`. Also its library,
/// `libpython3.14t.so.1.0`.
pub fn is_free_threaded_python(file_name: &str) -> bool {
    let name = file_name.strip_prefix("lib").unwrap_or(file_name);
    let rest = name
        .strip_prefix("python3.")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.is_some_and(|rest| rest == "t" || rest.starts_with("t."))
}

/// The variables for a program of this name on this machine.
pub fn for_program(file_name: &str) -> impl Iterator<Item = &'static Variable> {
    let has_mimalloc = cfg!(target_arch = "aarch64") || is_free_threaded_python(file_name);
    VARIABLES
        .iter()
        .filter(move |one| has_mimalloc || one.applies == Applies::Always)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_threaded_builds_are_known_by_their_name() {
        for name in ["python3.13t", "libpython3.14t.so.1.0"] {
            assert!(is_free_threaded_python(name), "{name}");
        }
        for name in ["python3", "python3.13", "libpython3.14.so.1.0", "pythont"] {
            assert!(!is_free_threaded_python(name), "{name}");
        }
    }

    #[test]
    fn arrow_is_for_every_program_and_mimalloc_for_those_that_have_it() {
        let names = |program| for_program(program).map(|one| one.name).collect::<Vec<_>>();
        let all = ["ARROW_DEFAULT_MEMORY_POOL", "MIMALLOC_PURGE_DELAY"];
        let count = if cfg!(target_arch = "aarch64") { 2 } else { 1 };
        assert_eq!(names("python3"), all[..count]);
        assert_eq!(names("python3.14t"), all);
    }
}
