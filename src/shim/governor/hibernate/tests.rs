//! The state machine over a model of memory: which pages go out, and when they come back.

use std::time::{Duration, Instant};

use super::machine::{Machine, Phase, View, BUSY, CHECK_INTERVAL};
use super::memory::{cut, Chunk, Memory, Region};
use crate::governor::idle::Usage;

const MB: u64 = 1 << 20;
const CHUNK: u64 = 8 * MB;
const AFTER: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(500);

/// Two blocks of together 100 MB, and a heap. Each chunk is in memory or out.
struct Model {
    chunks: Vec<Chunk>,
    heap: Vec<Chunk>,
    out: Vec<usize>,
    /// Bytes of blocks that page faults of the program read.
    touched_bytes: u64,
    prefetched: Vec<usize>,
    freed: Option<usize>,
    locked: Option<usize>,
    swap_bytes: u64,
    /// Time to page one chunk in.
    slow: Duration,
}

impl Model {
    fn new() -> Model {
        let block = |start, bytes| cut(Region::Block(start), start, bytes);
        let mut chunks: Vec<_> = block(1 << 30, 60 << 20)
            .chain(block(2 << 30, 40 << 20))
            .collect();
        chunks.reverse();
        Model {
            chunks,
            heap: Vec::new(),
            out: Vec::new(),
            touched_bytes: 0,
            prefetched: Vec::new(),
            freed: None,
            locked: None,
            swap_bytes: 1 << 30,
            slow: Duration::ZERO,
        }
    }

    fn out_bytes(&self) -> u64 {
        let is_out = |chunk: &&Chunk| self.out.contains(&chunk.start);
        let all = self.chunks.iter().chain(&self.heap);
        all.filter(is_out).map(|s| s.bytes as u64).sum()
    }
}

impl Memory for Model {
    fn live_bytes(&mut self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes as u64).sum()
    }

    fn block_chunks(&mut self) -> Vec<Chunk> {
        self.chunks.clone()
    }

    fn heap_chunks(&mut self) -> Vec<Chunk> {
        self.heap.clone()
    }

    fn present_bytes(&mut self, chunks: &[Chunk]) -> u64 {
        assert!(chunks.iter().all(is_of_a_block));
        let present = chunks
            .iter()
            .filter(|chunk| !self.out.contains(&chunk.start));
        self.touched_bytes + present.map(|chunk| chunk.bytes as u64).sum::<u64>()
    }

    fn is_live(&mut self, chunk: Chunk) -> bool {
        self.freed
            .is_none_or(|block| chunk.region != Region::Block(block))
    }

    fn swap_room_bytes(&mut self) -> u64 {
        self.swap_bytes - self.out_bytes()
    }

    fn prefetch(&mut self, chunk: Chunk) {
        assert!(self.is_live(chunk));
        self.prefetched.push(chunk.start);
    }

    fn page_out(&mut self, chunk: Chunk) -> u64 {
        assert!(self.is_live(chunk) && chunk.bytes as u64 <= self.swap_room_bytes());
        let is_locked = self
            .locked
            .is_some_and(|block| chunk.region == Region::Block(block));
        if is_locked || self.out.contains(&chunk.start) {
            return 0;
        }
        self.out.push(chunk.start);
        chunk.bytes as u64
    }

    fn page_in(&mut self, chunk: Chunk) -> u64 {
        assert!(self.is_live(chunk), "the block was freed");
        assert!(
            self.prefetched.contains(&chunk.start),
            "the chunk was not prefetched"
        );
        let before = self.out.len();
        self.out.retain(|start| *start != chunk.start);
        (before - self.out.len()) as u64 * chunk.bytes as u64
    }
}

fn is_of_a_block(chunk: &Chunk) -> bool {
    matches!(chunk.region, Region::Block(_))
}

/// A program with a simulated clock.
struct Program {
    machine: Machine<Model>,
    now: Instant,
    idle_for: Duration,
    usage: Usage,
}

impl Program {
    fn new() -> Program {
        let now = Instant::now();
        Program {
            machine: Machine::new(Model::new(), AFTER, now),
            now,
            idle_for: Duration::ZERO,
            usage: Usage::default(),
        }
    }

    fn step(&mut self, passed_stage: bool) -> Option<Duration> {
        let was_paging_in = matches!(self.machine.phase, Phase::PagingIn { .. });
        let pause = self.machine.step(View {
            now: self.now,
            idle_for: self.idle_for,
            usage: self.usage,
            passed_stage,
        });
        if was_paging_in {
            self.now += self.machine.memory.slow;
        }
        pause
    }

    /// Is idle for so long. Makes all steps that are due.
    fn stay_idle(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.idle_for += TICK;
            self.now += TICK;
            self.settle();
        }
    }

    /// Makes steps until the next one may wait.
    fn settle(&mut self) {
        while self.step(false) == Some(Duration::ZERO) {}
    }

    /// Computes for so long, and is never idle.
    fn work(&mut self, time: Duration) {
        (self.now, self.usage.cpu) = (self.now + time, self.usage.cpu + time);
        self.idle_for = Duration::ZERO;
        self.settle();
    }

    /// Adds a heap of 40 MB, and stays idle until it is out, too.
    fn idle_until_heap_is_out(&mut self) {
        self.machine.memory.heap = cut(Region::Heap, 3 << 30, 40 << 20).collect();
        self.stay_idle(2 * AFTER);
        assert_eq!(self.out_mb(), 140);
    }

    fn out_mb(&self) -> u64 {
        assert_eq!(self.machine.out_bytes(), self.machine.memory.out_bytes());
        self.machine.out_bytes() / MB
    }
}

#[test]
fn blocks_go_out_after_the_idle_time_of_the_setting_and_come_back_when_the_program_works() {
    let mut program = Program::new();
    program.stay_idle(AFTER - TICK);
    assert_eq!(program.out_mb(), 0);
    program.stay_idle(TICK);
    assert_eq!(program.out_mb(), 100);
    program.stay_idle(AFTER);
    program.work(TICK);
    assert_eq!(program.out_mb(), 0);
    // While the program works, nothing goes out.
    program.work(10 * AFTER);
    assert_eq!(program.out_mb(), 0);
}

#[test]
fn cpu_time_major_faults_or_a_stage_wake_and_a_heartbeat_does_not() {
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
        program.stay_idle(AFTER);
        for _ in 0..3 {
            program.now += CHECK_INTERVAL;
            assert_eq!(program.step(false), Some(CHECK_INTERVAL));
        }
        program.now += CHECK_INTERVAL;
        let passed_stage = sign(&mut program);
        let pause = program.step(passed_stage);
        assert_eq!(pause == Some(Duration::ZERO), wakes);
        program.settle();
        assert_eq!(program.out_mb() == 0, wakes);
    }
}

#[test]
fn the_first_sign_of_work_ends_the_paging_out() {
    let mut program = Program::new();
    program.stay_idle(AFTER - TICK);
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
    program.machine.memory.chunks.rotate_left(3);
    program.stay_idle(AFTER);
    program.step(true);
    let left = &program.machine.left;
    assert!(left.is_sorted_by(|a, b| a.start > b.start) && left.len() == 13);
}

#[test]
fn a_block_that_was_freed_is_not_paged_in() {
    let mut program = Program::new();
    program.stay_idle(AFTER);
    program.machine.memory.freed = Some(1 << 30);
    program.work(TICK);
    assert_eq!(program.machine.out_bytes(), 0);
    assert_eq!(program.machine.memory.out_bytes(), 60 * MB);
}

#[test]
fn a_locked_block_stays_in_memory() {
    let mut program = Program::new();
    program.machine.memory.locked = Some(1 << 30);
    program.stay_idle(AFTER);
    assert_eq!(program.out_mb(), 40);
}

#[test]
fn the_room_in_swap_limits_how_much_goes_out() {
    let mut program = Program::new();
    program.machine.memory.swap_bytes = 50 * MB;
    program.stay_idle(AFTER);
    assert_eq!(program.out_mb(), 50 * MB / CHUNK * CHUNK / MB);
    program.work(TICK);
    program.machine.memory.swap_bytes = 0;
    program.stay_idle(10 * AFTER);
    assert_eq!(program.out_mb(), 0);
}

#[test]
fn a_hibernation_that_cost_a_hundredth_of_the_round_delays_the_next_until_one_pays() {
    let mut program = Program::new();
    // 13 chunks take 1.3 s.
    program.machine.memory.slow = Duration::from_millis(100);
    program.stay_idle(2 * AFTER);
    program.work(Duration::from_secs(60));
    program.stay_idle(AFTER);
    assert_eq!(program.out_mb(), 0);
    program.stay_idle(12 * AFTER);
    assert_eq!(program.out_mb(), 100);
    program.work(TICK);
    program.stay_idle(AFTER + TICK);
    assert_eq!(program.out_mb(), 100);
}

#[test]
fn cpu_time_during_the_paging_in_is_no_cost() {
    let mut program = Program::new();
    program.stay_idle(AFTER);
    program.machine.memory.slow = Duration::from_millis(100);
    program.step(true);
    while program.step(false) == Some(Duration::ZERO) {
        program.usage.cpu += Duration::from_millis(100);
    }
    program.idle_for = Duration::ZERO;
    program.stay_idle(AFTER + TICK);
    assert_eq!(program.out_mb(), 100);
}

#[test]
fn the_heap_goes_out_after_the_same_time_again_and_comes_back_before_the_blocks() {
    let mut program = Program::new();
    program.idle_until_heap_is_out();
    assert_eq!(program.step(true), Some(Duration::ZERO));
    let left = &program.machine.left;
    let (blocks, heap) = left.split_at(left.len() - 5);
    assert!(blocks.iter().all(is_of_a_block));
    assert!(!heap.iter().any(is_of_a_block));
    assert!(heap.is_sorted_by(|a, b| a.start > b.start));
    program.settle();
    assert_eq!(program.out_mb(), 0);
}

#[test]
fn with_the_heap_out_a_heartbeat_does_not_wake() {
    let mut program = Program::new();
    program.idle_until_heap_is_out();
    for _ in 0..3 {
        program.usage.faults += 500;
        program.usage.cpu += Duration::from_millis(25);
        program.machine.memory.touched_bytes += 4 * MB;
        program.idle_for = Duration::ZERO;
        program.now += CHECK_INTERVAL;
        assert_eq!(program.step(false), Some(CHECK_INTERVAL));
        program.stay_idle(TICK);
    }
    assert_eq!(program.out_mb(), 140);
}

#[test]
fn with_the_heap_out_a_stage_much_cpu_returned_blocks_or_two_busy_seconds_wake() {
    let signs: [fn(&mut Program) -> bool; 4] = [
        |_| true,
        |program| {
            program.usage.cpu += Duration::from_millis(60);
            false
        },
        |program| {
            program.usage.faults += 4;
            program.machine.memory.touched_bytes = 16 * MB;
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
        program.idle_until_heap_is_out();
        program.now += CHECK_INTERVAL;
        assert_eq!(program.step(false), Some(CHECK_INTERVAL));
        let passed_stage = sign(&mut program);
        assert_eq!(program.step(passed_stage), Some(Duration::ZERO));
        program.settle();
        assert_eq!(program.out_mb(), 0);
    }
}

#[test]
fn an_early_wake_up_doubles_the_time_before_the_heap_goes_out() {
    let mut program = Program::new();
    program.idle_until_heap_is_out();
    program.work(TICK);
    program.stay_idle(2 * AFTER);
    assert_eq!(program.out_mb(), 100);
    program.stay_idle(AFTER);
    assert_eq!(program.out_mb(), 140);
    program.stay_idle(2 * AFTER);
    program.work(TICK);
    program.stay_idle(2 * AFTER);
    assert_eq!(program.out_mb(), 140);
}

#[test]
fn blocks_that_stayed_in_memory_are_no_sign_of_work() {
    let mut program = Program::new();
    program.machine.memory.locked = Some(2 << 30);
    program.stay_idle(2 * AFTER);
    assert_eq!(program.out_mb(), 60);
    program.usage.faults += 4;
    program.now += CHECK_INTERVAL;
    assert_eq!(program.step(false), Some(CHECK_INTERVAL));
}
