//! Link options of libflarena.so, and a check of the embedded jemalloc's version.

fn main() {
    check_jemalloc();
    // .dynsym must not share a page with code, because symbols.rs writes to it once, at load. The linker
    // of the portable build (zig's) always separates them, and does not know the option.
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_default();
    if !linker.contains("zigcc") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,separate-code");
        link_unwinder();
    }
    for option in [
        // The program has blocks of this library until it ends.
        "-Wl,-z,nodelete",
        "-Wl,-soname,libflarena.so",
        // The library's malloc and free must be a pair. If another allocator came first in LD_PRELOAD,
        // the linker could bind one of them to that allocator.
        "-Wl,-Bsymbolic",
        // backends/jemalloc/tls.rs
        "-Wl,--wrap=__tls_get_addr",
        // Functions that jemalloc calls; backends/jemalloc/libc_calls.rs has the replacements.
        "-Wl,--wrap=secure_getenv",
        "-Wl,--wrap=readlink",
        "-Wl,--wrap=pthread_atfork",
        "-Wl,--wrap=mmap",
        "-Wl,--wrap=munmap",
        "-Wl,--wrap=mprotect",
        "-Wl,--wrap=madvise",
        "-Wl,--wrap=clock_gettime",
        "-Wl,--wrap=gettimeofday",
        "-Wl,--wrap=sysconf",
        "-Wl,--wrap=sched_getaffinity",
        "-Wl,--wrap=dlsym",
        "-Wl,--wrap=dladdr",
        "-Wl,--wrap=_dl_find_object",
        "-Wl,--wrap=pthread_mutex_init",
        "-Wl,--wrap=pthread_mutex_lock",
        "-Wl,--wrap=pthread_mutex_trylock",
        "-Wl,--wrap=pthread_mutex_unlock",
        "-Wl,--wrap=pthread_mutexattr_init",
        "-Wl,--wrap=pthread_mutexattr_settype",
        "-Wl,--wrap=pthread_mutexattr_destroy",
        "-Wl,--wrap=pthread_cond_init",
        "-Wl,--wrap=pthread_cond_signal",
        "-Wl,--wrap=pthread_cond_wait",
        "-Wl,--wrap=pthread_cond_timedwait",
        "-Wl,--wrap=pthread_key_create",
        "-Wl,--wrap=pthread_setspecific",
        "-Wl,--wrap=pthread_join",
        "-Wl,--wrap=pthread_sigmask",
        "-Wl,--wrap=pthread_setname_np",
        "-Wl,--wrap=sigfillset",
        "-Wl,--wrap=sched_getcpu",
        "-Wl,--wrap=sched_setaffinity",
        "-Wl,--wrap=sched_yield",
        "-Wl,--wrap=getpid",
        "-Wl,--wrap=sbrk",
        "-Wl,--wrap=syscall",
        "-Wl,--wrap=_rjem_je_pages_boot",
        "-Wl,--wrap=_rjem_je_arena_choose_hard",
    ] {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}

/// backends/jemalloc/libc_calls.rs writes to a structure that jemalloc keeps to itself. Its numbers are those of this
/// version. For another one, compile `offsetof(tsd_t, TSD_MANGLE(binshards))` and `sizeof(tsd_binshards_t)` against
/// the headers of a configured source tree (include/jemalloc/internal), and change them there.
fn check_jemalloc() {
    const VERSION: &str = "\"5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8\"";
    let Ok(root) = std::env::var("DEP_JEMALLOC_ROOT") else {
        println!("cargo:warning=the version of the jemalloc in JEMALLOC_OVERRIDE is not checked");
        return;
    };
    let header = std::fs::read_to_string(format!("{root}/include/jemalloc/jemalloc.h"))
        .expect("jemalloc installs its header");
    let version = header
        .lines()
        .find_map(|line| line.strip_prefix("#define JEMALLOC_VERSION "));
    assert_eq!(
        version,
        Some(VERSION),
        "the layout of this jemalloc is unknown: see build.rs"
    );
}

/// Puts gcc's unwinder into the library, as zig does with its own: a machine with musl has no libgcc_s.so.1.
fn link_unwinder() {
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(format!("{out}/libgcc_s.so"), "GROUP ( -lgcc_eh -lgcc )\n")
        .expect("OUT_DIR is writable");
    println!("cargo:rustc-link-search=native={out}");
}
