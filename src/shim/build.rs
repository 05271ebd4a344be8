//! Link options of libflarena.so, and a check of the embedded jemalloc's version.

/// The functions that jemalloc calls under another name, with the macros of libc_calls.rs around them.
const WRAPPED: &str = include_str!("backends/jemalloc/wrapped.rs");

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
        "-z,nodelete",
        "-soname,libflarena.so",
        // The library's malloc and free must be a pair. If another allocator came first in LD_PRELOAD,
        // the linker could bind one of them to that allocator.
        "-Bsymbolic",
    ] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{option}");
    }
    let is_name = |word: &&str| !word.contains(['!', '{', '}']);
    let wrapped = WRAPPED.split_whitespace().filter(is_name);
    // backends/jemalloc/tls.rs has the first one.
    for function in std::iter::once("__tls_get_addr").chain(wrapped) {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={function}");
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
