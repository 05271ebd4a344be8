//! Walks of a program over the model of the kernel, with the books audited after each step.

use crate::state::stats::Fallback;
use crate::testing::scheduler;
use crate::testing::steps::Step;
use crate::testing::world::World;

/// The kernel does all that it is asked to: the books are exact, and nothing is left at the end.
pub fn served(steps: impl IntoIterator<Item = Step>, old_kernel: bool) {
    let mut world = World::new();
    world.map().old_kernel.set(old_kernel);
    for step in steps {
        world.run(step);
        world.audit_exactly();
    }
    world.finish();
    assert_eq!(world.map().resident(), 0);
    assert_eq!(world.map().mapped_units(), 0);
}

/// With each step the calls of the kernel that fail in it, one bit each.
pub fn refused(steps: impl IntoIterator<Item = (Step, u64)>, old_kernel: bool) {
    let mut world = World::new();
    world.map().old_kernel.set(old_kernel);
    for (step, refusals) in steps {
        world.map().refusals.bits.set(refusals);
        world.run(step);
        world.map().refusals.bits.set(0);
        world.audit();
    }
    world.finish();
    let fallbacks = world.recycler.state.lock().counters.fallbacks;
    let stuck = fallbacks[Fallback::Stuck as usize];
    let lost = fallbacks[Fallback::TargetLost as usize];
    if stuck == 0 {
        assert_eq!(world.map().resident(), 0);
    }
    if stuck + lost == 0 {
        assert_eq!(world.map().mapped_units(), 0);
    }
}

/// Several threads, each with its steps, in the order of `turns`. Whoever forks has one thread alone: see `served`.
pub fn threaded(threads: Vec<Vec<Step>>, turns: &[u8], old_kernel: bool) {
    let mut world = World::new();
    world.map().old_kernel.set(old_kernel);
    let views = (0..threads.len()).map(|thread| Turn(world.beside(thread as u64)));
    let mut views: Vec<Turn> = views.collect();
    let bodies = views.iter_mut().zip(threads).map(|(view, steps)| {
        let steps = steps.into_iter().filter(|step| !matches!(step, Step::Fork));
        Box::new(move || view.run(steps)) as Box<dyn FnOnce() + Send>
    });
    scheduler::run(turns, bodies.collect());
    for view in &mut views {
        world.blocks.append(&mut view.0.blocks);
    }
    drop(views);
    world.recycler.purge_excess();
    world.audit_exactly();
    world.finish();
    assert_eq!(world.map().resident(), 0);
    assert_eq!(world.map().mapped_units(), 0);
}

/// A view that is used in another thread.
struct Turn(World);

// SAFETY: the model, and the count of who holds it, belong to threads of which one runs at a time; a mutex passes the turn
// from one to the next.
unsafe impl Send for Turn {}

impl Turn {
    fn run(&mut self, steps: impl Iterator<Item = Step>) {
        steps.for_each(|step| self.0.run(step));
    }
}
