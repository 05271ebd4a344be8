//! `__tls_get_addr` on x86-64, which the compiler calls for the thread-local variables of Rust's standard library. glibc
//! has it in the loader, and a library that names glibc's loader cannot be loaded by musl's.
//!
//! Invariant: this library's thread-local variables have a constant distance from the thread pointer (static TLS), because
//! jemalloc's are initial-exec. So the address follows from that of one variable.

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tbss.flarena_anchor, \"awT\", @nobits",
    "flarena_anchor: .zero 8",
    ".popsection",
    ".globl __wrap___tls_get_addr",
    ".hidden __wrap___tls_get_addr",
    ".type __wrap___tls_get_addr, @function",
    "__wrap___tls_get_addr:",
    // The argument points to two words: the module, and the variable's offset in the module's variables.
    "mov rax, [rdi + 8]",
    "add rax, fs:[0]",
    "add rax, [rip + flarena_anchor@GOTTPOFF]",
    "lea rcx, [flarena_anchor@DTPOFF]",
    "sub rax, rcx",
    "ret",
);
