//! What is learnt of a program's pauses, and where that must not count.

use crate::core::amount::Pages;
use crate::policy::pauses::{Pauses, MOST_MS};
use crate::testing::steps::Step;
use crate::testing::world::{World, DECAY_MS, MIB};

const PEAK: Pages = Pages::new(100_000);

/// A program whose rounds take no time, with what it gives back between two of them.
struct Program {
    pauses: Pauses,
    now_ms: u32,
}

impl Program {
    fn new() -> Self {
        Program {
            pauses: Pauses::new(true),
            // The clock wraps meanwhile.
            now_ms: u32::MAX - 1500,
        }
    }

    fn decay_ms(&self) -> u32 {
        self.pauses.decay_ms(DECAY_MS)
    }

    fn wait(&mut self, ms: u32) {
        self.now_ms = self.now_ms.wrapping_add(ms);
    }

    /// Waits; `returned` pages go back when they are old enough, and `missed` are faulted in at the end.
    fn pause(&mut self, ms: u32, returned: Pages, missed: Pages) {
        let last_use_ms = self.now_ms;
        let decay_ms = self.decay_ms();
        if ms > decay_ms {
            self.wait(decay_ms);
            self.pauses.note_returned(returned, last_use_ms);
            self.wait(ms - decay_ms);
        } else {
            self.wait(ms);
        }
        self.pauses.note_fresh(self.now_ms, missed, PEAK);
    }
}

#[test]
fn two_pauses_in_a_row_that_were_not_idle_are_held_through() {
    let mut program = Program::new();
    program.pause(600, PEAK, PEAK);
    assert_eq!(program.decay_ms(), DECAY_MS, "one may be chance");
    program.pause(600, PEAK, PEAK);
    assert_eq!(program.decay_ms(), 750);
    program.pause(700, PEAK, PEAK);
    assert_eq!(program.decay_ms(), 750, "nothing was given back");
}

#[test]
fn of_two_pauses_the_longer_is_held_through() {
    for (first_ms, second_ms) in [(600, 800), (800, 600)] {
        let mut program = Program::new();
        program.pause(first_ms, PEAK, PEAK);
        program.pause(second_ms, PEAK, PEAK);
        assert_eq!(program.decay_ms(), 1000);
    }
}

#[test]
fn the_decay_grows_with_the_pauses_up_to_a_bound() {
    let mut program = Program::new();
    let mut grown_ms = Vec::new();
    for ms in [600, 600, 1000, 4900, 4999] {
        program.pause(ms, PEAK, PEAK);
        grown_ms.push(program.decay_ms());
    }
    assert_eq!(grown_ms, [DECAY_MS, 750, 1250, MOST_MS, MOST_MS]);
}

#[test]
fn a_pause_that_outlasts_the_bound_was_idle_and_ends_what_was_learnt() {
    for learnt_in in [1, 2, 9] {
        let mut program = Program::new();
        for _ in 0..learnt_in {
            program.pause(600, PEAK, PEAK);
        }
        program.pause(MOST_MS + 1, PEAK, PEAK);
        assert_eq!(program.decay_ms(), DECAY_MS);
        program.pause(600, PEAK, PEAK);
        assert_eq!(program.decay_ms(), DECAY_MS, "two in a row, from the start");
    }
}

#[test]
fn it_ends_while_nobody_calls_too() {
    let mut program = Program::new();
    program.pause(600, PEAK, PEAK);
    program.pause(600, PEAK, PEAK);
    let last_use_ms = program.now_ms;
    program.wait(800);
    program.pauses.note_returned(PEAK, last_use_ms);
    program.wait(MOST_MS - 801);
    program.pauses.look(program.now_ms, PEAK);
    assert_eq!(program.decay_ms(), 750);
    program.wait(1);
    program.pauses.look(program.now_ms, PEAK);
    assert_eq!(program.decay_ms(), DECAY_MS);
}

#[test]
fn less_than_half_of_the_pages_faulted_in_again_is_an_idle_pause() {
    for (missed, held) in [(PEAK / 2, true), (PEAK / 2 - Pages::new(1), false)] {
        let mut program = Program::new();
        for _ in 0..2 {
            program.pause(600, PEAK, missed);
            program.wait(MOST_MS);
            program.pauses.look(program.now_ms, PEAK);
        }
        assert_eq!(program.decay_ms() > DECAY_MS, held);
    }
}

#[test]
fn pages_missed_bit_by_bit_make_the_pause_as_long_as_until_half_are_there() {
    let mut program = Program::new();
    for _ in 0..2 {
        program.pause(600, PEAK, PEAK / 4);
        program.wait(200);
        program.pauses.note_fresh(program.now_ms, PEAK / 4, PEAK);
    }
    assert_eq!(program.decay_ms(), 1000);
}

#[test]
fn a_few_pages_neither_teach_nor_end_what_was_learnt() {
    let few = PEAK / 8 - Pages::new(1);
    let mut program = Program::new();
    for _ in 0..9 {
        program.pause(600, few, PEAK);
    }
    assert_eq!(program.decay_ms(), DECAY_MS);
    program.pause(600, PEAK, PEAK);
    program.pause(600, PEAK, PEAK);
    program.pause(MOST_MS + 1, few, PEAK);
    assert_eq!(program.decay_ms(), 750);
}

#[test]
fn a_pause_begins_when_its_pages_were_last_used_on_average() {
    let mut program = Program::new();
    for _ in 0..2 {
        let (first_ms, second_ms) = (program.now_ms, program.now_ms.wrapping_add(100));
        program.wait(500);
        let pauses = &mut program.pauses;
        pauses.note_returned(PEAK / 4 * 3, first_ms);
        pauses.note_returned(PEAK / 4, second_ms);
        program.wait(325);
        program.pauses.note_fresh(program.now_ms, PEAK, PEAK);
    }
    assert_eq!(program.decay_ms(), 1000);
}

#[test]
fn what_is_forgotten_is_learnt_anew_and_not_of_the_pause_that_it_was_in() {
    let mut program = Program::new();
    program.pause(600, PEAK, PEAK);
    program.pause(600, PEAK, PEAK);
    program.pause(800, PEAK, Pages::NONE);
    program.pauses.forget();
    program.pauses.note_fresh(program.now_ms, PEAK, PEAK);
    assert_eq!(program.decay_ms(), DECAY_MS);
    program.pause(600, PEAK, PEAK);
    assert_eq!(program.decay_ms(), DECAY_MS);
}

#[test]
fn where_nothing_is_to_be_learnt_the_set_time_holds() {
    let mut program = Program::new();
    program.pauses = Pauses::new(false);
    for _ in 0..9 {
        program.pause(600, PEAK, PEAK);
    }
    assert_eq!(program.decay_ms(), DECAY_MS);
}

/// A recycler that learns, or does not, of rounds with `ms` between.
fn world_after(learns: bool, rounds: u32, ms: u32) -> World {
    let mut world = World::new();
    if learns {
        world.recycler.learn_pauses();
    }
    for _ in 0..rounds {
        one_round(&mut world);
        pause(&mut world, ms);
    }
    world
}

fn one_round(world: &mut World) {
    assert!(world.alloc(8 * MIB, false));
    let block = world.take(0).expect("it was just made");
    world.free(block);
}

/// The governor calls at the pace of the set time or more seldom, and at its own looks.
fn pause(world: &mut World, ms: u32) {
    for _ in 0..ms / 50 {
        world.run(Step::Wait { ms: 50 });
    }
}

fn decay_ms(world: &World) -> u32 {
    world.recycler.decay_ms(DECAY_MS)
}

#[test]
fn pages_stay_through_the_third_short_pause_of_a_program_and_only_where_that_is_learnt() {
    for (learns, kept) in [(true, 8 * MIB as u64), (false, 0)] {
        let mut world = world_after(learns, 2, 600);
        assert_eq!(
            world.recycler.numbers().cached_bytes,
            0,
            "twice in a row first"
        );
        one_round(&mut world);
        pause(&mut world, 600);
        assert_eq!(world.recycler.numbers().cached_bytes, kept);
        world.audit_exactly();
    }
}

#[test]
fn what_stays_through_pauses_goes_back_when_the_program_rests() {
    let mut world = world_after(true, 4, 600);
    assert!(decay_ms(&world) > DECAY_MS);
    pause(&mut world, 2 * MOST_MS);
    assert_eq!(world.recycler.numbers().cached_bytes, 0);
    assert_eq!(decay_ms(&world), DECAY_MS);
}

#[test]
fn near_a_memory_limit_nothing_is_kept_for_longer_than_was_set() {
    let mut world = world_after(true, 4, 600);
    assert!(decay_ms(&world) > DECAY_MS);
    world.run(Step::Pressure { near: true });
    assert_eq!(decay_ms(&world), DECAY_MS);
    world.run(Step::Pressure { near: false });
    assert_eq!(decay_ms(&world), DECAY_MS, "nor at once behind it");
}

#[test]
fn a_trim_gives_back_what_is_kept_for_the_next_round_and_teaches_nothing() {
    let world = world_after(true, 4, 600);
    assert!(decay_ms(&world) > DECAY_MS);
    assert!(world.recycler.purge_all().count() >= 8 * MIB as u64);
    assert_eq!(world.recycler.numbers().cached_bytes, 0);
    assert_eq!(decay_ms(&world), DECAY_MS);
    let mut trimmed = world_after(true, 0, 0);
    for _ in 0..4 {
        one_round(&mut trimmed);
        trimmed.recycler.purge_all();
        pause(&mut trimmed, 600);
    }
    assert_eq!(decay_ms(&trimmed), DECAY_MS);
}

#[test]
fn a_forked_child_has_pauses_of_its_own() {
    let mut world = world_after(true, 4, 600);
    assert!(decay_ms(&world) > DECAY_MS);
    world.run(Step::Fork);
    assert_eq!(decay_ms(&world), DECAY_MS);
    for _ in 0..3 {
        one_round(&mut world);
        pause(&mut world, 600);
    }
    assert!(decay_ms(&world) > DECAY_MS, "and learns them");
}

#[test]
fn what_is_kept_through_a_pause_raises_no_budget() {
    for kept in [true, false] {
        let mut world = world_after(kept, 4, 600);
        one_round(&mut world);
        let mut state = world.recycler.lock();
        let now_ms = state.space.now_ms;
        let peak = state.space.ledger.peak_live();
        for window in (0..60).rev() {
            let then_ms = now_ms.wrapping_sub(window * 50);
            let tolerance = &mut state.space.tolerance;
            tolerance.note_churn(then_ms, peak / 9, peak / 9, peak);
        }
        assert!(state.space.tolerance.thrash.extra_pages() > Pages::NONE);
        drop(state);
        pause(&mut world, 600);
        assert_eq!(world.recycler.numbers().cached_bytes > 0, kept);
        let extra = world.recycler.lock().space.tolerance.thrash.extra_pages();
        assert_eq!(extra, Pages::NONE);
    }
}
