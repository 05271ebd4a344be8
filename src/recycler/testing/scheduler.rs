//! Runs threads one at a time. At each call of the model kernel, where the recycler's lock is free,
//! the schedule chooses the thread that continues. Runs are deterministic, and
//! every order of calls can be scheduled.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

struct Table {
    running: usize,
    /// Threads that have not ended.
    alive: Vec<usize>,
    schedule: Vec<u8>,
    passed: usize,
}

struct Scheduler {
    table: Mutex<Table>,
    changed: Condvar,
}

thread_local! {
    static CURRENT_THREAD: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

/// Runs the closures, one at a time. Shared data needs no lock: a mutex orders the threads.
pub fn run<'a>(schedule: &[u8], threads: Vec<Box<dyn FnOnce() + Send + 'a>>) {
    let table = Table {
        running: 0,
        alive: (0..threads.len()).collect(),
        schedule: schedule.to_vec(),
        passed: 0,
    };
    let all = Arc::new(Scheduler {
        table: Mutex::new(table),
        changed: Condvar::new(),
    });
    std::thread::scope(|scope| {
        for (me, body) in threads.into_iter().enumerate() {
            let all = Arc::clone(&all);
            scope.spawn(move || {
                let _end = End(&all, me);
                all.wait(me, all.lock());
                CURRENT_THREAD.set(Some((Arc::clone(&all), me)));
                body();
            });
        }
    });
}

/// Suspends the calling thread until the schedule chooses it again. Does nothing in a thread that
/// the scheduler does not run.
pub fn pause() {
    if let Some((all, me)) = CURRENT_THREAD.with_borrow(Clone::clone) {
        all.pass();
        all.wait(me, all.lock());
    }
}

impl Scheduler {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // A poisoned lock is ignored: the thread that panicked reports its failed assertion.
        self.table
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    fn wait(&self, me: usize, mut table: MutexGuard<'_, Table>) {
        const HANGS: Duration = Duration::from_secs(60);
        while table.running != me {
            let waited = self.changed.wait_timeout(table, HANGS);
            let (after, timeout) = waited.unwrap_or_else(|broken| broken.into_inner());
            assert!(
                !timeout.timed_out(),
                "the running thread waits for a suspended one"
            );
            table = after;
        }
    }

    /// Chooses the next thread. After the end of the schedule the threads alternate.
    fn pass(&self) {
        let mut table = self.lock();
        let choice = table.schedule.get(table.passed).copied();
        let choice = choice.map_or(table.passed, usize::from);
        table.passed += 1;
        if !table.alive.is_empty() {
            table.running = table.alive[choice % table.alive.len()];
        }
        self.changed.notify_all();
    }
}

/// Removes the thread from the schedule when it ends or panics, so that the others can continue.
struct End<'a>(&'a Scheduler, usize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        CURRENT_THREAD.set(None);
        self.0.lock().alive.retain(|thread| *thread != self.1);
        self.0.pass();
    }
}
