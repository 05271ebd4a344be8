//! The symbols that only glibc defines. The references are weak, so that musl's loader accepts this library in its
//! own programs: there every address is null, and the library passes all calls on.

use std::ffi::c_void;

#[derive(Clone, Copy)]
#[repr(usize)]
pub enum Symbol {
    Malloc,
    Calloc,
    Realloc,
    Free,
    Memalign,
    /// A variable inside the loader: where `argc` lies on the initial stack, then argv and envp.
    StackEnd,
}

const SYMBOLS: usize = Symbol::StackEnd as usize + 1;

extern "C" {
    /// In the order of `Symbol`. The loader writes the addresses before any code of this library runs.
    #[link_name = "flarena_glibc_symbols"]
    static ADDRESSES: [*const c_void; SYMBOLS];
}

macro_rules! weak_references {
    ($($name:literal)*) => {
        std::arch::global_asm!(
            ".pushsection .data.rel.ro.flarena_glibc_symbols, \"aw\"",
            ".balign 8",
            ".globl flarena_glibc_symbols",
            ".hidden flarena_glibc_symbols",
            "flarena_glibc_symbols:",
            $(concat!(".weak ", $name), concat!(".quad ", $name),)*
            ".popsection",
        );
    };
}

weak_references!("__libc_malloc" "__libc_calloc" "__libc_realloc" "__libc_free" "__libc_memalign" "__libc_stack_end");

/// Null if the process has another libc.
pub fn address_of(symbol: Symbol) -> *const c_void {
    // SAFETY: the table is constant after the loader has relocated this library.
    unsafe { ADDRESSES[symbol as usize] }
}

/// True if glibc is the libc of this process.
pub fn is_here() -> bool {
    !address_of(Symbol::Malloc).is_null()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::objects;

    #[test]
    fn addresses_agree_with_the_symbol_tables() {
        assert!(is_here());
        for (symbol, name) in [
            (Symbol::Malloc, c"__libc_malloc"),
            (Symbol::Memalign, c"__libc_memalign"),
            (Symbol::StackEnd, c"__libc_stack_end"),
        ] {
            assert_eq!(address_of(symbol), objects::in_libc(name), "{name:?}");
        }
    }
}
