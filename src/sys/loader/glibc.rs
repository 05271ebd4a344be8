//! The only reference to a symbol that other libcs lack. It is weak, so that musl's loader accepts this library in its
//! own programs: there the address is null, and the library passes all calls on.

std::arch::global_asm!(
    ".pushsection .data.rel.ro.flarena_stack_end, \"aw\"",
    ".balign 8",
    ".globl flarena_stack_end",
    ".hidden flarena_stack_end",
    "flarena_stack_end:",
    ".weak __libc_stack_end",
    ".quad __libc_stack_end",
    ".popsection",
);

unsafe extern "C" {
    /// The loader writes the address before any code of this library runs.
    #[link_name = "flarena_stack_end"]
    static STACK_END: *const *const usize;
}

/// A variable of glibc's loader: where `argc` lies on the initial stack, then argv and envp. Null if the process has another
/// libc.
pub fn stack_end() -> *const *const usize {
    // SAFETY: the word is constant after the loader has relocated this library.
    unsafe { STACK_END }
}

/// True if glibc is the libc of this process.
pub fn is_here() -> bool {
    !stack_end().is_null()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::objects;

    #[test]
    fn the_address_agrees_with_the_loaders_symbol_table() {
        assert!(is_here());
        assert_eq!(stack_end().cast(), objects::in_libc(c"__libc_stack_end"));
    }
}
