//! Link options of libflarena.so.

fn main() {
    // .dynsym must not share a page with code: symbols.rs writes to it once, at load. The linker of
    // the portable build (zig's) never lays them together, and does not know the option.
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_default();
    if !linker.contains("zigcc") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,separate-code");
    }
    for option in [
        // Blocks that we handed out outlive any dlclose.
        "-Wl,-z,nodelete",
        "-Wl,-soname,libflarena.so",
        // Our own malloc and free must be a pair. With another allocator before us in LD_PRELOAD, one
        // would be inlined from here and the other be that allocator's.
        "-Wl,-Bsymbolic",
        // What jemalloc asks of libc and of itself: backends/jemalloc/libc_calls.rs answers.
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
