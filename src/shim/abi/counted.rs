//! The fast path's malloc and calloc while sites are on. They count down to the next small block that is recorded
//! (`sites::sampler`), and jump to the backend.

use crate::abi::{backend, Ptr};
use crate::backends::choose::{self, dispatch};
use flarena_sites::sampler;
use flarena_sys::config;

/// Makes the fast path call the functions here and in `abi::backend`. Called before sites are on, so no block is recorded
/// yet. A thread in the middle of a call may still use an old target. That is harmless: it got the block that it frees
/// before sites were on, and a block that it allocates has no record.
pub fn watch_fast_path() {
    sampler::configure(config::settings().sites_sample_bytes);
    choose::choose();
    choose::FREE.set(backend::free);
    choose::REALLOC.set(backend::realloc_small);
    if sampler::period().is_some() {
        choose::MALLOC.set(malloc);
        choose::CALLOC.set(calloc);
    }
}

/// Assembly that subtracts the register `bytes` from the thread's countdown and jumps to `{backend}`. At a hit it jumps to
/// `{hit}`, with the return address of the program's call in the register `caller`. All other arguments stay in place.
#[cfg(target_arch = "x86_64")]
macro_rules! count_down {
    (bytes: $bytes:literal, caller: $caller:literal) => {
        concat!(
            "mov rax, [rip + flarena_countdown@GOTTPOFF]\n",
            concat!("sub qword ptr fs:[rax], ", $bytes, "\n"),
            "js 2f\n",
            "jmp qword ptr [rip + {backend}]\n",
            concat!("2: mov ", $caller, ", [rsp]\n"),
            "jmp {hit}",
        )
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! count_down {
    (bytes: $bytes:literal, caller: $caller:literal) => {
        concat!(
            "adrp x9, :gottprel:flarena_countdown\n",
            "ldr x9, [x9, :gottprel_lo12:flarena_countdown]\n",
            "mrs x10, tpidr_el0\n",
            "ldr x11, [x10, x9]\n",
            concat!("subs x11, x11, ", $bytes, "\n"),
            "str x11, [x10, x9]\n",
            "b.mi 2f\n",
            "adrp x16, {backend}\n",
            "ldr x16, [x16, :lo12:{backend}]\n",
            "br x16\n",
            concat!("2: mov ", $caller, ", x30\n"),
            "b {hit}",
        )
    };
}

/// # Safety
/// As C's malloc, below the size of a large block.
#[unsafe(naked)]
pub unsafe extern "C" fn malloc(size: usize) -> Ptr {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!(
        count_down!(bytes: "rdi", caller: "rsi"),
        backend = sym choose::BACKEND_MALLOC,
        hit = sym malloc_hit,
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!(
        count_down!(bytes: "x0", caller: "x1"),
        backend = sym choose::BACKEND_MALLOC,
        hit = sym malloc_hit,
    );
}

/// # Safety
/// As C's calloc. The product, which may have wrapped, is below the size of a large block.
#[unsafe(naked)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> Ptr {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!(
        "mov rcx, rdi",
        "imul rcx, rsi",
        count_down!(bytes: "rcx", caller: "rdx"),
        backend = sym choose::BACKEND_CALLOC,
        hit = sym calloc_hit,
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!(
        "mul x12, x0, x1",
        count_down!(bytes: "x12", caller: "x2"),
        backend = sym choose::BACKEND_CALLOC,
        hit = sym calloc_hit,
    );
}

/// The count ended in this block. The assembly has subtracted its bytes.
unsafe extern "C" fn malloc_hit(size: usize, caller: usize) -> Ptr {
    let is_hit = sampler::count_again(size);
    // SAFETY: a chosen backend takes any size.
    backend::note_if_hit(unsafe { dispatch!(malloc(size)) }, size, is_hit, caller)
}

unsafe extern "C" fn calloc_hit(count: usize, size: usize, caller: usize) -> Ptr {
    let bytes = count.wrapping_mul(size);
    let is_hit = sampler::count_again(bytes);
    // SAFETY: a chosen backend checks the product.
    let block = unsafe { dispatch!(calloc(count, size)) };
    backend::note_if_hit(block, bytes, is_hit, caller)
}
