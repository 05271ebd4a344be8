//! A model of memory, whose strides are in it or out of it, and a program with a clock of its own.

use super::memory::{cut, Memory, Of, Stride};
use super::*;

pub const MB: u64 = 1 << 20;
pub const STRIDE: u64 = 8 * MB;
pub const AFTER: Duration = Duration::from_secs(10);
pub const TICK: Duration = Duration::from_millis(500);

pub const LIBRARY: usize = 4 << 30;

/// 100 MB in two blocks. What is locked stays, what is freed is gone.
pub struct Model {
    pub strides: Vec<Stride>,
    pub rest: Vec<Stride>,
    pub out: Vec<usize>,
    /// What left of libraries.
    pub files_out: Vec<usize>,
    /// What came back of the blocks by the program's own faults.
    pub touched_bytes: u64,
    pub announced: Vec<usize>,
    pub freed: Option<usize>,
    pub locked: Option<usize>,
    pub swap_bytes: u64,
    /// What a stride takes to come back.
    pub slow: Duration,
}

impl Model {
    pub fn new() -> Model {
        let block = |start, bytes| cut(Of::Block(start), start, bytes);
        let mut strides: Vec<_> = block(1 << 30, 60 << 20)
            .chain(block(2 << 30, 40 << 20))
            .collect();
        strides.reverse();
        Model {
            strides,
            rest: Vec::new(),
            out: Vec::new(),
            files_out: Vec::new(),
            touched_bytes: 0,
            announced: Vec::new(),
            freed: None,
            locked: None,
            swap_bytes: 1 << 30,
            slow: Duration::ZERO,
        }
    }

    pub fn out_bytes(&self) -> u64 {
        let is_out = |stride: &&Stride| self.out.contains(&stride.start);
        let all = self.strides.iter().chain(&self.rest);
        all.filter(is_out).map(|s| s.bytes as u64).sum()
    }
}

impl Memory for Model {
    fn live_bytes(&mut self) -> u64 {
        self.strides.iter().map(|stride| stride.bytes as u64).sum()
    }

    fn strides(&mut self) -> Vec<Stride> {
        self.strides.clone()
    }

    fn rest(&mut self) -> Vec<Stride> {
        self.rest.clone()
    }

    fn present_bytes(&mut self, strides: &[Stride]) -> u64 {
        assert!(strides.iter().all(is_of_a_block));
        let present = strides
            .iter()
            .filter(|stride| !self.out.contains(&stride.start));
        self.touched_bytes + present.map(|stride| stride.bytes as u64).sum::<u64>()
    }

    fn is_live(&mut self, stride: Stride) -> bool {
        self.freed.is_none_or(|block| stride.of != Of::Block(block))
    }

    fn room_bytes(&mut self) -> u64 {
        self.swap_bytes - self.out_bytes()
    }

    fn announce(&mut self, stride: Stride) {
        assert!(self.is_live(stride));
        self.announced.push(stride.start);
    }

    fn page_out(&mut self, stride: Stride) -> u64 {
        let fits = stride.of == Of::Library || stride.bytes as u64 <= self.room_bytes();
        assert!(self.is_live(stride) && fits);
        let is_locked = self
            .locked
            .is_some_and(|block| stride.of == Of::Block(block));
        if is_locked || self.out.contains(&stride.start) {
            return 0;
        }
        if stride.of == Of::Library {
            self.files_out.push(stride.start);
            return 0;
        }
        self.out.push(stride.start);
        stride.bytes as u64
    }

    fn page_back(&mut self, stride: Stride) -> u64 {
        assert!(self.is_live(stride), "pages of a free block");
        assert!(self.announced.contains(&stride.start), "read page by page");
        let before = self.out.len();
        self.out.retain(|start| *start != stride.start);
        (before - self.out.len()) as u64 * stride.bytes as u64
    }
}

pub fn is_of_a_block(stride: &Stride) -> bool {
    matches!(stride.of, Of::Block(_))
}

/// A program with a clock of its own.
pub struct Program {
    pub hibernation: Hibernation<Model>,
    pub now: Instant,
    pub idle_for: Duration,
    pub usage: Usage,
}

impl Program {
    pub fn new() -> Program {
        let now = Instant::now();
        Program {
            hibernation: Hibernation::new(Model::new(), AFTER, now),
            now,
            idle_for: Duration::ZERO,
            usage: Usage::default(),
        }
    }

    pub fn step(&mut self, marked: bool) -> Option<Duration> {
        let was_coming = matches!(self.hibernation.phase, Phase::ComingBack(..));
        let pause = self.hibernation.step(View {
            now: self.now,
            idle_for: self.idle_for,
            usage: self.usage,
            marked,
        });
        if was_coming {
            self.now += self.hibernation.memory.slow;
        }
        pause
    }

    /// Idle for so long; all steps that are due are made.
    pub fn rest(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.idle_for += TICK;
            self.now += TICK;
            self.settle();
        }
    }

    /// Steps until nothing more is to be done at once.
    pub fn settle(&mut self) {
        while self.step(false) == Some(Duration::ZERO) {}
    }

    /// Computes for so long, all the time seen at work.
    pub fn work(&mut self, time: Duration) {
        (self.now, self.usage.cpu) = (self.now + time, self.usage.cpu + time);
        self.idle_for = Duration::ZERO;
        self.settle();
    }

    /// A library, and a heap of 40 MB.
    pub fn add_rest(&mut self) {
        let heap = cut(Of::Heap, 3 << 30, 40 << 20);
        let library = cut(Of::Library, LIBRARY, 1 << 20);
        self.hibernation.memory.rest = library.chain(heap).collect();
    }

    /// Rests until these are out as well.
    pub fn sleep_deeply(&mut self) {
        self.add_rest();
        self.rest(2 * AFTER);
        assert_eq!(self.out_mb(), 140);
    }

    pub fn out_mb(&self) -> u64 {
        assert_eq!(
            self.hibernation.out_bytes(),
            self.hibernation.memory.out_bytes()
        );
        self.hibernation.out_bytes() / MB
    }
}
