//! Hibernation: an idle program's large blocks go to swap, after as long again all else that it has for itself, and come
//! back as soon as it works.
//!
//! While the rest is out, a heartbeat waits for its pages too. They stay in once they came, and it wakes nobody: work is then
//! told by more of it, or by blocks whose pages came back.
//!
//! Pure over `memory`, which the kernel answers, or a model in the tests. The governor calls `step` again and again; each
//! step pages one stride, so that the first sign of work ends the way out, and clients of the control channel and forks wait
//! for a stride at most. A stride is looked up again before it is paged: a block may have been freed meanwhile.

pub mod memory;
#[cfg(test)]
mod model;
#[cfg(test)]
mod rest_tests;
mod signs;
#[cfg(test)]
mod tests;
mod worth;

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use self::memory::{Memory, Of, Stride};
pub use self::signs::Usage;
use self::signs::{Sign, Signs};
use self::worth::Worth;

/// Less is not worth the work.
const WORTHWHILE_BYTES: u64 = 16 << 20;
/// At work for so long without a sign of much.
const BUSY: Duration = Duration::from_secs(2);
/// Strides that are looked at for pages that came back: a gigabyte takes some milliseconds.
const WATCHED: usize = 128;
/// Strides that the disk reads ahead of the one that comes back.
const AHEAD: usize = 4;
/// How often to look for signs of work while the pages are out.
const LOOK: Duration = Duration::from_millis(50);

pub struct Hibernation<M> {
    memory: M,
    phase: Phase,
    worth: Worth,
    signs: Signs,
    /// Still to be paged in this phase; the next is the last.
    left: Vec<Stride>,
    /// What went out, at least in part.
    out: Vec<Stride>,
    out_bytes: u64,
    /// The rest is out, too, or on its way.
    rest: Option<Rest>,
}

struct Rest {
    /// Of the blocks, and what of them is in memory all the same.
    watched: Vec<Stride>,
    stayed_bytes: u64,
    busy_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Awake,
    GoingOut,
    Out,
    /// Since then, when the program had used so much CPU.
    ComingBack(Instant, Duration),
}

/// What one step needs to know.
#[derive(Clone, Copy)]
pub struct View {
    pub now: Instant,
    /// For how long the program has been idle, as the governor's ticks see it; zero: it works.
    pub idle_for: Duration,
    pub usage: Usage,
    /// It marked a stage since the step before.
    pub marked: bool,
}

impl<M: Memory> Hibernation<M> {
    pub fn new(memory: M, after: Duration, now: Instant) -> Self {
        Hibernation {
            memory,
            phase: Phase::Awake,
            worth: Worth::new(after, now),
            signs: Signs::default(),
            left: Vec::new(),
            out: Vec::new(),
            out_bytes: 0,
            rest: None,
        }
    }

    /// All that is to go is out.
    pub fn is_out(&self) -> bool {
        self.phase == Phase::Out
    }

    /// Out and not yet back.
    pub fn out_bytes(&self) -> u64 {
        self.out_bytes
    }

    /// Answers how long the next step may wait; `None`: until the next tick.
    pub fn step(&mut self, view: View) -> Option<Duration> {
        let phase = self.phase;
        match phase {
            Phase::Awake => self.begin(view),
            Phase::GoingOut | Phase::Out if self.works(view) => self.wake(view),
            Phase::GoingOut => self.page_out(view),
            Phase::Out if self.is_rest_due(view) => self.begin_rest(view),
            Phase::Out => Some(LOOK),
            Phase::ComingBack(since, cpu) => self.page_back(view, since, cpu),
        }
    }

    fn begin(&mut self, view: View) -> Option<Duration> {
        if !self.worth.is_due(view.now, view.idle_for)
            || self.memory.live_bytes() < WORTHWHILE_BYTES
            || self.memory.room_bytes() < WORTHWHILE_BYTES
        {
            return None;
        }
        self.left = self.memory.strides();
        self.out.clear();
        self.signs = Signs::default();
        self.phase = Phase::GoingOut;
        Some(Duration::ZERO)
    }

    fn is_rest_due(&self, view: View) -> bool {
        self.rest.is_none() && self.worth.is_rest_due(view.now, view.idle_for)
    }

    fn begin_rest(&mut self, view: View) -> Option<Duration> {
        let every = self.out.len().div_ceil(WATCHED).max(1);
        let watched: Vec<_> = self.out.iter().copied().step_by(every).collect();
        self.rest = Some(Rest {
            stayed_bytes: self.memory.present_bytes(&watched),
            watched,
            busy_since: None,
        });
        self.left = self.memory.rest();
        self.worth.rest_goes_out(view.now);
        self.phase = Phase::GoingOut;
        Some(Duration::ZERO)
    }

    fn works(&mut self, view: View) -> bool {
        let sign = self.signs.tell(view.now, view.usage);
        let works = view.idle_for.is_zero();
        match &mut self.rest {
            _ if view.marked => true,
            None => works || sign > Sign::None,
            Some(rest) => {
                sign == Sign::Heavy
                    || rest.is_busy(view.now, works)
                    || sign == Sign::Light && rest.is_touched(&mut self.memory)
            }
        }
    }

    fn page_out(&mut self, view: View) -> Option<Duration> {
        let Some(stride) = self.left.pop() else {
            if self.out_bytes < WORTHWHILE_BYTES {
                return self.wake(view);
            }
            self.phase = Phase::Out;
            return Some(LOOK);
        };
        if stride.of != Of::Library && self.memory.room_bytes() < stride.bytes as u64 {
            self.left.retain(|stride| stride.of == Of::Library);
            return Some(Duration::ZERO);
        }
        if self.memory.is_live(stride) {
            let bytes = self.memory.page_out(stride);
            if bytes > 0 {
                self.out.push(stride);
                self.out_bytes += bytes;
            }
        }
        Some(Duration::ZERO)
    }

    /// The rest first, which all work needs, and of it first what cannot be announced. In address order: what the program
    /// reads in one go comes in one go.
    fn wake(&mut self, view: View) -> Option<Duration> {
        self.worth.is_enough(self.out_bytes >= WORTHWHILE_BYTES);
        self.left = std::mem::take(&mut self.out);
        self.rest = None;
        self.left
            .sort_unstable_by_key(|stride| Reverse((stride.of.rank(), stride.start)));
        for at in (self.left.len().saturating_sub(AHEAD)..self.left.len()).rev() {
            self.announce(self.left[at]);
        }
        self.phase = Phase::ComingBack(view.now, view.usage.cpu);
        Some(Duration::ZERO)
    }

    fn announce(&mut self, stride: Stride) {
        if self.memory.is_live(stride) {
            self.memory.announce(stride);
        }
    }

    fn page_back(&mut self, view: View, since: Instant, cpu: Duration) -> Option<Duration> {
        if let Some(stride) = self.left.pop() {
            if let Some(next) = self.left.len().checked_sub(AHEAD) {
                self.announce(self.left[next]);
            }
            if self.memory.is_live(stride) {
                let bytes = self.memory.page_back(stride);
                self.out_bytes = self.out_bytes.saturating_sub(bytes);
            }
            return Some(Duration::ZERO);
        }
        // What is left went with blocks that were freed, or came by the program's own faults.
        self.out_bytes = 0;
        self.left = Vec::new();
        let computed = view.usage.cpu.saturating_sub(cpu);
        let waited = view.now.duration_since(since).saturating_sub(computed);
        self.worth.woke(view.now, waited);
        self.phase = Phase::Awake;
        None
    }
}

impl Rest {
    /// What small things need has come back, and the program is at work all the same.
    fn is_busy(&mut self, now: Instant, works: bool) -> bool {
        if !works {
            self.busy_since = None;
            return false;
        }
        now.duration_since(*self.busy_since.get_or_insert(now)) >= BUSY
    }

    /// More of the blocks came back than a heartbeat takes, whose objects lie in some of them.
    fn is_touched(&self, memory: &mut impl Memory) -> bool {
        memory.present_bytes(&self.watched) >= self.stayed_bytes + WORTHWHILE_BYTES
    }
}
