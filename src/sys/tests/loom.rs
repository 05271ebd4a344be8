//! The lock of the malloc path and the waiting once-cell under loom, which tries every order of the
//! threads and every value that a load may return.
//!
//! RUSTFLAGS="--cfg loom -C debug-assertions" cargo test -p flarena-sys --release --test loom

#![cfg(loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flarena_sys::sync::lock::{Guard, Lock};
use flarena_sys::sync::once::WaitingOnce;
use flarena_sys::sync::primitives::yield_now;

#[test]
fn two_threads_exclude_each_other_and_none_sleeps_for_ever() {
    check(3, || add_under_lock(2, |_| ()));
}

#[test]
fn three_threads_exclude_each_other_and_none_sleeps_for_ever() {
    check(2, || add_under_lock(3, |_| ()));
}

#[test]
fn all_threads_finish_beside_a_fork() {
    check(2, || {
        add_under_lock(2, |lock| {
            lock.quiesce_for_fork();
            lock.resume_after_fork();
        })
    });
}

#[test]
fn try_lock_takes_the_lock_or_returns() {
    check(3, || {
        add_under_lock(2, |lock| {
            if let Some(guard) = lock.try_lock() {
                add(guard);
            }
        })
    });
}

#[test]
fn once_runs_init_once_and_all_threads_see_its_writes() {
    check(3, || set_once_in(2));
}

/// Runs `model` in every order with at most this many preemptions.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// loom reports an access that is not ordered after the previous one.
struct Counter(UnsafeCell<u32>);

// SAFETY: every access is under the lock; loom stops at the first one that the lock does not order.
unsafe impl Send for Counter {}

fn add(guard: Guard<'_, Counter>) {
    // SAFETY: the guard excludes other accesses, which is the property under test.
    guard.0.with_mut(|count| unsafe { *count += 1 });
}

/// Each of `threads` threads takes the lock. This thread runs `before` first.
fn add_under_lock(threads: u32, before: fn(&Lock<Counter>)) {
    let lock = Arc::new(Lock::new(Counter(UnsafeCell::new(0))));
    // Creates loom's objects before the threads share them.
    add(lock.lock());
    let spawn = |_| {
        let lock = Arc::clone(&lock);
        loom::thread::spawn(move || add(lock.lock()))
    };
    let others: Vec<_> = (1..threads).map(spawn).collect();
    before(&lock);
    add(lock.lock());
    for other in others {
        other.join().expect("the thread ends");
    }
    // SAFETY: the other threads have ended.
    let count = lock.lock().0.with(|count| unsafe { *count });
    assert!(count > threads, "{count} additions by {threads} threads");
}

fn set_once_in(threads: usize) {
    let state = Arc::new((WaitingOnce::new(), AtomicUsize::new(0), AtomicUsize::new(0)));
    assert!(!state.0.is_set());
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let state = Arc::clone(&state);
            loom::thread::spawn(move || set_once(&state))
        })
        .collect();
    set_once(&state);
    for other in others {
        other.join().expect("the thread ends");
    }
    assert_eq!(state.2.load(Relaxed), 1, "runs of init");
}

fn set_once((once, target, runs): &(WaitingOnce, AtomicUsize, AtomicUsize)) {
    if !once.is_set() {
        once.set_with(|| {
            runs.fetch_add(1, Relaxed);
            yield_now();
            target.store(7, Relaxed);
            WaitingOnce::FIRST
        });
    }
    assert!(once.is_set() && once.holds(WaitingOnce::FIRST));
    assert_eq!(target.load(Relaxed), 7);
}
