//! Random programs on the model kernel. Each walk audits the recycler's records after each step.

use crate::state::stats::Fallback;
use crate::testing::scheduler;
use crate::testing::steps::Step;
use crate::testing::world::World;

/// The kernel refuses no call. The records are exact, and no memory remains at the end.
pub fn run_without_refusals(steps: impl IntoIterator<Item = Step>, old_kernel: bool) {
    let mut world = World::new();
    world.vm().old_kernel.set(old_kernel);
    for step in steps {
        world.run(step);
        world.audit_exactly();
    }
    world.finish();
    assert_eq!(world.vm().resident(), 0);
    assert_eq!(world.vm().mapped_units(), 0);
}

/// Each step comes with a bit mask of the kernel calls that fail in it.
pub fn run_with_refusals(steps: impl IntoIterator<Item = (Step, u64)>, old_kernel: bool) {
    let mut world = World::new();
    world.vm().old_kernel.set(old_kernel);
    for (step, refusals) in steps {
        world.vm().refusals.bits.set(refusals);
        world.run(step);
        world.vm().refusals.bits.set(0);
        world.audit();
    }
    world.finish();
    let fallbacks = world.recycler.state.lock().counters.fallbacks;
    let stuck = fallbacks[Fallback::Stuck as usize];
    let lost = fallbacks[Fallback::TargetLost as usize];
    if stuck == 0 {
        assert_eq!(world.vm().resident(), 0);
    }
    if stuck + lost == 0 {
        assert_eq!(world.vm().mapped_units(), 0);
    }
}

/// Runs several threads in the order of `schedule`. Skips forks: the model supports them for one
/// thread only.
pub fn run_threads(threads: Vec<Vec<Step>>, schedule: &[u8], old_kernel: bool) {
    let mut world = World::new();
    world.vm().old_kernel.set(old_kernel);
    let views = (0..threads.len()).map(|thread| ThreadView(world.beside(thread as u64)));
    let mut views: Vec<ThreadView> = views.collect();
    let bodies = views.iter_mut().zip(threads).map(|(view, steps)| {
        let steps = steps.into_iter().filter(|step| !matches!(step, Step::Fork));
        Box::new(move || view.run(steps)) as Box<dyn FnOnce() + Send>
    });
    scheduler::run(schedule, bodies.collect());
    for view in &mut views {
        world.blocks.append(&mut view.0.blocks);
    }
    drop(views);
    world.recycler.purge_excess();
    world.audit_exactly();
    world.finish();
    assert_eq!(world.vm().resident(), 0);
    assert_eq!(world.vm().mapped_units(), 0);
}

/// A thread's world, sent to that thread.
struct ThreadView(World);

// SAFETY: the scheduler runs one thread at a time. Its mutex orders all accesses to the model and
// to the reference counts.
unsafe impl Send for ThreadView {}

impl ThreadView {
    fn run(&mut self, steps: impl Iterator<Item = Step>) {
        steps.for_each(|step| self.0.run(step));
    }
}
