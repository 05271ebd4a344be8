//! What follows the blocks, and what is a sign of work then.

use super::memory::cut;
use super::model::{is_of_a_block, Program, AFTER, LIBRARY, MB, TICK};
use super::*;

#[test]
fn what_small_things_need_follows_after_the_same_time_again_and_comes_back_before_the_blocks() {
    let mut program = Program::new();
    program.sleep_deeply();
    assert_eq!(program.step(true), Some(Duration::ZERO));
    let left = &program.hibernation.left;
    let (blocks, rest) = left.split_at(left.len() - 5);
    assert!(blocks.iter().all(is_of_a_block));
    assert!(!rest.iter().any(is_of_a_block));
    assert!(rest.is_sorted_by(|a, b| a.start > b.start));
    program.settle();
    assert_eq!(program.out_mb(), 0);
}

#[test]
fn a_library_leaves_with_the_heap_and_comes_by_itself() {
    let mut program = Program::new();
    program.sleep_deeply();
    assert_eq!(program.hibernation.memory.files_out, [LIBRARY]);
    program.work(TICK);
    assert!(!program.hibernation.memory.announced.contains(&LIBRARY));
    assert_eq!(program.hibernation.out_bytes(), 0);
}

#[test]
fn a_library_leaves_also_where_swap_has_no_room_for_the_heap() {
    let mut program = Program::new();
    program.add_rest();
    program.hibernation.memory.swap_bytes = 120 * MB;
    program.rest(2 * AFTER);
    assert_eq!(program.out_mb(), 116);
    assert_eq!(program.hibernation.memory.files_out, [LIBRARY]);
}

#[test]
fn what_was_written_of_files_comes_back_before_the_heap() {
    let mut program = Program::new();
    program.add_rest();
    for stride in cut(Of::Written, 5 << 30, 1 << 20) {
        program.hibernation.memory.rest.push(stride);
    }
    program.rest(2 * AFTER);
    program.step(true);
    let last = program.hibernation.left.last().map(|stride| stride.of);
    assert_eq!(last, Some(Of::Written));
}

#[test]
fn a_heartbeat_that_waits_for_its_code_and_heap_wakes_nobody() {
    let mut program = Program::new();
    program.sleep_deeply();
    for _ in 0..3 {
        program.usage.faults += 500;
        program.usage.cpu += Duration::from_millis(25);
        program.hibernation.memory.touched_bytes += 4 * MB;
        program.idle_for = Duration::ZERO;
        program.now += LOOK;
        assert_eq!(program.step(false), Some(LOOK));
        program.rest(TICK);
    }
    assert_eq!(program.out_mb(), 140);
}

#[test]
fn with_the_rest_out_work_is_told_by_a_mark_much_cpu_blocks_that_came_back_or_two_seconds_of_it() {
    let signs: [fn(&mut Program) -> bool; 4] = [
        |_| true,
        |program| {
            program.usage.cpu += Duration::from_millis(60);
            false
        },
        |program| {
            program.usage.faults += 4;
            program.hibernation.memory.touched_bytes = 16 * MB;
            false
        },
        |program| {
            program.idle_for = Duration::ZERO;
            program.step(false);
            program.now += BUSY;
            false
        },
    ];
    for sign in signs {
        let mut program = Program::new();
        program.sleep_deeply();
        program.now += LOOK;
        assert_eq!(program.step(false), Some(LOOK));
        let marked = sign(&mut program);
        assert_eq!(program.step(marked), Some(Duration::ZERO));
        program.settle();
        assert_eq!(program.out_mb(), 0);
    }
}

#[test]
fn where_something_small_wakes_the_program_soon_the_rest_is_left_for_twice_the_time() {
    let mut program = Program::new();
    program.sleep_deeply();
    program.work(TICK);
    program.rest(2 * AFTER);
    assert_eq!(program.out_mb(), 100);
    program.rest(AFTER);
    assert_eq!(program.out_mb(), 140);
    program.rest(2 * AFTER);
    program.work(TICK);
    program.rest(2 * AFTER);
    assert_eq!(program.out_mb(), 140);
}

#[test]
fn what_stayed_of_the_blocks_is_no_sign_of_work() {
    let mut program = Program::new();
    program.hibernation.memory.locked = Some(2 << 30);
    program.rest(2 * AFTER);
    assert_eq!(program.out_mb(), 60);
    program.usage.faults += 4;
    program.now += LOOK;
    assert_eq!(program.step(false), Some(LOOK));
}
