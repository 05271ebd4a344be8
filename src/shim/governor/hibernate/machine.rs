//! The state machine of hibernation: awake, paging out, out, paging in, awake.
//!
//! The large blocks go out first. After the same time again the heap follows. While the heap is
//! out, a heartbeat of the program must not end the hibernation: it faults its few pages in, and
//! they stay in memory.
//!
//! Each step pages one chunk. So a sign of work ends the paging out at once, and a fork or a client
//! of the control channel waits for one chunk at most. A chunk's block may have been freed since
//! the chunk was listed, so each step checks that again.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use super::memory::{Chunk, Memory};
use super::policy::{Activity, HibernationBackoff, Outcome, WakeDetector, WORTHWHILE_BYTES};
use crate::governor::idle::Usage;

/// With the heap out, a program that was not idle for so long works.
pub const BUSY: Duration = Duration::from_secs(2);
/// Chunks of blocks whose present pages are counted: a gigabyte takes some milliseconds.
const WATCHED_CHUNKS: usize = 128;
/// Chunks that the disk reads ahead of the one that is paged in.
const PREFETCHED_CHUNKS: usize = 4;
/// Interval between two checks for work while pages are out.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub struct Machine<M> {
    pub(super) memory: M,
    pub(super) phase: Phase,
    backoff: HibernationBackoff,
    wake_detector: WakeDetector,
    /// Chunks to page in this phase; the last is the next.
    pub(super) left: Vec<Chunk>,
    /// Chunks that went out, at least in part.
    out: Vec<Chunk>,
    out_bytes: u64,
    /// Present once the heap goes out.
    heap_watch: Option<HeapWatch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Awake,
    PagingOut,
    Out,
    PagingIn {
        since: Instant,
        /// CPU time of the program until then.
        cpu: Duration,
        /// Bytes in swap at that time.
        out_bytes: u64,
    },
}

/// The input of one step.
#[derive(Clone, Copy)]
pub struct View {
    pub now: Instant,
    /// How long the program was idle at the governor's last tick; zero if it was not.
    pub idle_for: Duration,
    pub usage: Usage,
    /// The program passed a stage since the last step.
    pub passed_stage: bool,
}

impl<M: Memory> Machine<M> {
    pub fn new(memory: M, after: Duration, now: Instant) -> Self {
        Machine {
            memory,
            phase: Phase::Awake,
            backoff: HibernationBackoff::new(after, now),
            wake_detector: WakeDetector::default(),
            left: Vec::new(),
            out: Vec::new(),
            out_bytes: 0,
            heap_watch: None,
        }
    }

    pub fn is_out(&self) -> bool {
        self.phase == Phase::Out
    }

    /// Bytes that went out and have not come back.
    pub fn out_bytes(&self) -> u64 {
        self.out_bytes
    }

    /// Returns the time until the next step; `None`: at the governor's next tick.
    pub fn step(&mut self, view: View) -> Option<Duration> {
        let phase = self.phase;
        match phase {
            Phase::Awake => self.page_out_blocks_if_due(view),
            Phase::PagingOut | Phase::Out if self.is_program_at_work(view) => self.wake(view),
            Phase::PagingOut => self.page_out(view),
            Phase::Out if self.is_heap_due(view) => self.page_out_heap(view),
            Phase::Out => Some(CHECK_INTERVAL),
            Phase::PagingIn {
                since,
                cpu,
                out_bytes,
            } => {
                if self.page_in_next() {
                    return Some(Duration::ZERO);
                }
                let computed = view.usage.cpu.saturating_sub(cpu);
                let waited = view.now.duration_since(since).saturating_sub(computed);
                self.backoff.woke(view.now, Outcome { out_bytes, waited });
                self.phase = Phase::Awake;
                None
            }
        }
    }

    fn page_out_blocks_if_due(&mut self, view: View) -> Option<Duration> {
        if !self.backoff.are_blocks_due(view.now, view.idle_for)
            || self.memory.live_bytes() < WORTHWHILE_BYTES
            || self.memory.swap_room_bytes() < WORTHWHILE_BYTES
        {
            return None;
        }
        self.left = self.memory.block_chunks();
        self.out.clear();
        self.wake_detector = WakeDetector::default();
        self.phase = Phase::PagingOut;
        Some(Duration::ZERO)
    }

    fn is_heap_due(&self, view: View) -> bool {
        self.heap_watch.is_none() && self.backoff.is_heap_due(view.now, view.idle_for)
    }

    fn page_out_heap(&mut self, view: View) -> Option<Duration> {
        let every = self.out.len().div_ceil(WATCHED_CHUNKS).max(1);
        let blocks: Vec<_> = self.out.iter().copied().step_by(every).collect();
        self.heap_watch = Some(HeapWatch {
            present_bytes: self.memory.present_bytes(&blocks),
            blocks,
            busy_since: None,
        });
        self.left = self.memory.heap_chunks();
        self.backoff.heap_goes_out(view.now);
        self.phase = Phase::PagingOut;
        Some(Duration::ZERO)
    }

    fn is_program_at_work(&mut self, view: View) -> bool {
        let activity = self.wake_detector.observe(view.now, view.usage);
        let is_busy = view.idle_for.is_zero();
        match &mut self.heap_watch {
            _ if view.passed_stage => true,
            None => is_busy || activity > Activity::None,
            Some(watch) => {
                activity == Activity::Heavy
                    || watch.is_busy_for_long(view.now, is_busy)
                    || activity == Activity::Light && watch.have_blocks_returned(&mut self.memory)
            }
        }
    }

    fn page_out(&mut self, view: View) -> Option<Duration> {
        let Some(chunk) = self.left.pop() else {
            if self.out_bytes < WORTHWHILE_BYTES {
                return self.wake(view);
            }
            self.phase = Phase::Out;
            return Some(CHECK_INTERVAL);
        };
        if self.memory.swap_room_bytes() < chunk.bytes as u64 {
            self.left.clear();
        } else if self.memory.is_live(chunk) {
            let bytes = self.memory.page_out(chunk);
            if bytes > 0 {
                self.out.push(chunk);
                self.out_bytes += bytes;
            }
        }
        Some(Duration::ZERO)
    }

    fn wake(&mut self, view: View) -> Option<Duration> {
        self.left = std::mem::take(&mut self.out);
        self.heap_watch = None;
        self.left
            .sort_unstable_by_key(|chunk| Reverse(chunk.order_of_return()));
        for at in (self.left.len().saturating_sub(PREFETCHED_CHUNKS)..self.left.len()).rev() {
            self.prefetch(self.left[at]);
        }
        self.phase = Phase::PagingIn {
            since: view.now,
            cpu: view.usage.cpu,
            out_bytes: self.out_bytes,
        };
        Some(Duration::ZERO)
    }

    fn prefetch(&mut self, chunk: Chunk) {
        if self.memory.is_live(chunk) {
            self.memory.prefetch(chunk);
        }
    }

    /// False when no chunk is left.
    fn page_in_next(&mut self) -> bool {
        let Some(chunk) = self.left.pop() else {
            // Other pages went away with freed blocks, or the program's page faults read them.
            self.out_bytes = 0;
            self.left = Vec::new();
            return false;
        };
        if let Some(next) = self.left.len().checked_sub(PREFETCHED_CHUNKS) {
            self.prefetch(self.left[next]);
        }
        if self.memory.is_live(chunk) {
            let bytes = self.memory.page_in(chunk);
            self.out_bytes = self.out_bytes.saturating_sub(bytes);
        }
        true
    }
}

/// Distinguishes a heartbeat from work while the heap is out.
struct HeapWatch {
    /// A sample of the blocks, and its present bytes when the heap went out.
    blocks: Vec<Chunk>,
    present_bytes: u64,
    busy_since: Option<Instant>,
}

impl HeapWatch {
    fn is_busy_for_long(&mut self, now: Instant, is_busy: bool) -> bool {
        if !is_busy {
            self.busy_since = None;
            return false;
        }
        now.duration_since(*self.busy_since.get_or_insert(now)) >= BUSY
    }

    /// More pages of blocks came back than a heartbeat uses, some of whose objects lie in blocks.
    fn have_blocks_returned(&self, memory: &mut impl Memory) -> bool {
        memory.present_bytes(&self.blocks) >= self.present_bytes + WORTHWHILE_BYTES
    }
}
