//! What goes out of an idle program, and when it comes back.

use super::model::{Program, AFTER, MB, STRIDE, TICK};
use super::*;

#[test]
fn an_idle_programs_blocks_go_out_after_the_time_that_was_asked_for_and_come_back_with_work() {
    let mut program = Program::new();
    program.rest(AFTER - TICK);
    assert_eq!(program.out_mb(), 0);
    program.rest(TICK);
    assert_eq!(program.out_mb(), 100);
    program.rest(AFTER);
    program.work(TICK);
    assert_eq!(program.out_mb(), 0);
    // Nothing is done for a program at work.
    program.work(10 * AFTER);
    assert_eq!(program.out_mb(), 0);
}

#[test]
fn cpu_time_major_faults_and_marks_are_each_a_sign_of_work_and_a_heartbeat_is_none() {
    let signs: [fn(&mut Program) -> bool; 4] = [
        |program| {
            program.usage.cpu += Duration::from_millis(5);
            false
        },
        |program| {
            program.usage.cpu += Duration::from_millis(20);
            false
        },
        |program| {
            program.usage.faults += 4;
            false
        },
        |_| true,
    ];
    for (wakes, sign) in signs.into_iter().enumerate().map(|(i, sign)| (i > 0, sign)) {
        let mut program = Program::new();
        program.rest(AFTER);
        for _ in 0..3 {
            program.now += LOOK;
            assert_eq!(program.step(false), Some(LOOK));
        }
        program.now += LOOK;
        let marked = sign(&mut program);
        let pause = program.step(marked);
        assert_eq!(pause == Some(Duration::ZERO), wakes);
        program.settle();
        assert_eq!(program.out_mb() == 0, wakes);
    }
}

#[test]
fn the_first_sign_of_work_ends_the_way_out() {
    let mut program = Program::new();
    program.rest(AFTER - TICK);
    program.idle_for += TICK;
    program.now += TICK;
    for _ in 0..4 {
        assert_eq!(program.step(false), Some(Duration::ZERO));
    }
    assert_eq!(program.out_mb(), 24);
    assert_eq!(program.step(true), Some(Duration::ZERO));
    program.settle();
    assert_eq!(program.out_mb(), 0);
}

#[test]
fn pages_come_back_in_the_order_of_their_addresses() {
    let mut program = Program::new();
    program.hibernation.memory.strides.rotate_left(3);
    program.rest(AFTER);
    program.step(true);
    let left = &program.hibernation.left;
    assert!(left.is_sorted_by(|a, b| a.start > b.start) && left.len() == 13);
}

#[test]
fn nothing_comes_back_of_a_block_that_was_freed() {
    let mut program = Program::new();
    program.rest(AFTER);
    program.hibernation.memory.freed = Some(1 << 30);
    program.work(TICK);
    assert_eq!(program.hibernation.out_bytes(), 0);
    assert_eq!(program.hibernation.memory.out_bytes(), 60 * MB);
}

#[test]
fn what_is_locked_stays_and_the_rest_goes() {
    let mut program = Program::new();
    program.hibernation.memory.locked = Some(1 << 30);
    program.rest(AFTER);
    assert_eq!(program.out_mb(), 40);
}

#[test]
fn no_more_goes_out_than_swap_has_room_for() {
    let mut program = Program::new();
    program.hibernation.memory.swap_bytes = 50 * MB;
    program.rest(AFTER);
    assert_eq!(program.out_mb(), 50 * MB / STRIDE * STRIDE / MB);
    program.work(TICK);
    program.hibernation.memory.swap_bytes = 0;
    program.rest(10 * AFTER);
    assert_eq!(program.out_mb(), 0);
}

#[test]
fn one_that_costs_more_than_a_hundredth_of_the_round_is_followed_by_a_longer_wait_until_one_pays() {
    let mut program = Program::new();
    // 13 strides: 1.3 s.
    program.hibernation.memory.slow = Duration::from_millis(100);
    program.rest(2 * AFTER);
    program.work(Duration::from_secs(60));
    program.rest(AFTER);
    assert_eq!(program.out_mb(), 0);
    program.rest(12 * AFTER);
    assert_eq!(program.out_mb(), 100);
    program.work(TICK);
    program.rest(AFTER + TICK);
    assert_eq!(program.out_mb(), 100);
}

#[test]
fn what_the_program_computes_while_its_pages_come_back_is_no_cost() {
    let mut program = Program::new();
    program.rest(AFTER);
    program.hibernation.memory.slow = Duration::from_millis(100);
    program.step(true);
    while program.step(false) == Some(Duration::ZERO) {
        program.usage.cpu += Duration::from_millis(100);
    }
    program.idle_for = Duration::ZERO;
    program.rest(AFTER + TICK);
    assert_eq!(program.out_mb(), 100);
}
