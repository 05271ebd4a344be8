//! Threads of which one runs at a time. At each call of the model of the kernel, where the recycler's lock is free, the
//! list of turns says who goes on: so a run is the same each time, and every order of such calls can be had.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

struct Table {
    running: usize,
    /// Threads that have not ended.
    alive: Vec<usize>,
    turns: Vec<u8>,
    passed: usize,
}

struct Turns {
    table: Mutex<Table>,
    changed: Condvar,
}

thread_local! {
    static MINE: RefCell<Option<(Arc<Turns>, usize)>> = const { RefCell::new(None) };
}

/// Runs the closures, one at a time. What they share needs no lock: each sees what was done before its turn.
pub fn run<'a>(turns: &[u8], threads: Vec<Box<dyn FnOnce() + Send + 'a>>) {
    let table = Table {
        running: 0,
        alive: (0..threads.len()).collect(),
        turns: turns.to_vec(),
        passed: 0,
    };
    let all = Arc::new(Turns {
        table: Mutex::new(table),
        changed: Condvar::new(),
    });
    std::thread::scope(|scope| {
        for (me, body) in threads.into_iter().enumerate() {
            let all = Arc::clone(&all);
            scope.spawn(move || {
                let _end = End(&all, me);
                all.wait(me, all.lock());
                MINE.set(Some((Arc::clone(&all), me)));
                body();
            });
        }
    });
}

/// Between two threads' doings: the calling one stops, and goes on at its next turn. Nothing in other threads.
pub fn pause() {
    if let Some((all, me)) = MINE.with_borrow(Clone::clone) {
        all.pass();
        all.wait(me, all.lock());
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // A failed assertion in one thread is told by that thread.
        self.table
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    fn wait(&self, me: usize, mut table: MutexGuard<'_, Table>) {
        const HANGS: Duration = Duration::from_secs(60);
        while table.running != me {
            let waited = self.changed.wait_timeout(table, HANGS);
            let (after, timeout) = waited.unwrap_or_else(|broken| broken.into_inner());
            assert!(!timeout.timed_out(), "the running thread waits for another");
            table = after;
        }
    }

    /// Lets the next one run: where the list ends, each in turn.
    fn pass(&self) {
        let mut table = self.lock();
        let turn = table.turns.get(table.passed).copied();
        let turn = turn.map_or(table.passed, usize::from);
        table.passed += 1;
        if !table.alive.is_empty() {
            table.running = table.alive[turn % table.alive.len()];
        }
        self.changed.notify_all();
    }
}

/// Also where an assertion fails: the others are to come to their end.
struct End<'a>(&'a Turns, usize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        MINE.set(None);
        self.0.lock().alive.retain(|thread| *thread != self.1);
        self.0.pass();
    }
}
