//! Every symbol that libflarena.so exports, one line each, grouped by standard. The target of a line
//! documents the function.

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::ptr;

use tikv_jemalloc_sys as je;

use libc::{gid_t, pid_t, rlimit64, uid_t};

use crate::abi::quiesced::Child;
use crate::abi::Ptr;
use crate::abi::{credentials, heap, jemalloc, limits, quiesced, sandbox, statistics};
use crate::backends::choose;
use crate::backends::mallinfo::{Mallinfo, Mallinfo2};
use crate::fork::{self, Handler};
use crate::garbage;
use crate::pools::python_pools;
use crate::report::{mark, sites, stats, trim};
use flarena_sys::identity;

macro_rules! export {
    ($(
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $target:path
            $(, in glibc mode $otherwise:expr)?;
    )*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            #[allow(clippy::unused_unit)]
            $(if !choose::is_jemalloc() {
                return $otherwise;
            })?
            // Some targets are safe.
            #[allow(unused_unsafe)]
            // SAFETY: the caller keeps the contract of the standard; the target's contract is the same.
            unsafe { $target($($argument),*) }
        }
    )*};
}

export! {
    // C
    malloc(size: usize) -> Ptr = heap::malloc;
    calloc(count: usize, size: usize) -> Ptr = heap::calloc;
    realloc(ptr: Ptr, size: usize) -> Ptr = heap::realloc;
    free(ptr: Ptr) = heap::free;
    aligned_alloc(align: usize, size: usize) -> Ptr = heap::aligned_alloc;
    free_sized(ptr: Ptr, size: usize) = heap::free_sized;
    free_aligned_sized(ptr: Ptr, align: usize, size: usize) = heap::free_aligned_sized;

    // POSIX
    posix_memalign(out: *mut Ptr, align: usize, size: usize) -> c_int = heap::posix_memalign;

    // BSD
    reallocarray(ptr: Ptr, count: usize, size: usize) -> Ptr = heap::reallocarray;

    // Obsolete, but still called
    cfree(ptr: Ptr) = heap::cfree;
    memalign(align: usize, size: usize) -> Ptr = heap::memalign;
    valloc(size: usize) -> Ptr = heap::valloc;
    pvalloc(size: usize) -> Ptr = heap::pvalloc;

    // glibc
    malloc_usable_size(ptr: Ptr) -> usize = heap::usable_size;
    malloc_trim(pad: usize) -> c_int = trim::malloc_trim;
    mallopt(parameter: c_int, value: c_int) -> c_int = statistics::mallopt;
    mallinfo() -> Mallinfo = statistics::mallinfo;
    mallinfo2() -> Mallinfo2 = statistics::mallinfo2;
    malloc_stats() = statistics::malloc_stats;
    malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int = statistics::malloc_info;

    // The function behind `pthread_atfork`: flarena's handlers are registered before all others
    __register_atfork(prepare: Handler, parent: Handler, child: Handler, library: Ptr) -> c_int
        = fork::register_atfork;

    // POSIX and Linux: the copy of the process has no fork handlers, so the governor must be quiet
    _Fork() -> pid_t = quiesced::fork_without_handlers;
    clone(
        child: Child, stack: Ptr, flags: c_int, argument: Ptr, parent_id: Ptr, tls: Ptr, child_id: Ptr
    ) -> c_int = quiesced::clone;

    // POSIX: waits until the governor uses no library
    dlclose(handle: Ptr) -> c_int = quiesced::dlclose;

    // Linux: observed and passed on
    prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int = sandbox::prctl;
    pkey_alloc(flags: c_uint, rights: c_uint) -> c_int = sandbox::pkey_alloc;
    setrlimit(resource: c_uint, new: *const rlimit64) -> c_int = limits::setrlimit;
    setrlimit64(resource: c_uint, new: *const rlimit64) -> c_int = limits::setrlimit;
    prlimit(
        process: pid_t, resource: c_uint, new: *const rlimit64, old: *mut rlimit64
    ) -> c_int = limits::prlimit;
    prlimit64(
        process: pid_t, resource: c_uint, new: *const rlimit64, old: *mut rlimit64
    ) -> c_int = limits::prlimit;
    mlockall(flags: c_int) -> c_int = limits::mlockall;
    munlockall() -> c_int = limits::munlockall;

    // POSIX and Linux: the governor ends first if its thread is in the way
    setuid(user: uid_t) -> c_int = credentials::setuid;
    seteuid(user: uid_t) -> c_int = credentials::seteuid;
    setreuid(real: uid_t, effective: uid_t) -> c_int = credentials::setreuid;
    setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int = credentials::setresuid;
    setgid(group: gid_t) -> c_int = credentials::setgid;
    setegid(group: gid_t) -> c_int = credentials::setegid;
    setregid(real: gid_t, effective: gid_t) -> c_int = credentials::setregid;
    setresgid(real: gid_t, effective: gid_t, saved: gid_t) -> c_int = credentials::setresgid;
    setgroups(count: usize, groups: *const gid_t) -> c_int = credentials::setgroups;
    initgroups(user: *const c_char, group: gid_t) -> c_int = credentials::initgroups;
    capset(header: Ptr, data: *const c_void) -> c_int = credentials::capset;
    unshare(flags: c_int) -> c_int = credentials::unshare;
    setns(fd: c_int, kind: c_int) -> c_int = credentials::setns;

    // jemalloc: visible in jemalloc mode only (flarena_sys::loader::symbols::JEMALLOC_ONLY). But an object with a weak
    // reference may be bound to them before the constructor runs. In glibc mode jemalloc is not initialised, so each fails
    // there as it would without memory or with an unknown name.
    mallctl(
        name: *const c_char, old: Ptr, old_len: *mut usize, new: Ptr, new_len: usize
    ) -> c_int = je::mallctl, in glibc mode libc::ENOENT;
    mallctlnametomib(name: *const c_char, mib: *mut usize, len: *mut usize) -> c_int
        = je::mallctlnametomib, in glibc mode libc::ENOENT;
    mallctlbymib(
        mib: *const usize, len: usize, old: Ptr, old_len: *mut usize, new: Ptr, new_len: usize
    ) -> c_int = je::mallctlbymib, in glibc mode libc::ENOENT;
    malloc_stats_print(
        write: Option<unsafe extern "C" fn(Ptr, *const c_char)>, opaque: Ptr, options: *const c_char
    ) = je::malloc_stats_print, in glibc mode ();
    mallocx(size: usize, flags: c_int) -> Ptr = jemalloc::mallocx, in glibc mode ptr::null_mut();
    rallocx(ptr: Ptr, size: usize, flags: c_int) -> Ptr
        = jemalloc::rallocx, in glibc mode ptr::null_mut();
    xallocx(ptr: Ptr, size: usize, extra: usize, flags: c_int) -> usize = jemalloc::xallocx;
    sallocx(ptr: *const c_void, flags: c_int) -> usize = jemalloc::sallocx;
    dallocx(ptr: Ptr, flags: c_int) = jemalloc::dallocx;
    sdallocx(ptr: Ptr, size: usize, flags: c_int) = jemalloc::sdallocx;
    nallocx(size: usize, flags: c_int) -> usize = je::nallocx, in glibc mode 0;

    // flarena
    flarena_mark(stage: *const c_char, site: *const c_char, round: c_long) -> c_int = mark::mark;
    flarena_mark_and_copy(
        stage: *const c_char, site: *const c_char, round: c_long, line: *mut c_char, len: usize
    ) -> c_int = mark::mark_and_copy;
    flarena_note_job(id: *const c_char) = mark::note_job;
    flarena_on_collection(phase: Ptr, info: Ptr) = garbage::on_collection;
    flarena_sites(request: *const c_char, buffer: *mut c_char, len: usize) -> c_int = sites::ask;
    flarena_stats_json(buffer: *mut c_char, len: usize) -> c_int = stats::stats_json;
    flarena_trim() -> c_int = trim::trim;
    flarena_large_live_bytes() -> usize = garbage::large_live_bytes;
    flarena_collections() -> c_int = garbage::prepare;
    flarena_stage_collection(step: c_int) -> c_int = garbage::stage_collection;
    flarena_note_pools(arrow_bytes: usize, pinned_bytes: usize) = python_pools::note;
    flarena_note_gpu(allocated_bytes: usize, reserved_bytes: usize) = python_pools::note_gpu;
    flarena_note_trainer() = identity::note_trainer;
    flarena_allocator() -> *const c_char = stats::allocator;
    flarena_version() -> *const c_char = stats::version;
}
