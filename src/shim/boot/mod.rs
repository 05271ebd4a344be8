//! The constructor: everything that must happen once, at load, before the program runs. Only the
//! loader calls it; it may call every folder, but not `exports`.

mod arenas;
mod inherited;
mod problems;

use flarena_sys::errno::SavedErrno;
use std::ffi::c_int;

use flarena_shared::stages::Stage;
use flarena_shared::VERSION;

use crate::abi::{counted, credentials, foreign, quiesced};
use crate::backends::{choose, glibc, jemalloc};
use crate::report::{log, mark, panic};
use crate::{at_limit, fork, governor, launch, pools, report};
use flarena_sites as sites;
use flarena_sys::env::{Extra, Snapshot};
use flarena_sys::{
    clock, config, identity, loader, loader::callers, loader::symbols, owner, seccomp,
    thread_pointer, time,
};

/// Runs before jemalloc's own constructor, which has no priority, and keeps errno.
#[cfg_attr(not(test), ctor::ctor(unsafe, priority = 101))]
fn load() {
    credentials::configure();
    quiesced::configure();
    if !loader::glibc::is_here() {
        // A program with musl, started by one with this preload: its own malloc serves it.
        jemalloc::disable_init();
        return choose::stand_down();
    }
    let _errno = SavedErrno::save();
    seccomp::remember_process();
    let owns = symbols::owns_malloc();
    owner::set_owns_malloc(owns);
    if owns {
        choose::choose();
    } else {
        foreign::configure();
        choose::stand_down();
    }
    // Look these up now: later a thread that waits for this library may hold the loader's lock.
    glibc::functions();
    clock::configure();
    time::configure();
    thread_pointer::find_cpu_number();
    launch::configure(governor::run);
    at_limit::configure(report::at_limit::report);
    log::configure(config::settings().log);
    panic::install_hook();
    let environment = config::environment();
    answer_probe(environment);
    let hidden = owns && choose::is_jemalloc() || symbols::hide_jemalloc_interface();
    if hidden && !choose::is_jemalloc() {
        jemalloc::disable_init();
    }
    if owns && (choose::is_jemalloc() || config::settings().recycle) {
        symbols::serve_deep_bound_plugins();
    }
    callers::configure(symbols::own_address());
    mark::configure();
    pools::configure();
    if owns && config::settings().sites {
        counted::watch_fast_path();
        sites::start_native();
    }
    problems::report_without_effect(environment);
    let added = [
        ("arena_max", arenas::apply_default(environment, owns)),
        ("warned", problems::report_problems(environment)),
        ("told", problems::report_start(environment, owns, hidden)),
    ];
    inherited::pass_on(environment, added);
    fork::register();
    if owns {
        fork::watch_main_thread();
    }
    mark_life();
}

/// Answers a launcher that starts a child to test whether the library loads here.
fn answer_probe(environment: &Snapshot) {
    if environment.extra(Extra::Probe) != Some(b"1") {
        return;
    }
    let line = format!("flarena {VERSION}\n");
    // SAFETY: the pointer and the length are those of a live string; _exit ends the process.
    unsafe {
        let written = libc::write(libc::STDOUT_FILENO, line.as_ptr().cast(), line.len());
        libc::_exit(c_int::from(written != line.len() as isize));
    }
}

/// Marks the load, and the exit if the process runs its exit handlers.
fn mark_life() {
    // Always determine the identity: a forked child must not inherit an incomplete one.
    let identity = identity::identity();
    if !mark::is_on() || identity.is_helper {
        return;
    }
    // SAFETY: the handler is a function of this library, which is never unloaded.
    unsafe { libc::atexit(on_exit) };
    if !identity.is_native_child {
        mark::event(Stage::Load);
    }
}

/// A small child program (`lscpu`) leaves no marker.
extern "C" fn on_exit() {
    let is_known = || mark::written() > 0 || launch::is_running();
    if !identity::identity().is_native_child || is_known() {
        mark::exit();
    }
}
