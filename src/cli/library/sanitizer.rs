//! Runtimes of sanitizers. Each must come first in the process and serve malloc itself. Behind another malloc it ends the
//! program or crashes.

use std::path::Path;

/// The names of gcc and clang, without `lib` and without clang's prefix.
const RUNTIMES: [&str; 5] = ["asan", "hwasan", "lsan", "msan", "tsan"];

/// True for the file name of a runtime, such as `libasan.so.8` or `libclang_rt.tsan-x86_64.so`.
pub fn is_runtime(file: &str) -> bool {
    let name = Path::new(file).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let Some(name) = name.strip_prefix("lib") else {
        return false;
    };
    let name = name.strip_prefix("clang_rt.").unwrap_or(name);
    RUNTIMES.iter().any(|runtime| {
        name.strip_prefix(runtime)
            .is_some_and(|rest| rest.starts_with(['.', '-', '_']))
    })
}

/// True for the function with which a runtime starts, such as `__asan_init`.
pub fn is_init(symbol: &[u8]) -> bool {
    let name = symbol.strip_prefix(b"__").unwrap_or_default();
    let runtime = name.strip_suffix(b"_init").unwrap_or_default();
    RUNTIMES.iter().any(|name| name.as_bytes() == runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_of_gcc_and_clang_are_recognised() {
        for name in [
            "/usr/lib/gcc/x86_64-linux-gnu/12/libasan.so",
            "libtsan.so.2",
            "libclang_rt.asan-x86_64.so",
            "/x/libclang_rt.hwasan_cxx.so",
        ] {
            assert!(is_runtime(name), "{name}");
        }
        for name in [
            "libubsan.so.1",
            "libasanitary.so",
            "asan.so",
            "",
            "libc.so.6",
        ] {
            assert!(!is_runtime(name), "{name}");
        }
    }

    #[test]
    fn the_functions_with_which_runtimes_start_are_recognised() {
        for name in ["__asan_init", "__hwasan_init", "__tsan_init"] {
            assert!(is_init(name.as_bytes()), "{name}");
        }
        for name in ["", "__init", "__ubsan_init", "asan_init", "__asan_init_v1"] {
            assert!(!is_init(name.as_bytes()), "{name}");
        }
    }
}
