//! Link options of libflarena.so.

fn main() {
    // .dynsym must not share a page with code, because symbols.rs writes to it once, at load. The linker
    // of the portable build (zig's) always separates them, and does not know the option.
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_default();
    if !linker.contains("zigcc") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,separate-code");
    }
    for option in [
        // The program has blocks of this library until it ends.
        "-Wl,-z,nodelete",
        "-Wl,-soname,libflarena.so",
        // The library's malloc and free must be a pair. If another allocator came first in LD_PRELOAD,
        // the linker could bind one of them to that allocator.
        "-Wl,-Bsymbolic",
        // Functions that jemalloc calls; backends/jemalloc/libc_calls.rs has the replacements.
        "-Wl,--wrap=secure_getenv",
        "-Wl,--wrap=readlink",
        "-Wl,--wrap=pthread_atfork",
        "-Wl,--wrap=mmap",
        "-Wl,--wrap=munmap",
        "-Wl,--wrap=mprotect",
        "-Wl,--wrap=madvise",
        "-Wl,--wrap=clock_gettime",
        "-Wl,--wrap=sysconf",
        "-Wl,--wrap=sched_getaffinity",
        "-Wl,--wrap=dlsym",
        "-Wl,--wrap=dladdr",
        "-Wl,--wrap=_rjem_je_pages_boot",
        "-Wl,--wrap=_rjem_je_arena_choose_hard",
    ] {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
