//! The sources of the library beside a model of the machine: atomics and futex are in `sync`.

// What is not under test here is not used.
#![allow(dead_code)]

#[path = "."]
mod sync {
    #[path = "../src/sys/sync/lock.rs"]
    pub mod lock;
    #[path = "../src/sys/sync/once.rs"]
    pub mod once;
    #[path = "sync.rs"]
    pub mod primitives;
}
mod thread;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sync::lock::{Guard, Lock};
use sync::once::WaitingOnce as Once;
use sync::primitives::yield_now;

fn main() {
    check(
        "two threads never hold the lock at once, and none sleeps for ever",
        3,
        || add_under_lock(2, |_| ()),
    );
    check("nor do three", 2, || add_under_lock(3, |_| ()));
    check("a fork meanwhile lets everybody come to an end", 2, || {
        add_under_lock(2, |lock| {
            lock.quiesce_for_fork();
            lock.resume_after_fork();
        })
    });
    check("who tries the lock has it or does not wait", 3, || {
        add_under_lock(2, |lock| {
            if let Some(guard) = lock.try_lock() {
                add(guard);
            }
        })
    });
    check("one thread chooses, and both see what it set", 3, || {
        choose_in(2)
    });
}

/// Prints the sentence when `model` ends well in every order with so many preemptions at most.
fn check(sentence: &str, preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
    println!("ok - {sentence}");
}

/// loom sees when two threads are in here without one having waited for the other.
struct Counter(UnsafeCell<u32>);

// SAFETY: loom stops at the first access that no lock orders.
unsafe impl Send for Counter {}

fn add(guard: Guard<'_, Counter>) {
    // SAFETY: under the lock, which is what is tried here.
    guard.0.with_mut(|count| unsafe { *count += 1 });
}

/// Each of `threads` takes the lock, and this thread, after `beside`, too.
fn add_under_lock(threads: u32, beside: fn(&Lock<Counter>)) {
    let lock = Arc::new(Lock::new(Counter(UnsafeCell::new(0))));
    // loom wants things to be made before they are shared.
    add(lock.lock());
    let spawn = |_| {
        let lock = Arc::clone(&lock);
        loom::thread::spawn(move || add(lock.lock()))
    };
    let others: Vec<_> = (1..threads).map(spawn).collect();
    beside(&lock);
    add(lock.lock());
    for other in others {
        other.join().expect("it ends");
    }
    // SAFETY: nobody else is left.
    let count = lock.lock().0.with(|count| unsafe { *count });
    assert!(count > threads, "{count} of {threads} and the first one");
}

fn choose_in(threads: usize) {
    let state = Arc::new((Once::new(), AtomicUsize::new(0), AtomicUsize::new(0)));
    assert!(!state.0.is_set());
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let state = Arc::clone(&state);
            loom::thread::spawn(move || choose(&state))
        })
        .collect();
    choose(&state);
    for other in others {
        other.join().expect("it ends");
    }
    assert_eq!(state.2.load(Relaxed), 1, "chosen once");
}

fn choose((once, target, times): &(Once, AtomicUsize, AtomicUsize)) {
    if !once.is_set() {
        once.set_with(|| {
            times.fetch_add(1, Relaxed);
            yield_now();
            target.store(7, Relaxed);
            Once::FIRST
        });
    }
    assert!(once.is_set() && once.holds(Once::FIRST));
    assert_eq!(target.load(Relaxed), 7);
}
