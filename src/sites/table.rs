//! The table of sites: stacks that allocated recorded blocks, numbered from 1, with their frames. The
//! thread that first has a stack creates its entry. Entries never change.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU8, AtomicUsize, Ordering};

use super::intern::{self, Numbers};
use super::layout::LENGTH;
use super::lines::line_of;
use super::memory::Memory;
use super::texts::{self, Utf8};
use super::walk::{mix, Interpreter, RawFrame, DEPTH};

const SITE_SLOTS: usize = 8192;
const FRAME_SLOTS: usize = 16384;
/// The number of sites that fit.
pub const SITES: usize = SITE_SLOTS / 2;

static SITE_NUMBERS: Numbers<SITE_SLOTS> = Numbers::new();
static FRAME_NUMBERS: Numbers<FRAME_SLOTS> = Numbers::new();
static SITE_ENTRIES: [SiteEntry; SITES + 1] = [const { SiteEntry::new() }; SITES + 1];
static FRAME_ENTRIES: [FrameEntry; FRAME_SLOTS / 2 + 1] =
    [const { FrameEntry::new() }; FRAME_SLOTS / 2 + 1];

/// Python frames; for a thread without any, its name and the code that called malloc.
struct SiteEntry {
    frames: [AtomicU32; DEPTH],
    depth: AtomicU8,
    thread: AtomicU32,
    caller: AtomicUsize,
    ready: AtomicBool,
}

impl SiteEntry {
    const fn new() -> Self {
        SiteEntry {
            frames: [const { AtomicU32::new(0) }; DEPTH],
            depth: AtomicU8::new(0),
            thread: AtomicU32::new(0),
            caller: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
        }
    }
}

struct FrameEntry {
    file: AtomicU32,
    function: AtomicU32,
    line: AtomicI32,
    ready: AtomicBool,
}

impl FrameEntry {
    const fn new() -> Self {
        FrameEntry {
            file: AtomicU32::new(0),
            function: AtomicU32::new(0),
            line: AtomicI32::new(0),
            ready: AtomicBool::new(false),
        }
    }
}

/// The innermost frames of one thread.
pub struct Stack {
    frames: [RawFrame; DEPTH],
    depth: usize,
    hash: u64,
}

impl Stack {
    pub const EMPTY: Stack = Stack {
        frames: [RawFrame {
            code: 0,
            index: 0,
            check: 0,
        }; DEPTH],
        depth: 0,
        hash: 1,
    };

    #[inline(always)]
    pub fn push(&mut self, frame: RawFrame) {
        if let Some(place) = self.frames.get_mut(self.depth) {
            *place = frame;
            self.depth += 1;
            self.hash = mix(self.hash, frame.hash());
        }
    }

    pub fn frames(&self) -> &[RawFrame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }
}

/// The site of a stack of this thread, among the first `room`; 0 if these are taken.
#[inline]
pub fn of_stack(memory: &impl Memory, python: &Interpreter, stack: &Stack, room: usize) -> u32 {
    SITE_NUMBERS.number(room, stack.hash, |number| {
        store_stack(memory, python, stack, number)
    })
}

#[cold]
fn store_stack(memory: &impl Memory, python: &Interpreter, stack: &Stack, number: u32) {
    let Some(entry) = SITE_ENTRIES.get(number as usize) else {
        return;
    };
    for (place, raw) in entry.frames.iter().zip(stack.frames()) {
        place.store(frame_number(memory, python, raw), Ordering::Relaxed);
    }
    entry.depth.store(stack.depth as u8, Ordering::Relaxed);
    entry.ready.store(true, Ordering::Release);
}

fn frame_number(memory: &impl Memory, python: &Interpreter, raw: &RawFrame) -> u32 {
    FRAME_NUMBERS.number(intern::ANY, raw.hash(), |number| {
        let Some(entry) = FRAME_ENTRIES.get(number as usize) else {
            return;
        };
        let (file, function, line) = decode(memory, python, raw);
        let keep = |text: Utf8| texts::number_of(text.as_bytes());
        entry.file.store(keep(file), Ordering::Relaxed);
        entry.function.store(keep(function), Ordering::Relaxed);
        entry.line.store(line, Ordering::Relaxed);
        entry.ready.store(true, Ordering::Release);
    })
}

/// File, function and line of a frame. Its code must not be freed meanwhile.
pub fn decode(memory: &impl Memory, python: &Interpreter, raw: &RawFrame) -> (Utf8, Utf8, i32) {
    let layout = &python.layout;
    let word = |offset: usize| memory.word(raw.code.wrapping_add(offset)).unwrap_or(0);
    let text = |offset: usize| Utf8::of(memory, layout, word(offset));
    let first = memory.int(raw.code.wrapping_add(layout.code_first_line));
    let table = word(layout.code_lines);
    let len = memory.word(table.wrapping_add(LENGTH)).unwrap_or(0);
    let start = table.wrapping_add(layout.bytes_start);
    let byte = |at: usize| (at < len).then(|| memory.byte(start.wrapping_add(at)))?;
    let line = line_of(layout.lines, byte, first.unwrap_or(0), raw.index);
    (text(layout.code_file), text(layout.code_name), line)
}

/// The site of a thread without Python frames, by its name and malloc's caller (0: unknown).
pub fn of_thread(name: &[u8], caller: usize, room: usize) -> u32 {
    let seed = mix(2, caller as u64);
    let hash = name
        .iter()
        .fold(seed, |hash, byte| mix(hash, u64::from(*byte)));
    SITE_NUMBERS.number(room, hash, |number| {
        if let Some(entry) = SITE_ENTRIES.get(number as usize) {
            let thread = texts::number_of(name);
            entry.thread.store(thread, Ordering::Relaxed);
            entry.caller.store(caller, Ordering::Relaxed);
            entry.ready.store(true, Ordering::Release);
        }
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub file: &'static str,
    pub line: i32,
    pub function: &'static str,
}

/// A site for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// The innermost first.
    Python(Vec<Frame>),
    Thread {
        name: &'static str,
        caller: usize,
    },
}

/// For reports: allocates. `None`: there is no such site, or a thread is creating its entry.
pub fn site(number: u32) -> Option<Site> {
    let entry = SITE_ENTRIES.get(number as usize)?;
    if !entry.ready.load(Ordering::Acquire) {
        return None;
    }
    let depth = usize::from(entry.depth.load(Ordering::Relaxed));
    if depth == 0 {
        return Some(Site::Thread {
            name: texts::text(entry.thread.load(Ordering::Relaxed)),
            caller: entry.caller.load(Ordering::Relaxed),
        });
    }
    let frames = entry.frames.iter().take(depth);
    let frames = frames.map(|number| frame(number.load(Ordering::Relaxed)));
    Some(Site::Python(frames.collect()))
}

fn frame(number: u32) -> Frame {
    let entry = FRAME_ENTRIES.get(number as usize);
    match entry.filter(|entry| entry.ready.load(Ordering::Acquire)) {
        Some(entry) => Frame {
            file: texts::text(entry.file.load(Ordering::Relaxed)),
            line: entry.line.load(Ordering::Relaxed),
            function: texts::text(entry.function.load(Ordering::Relaxed)),
        },
        None => Frame {
            file: "?",
            line: 0,
            function: "?",
        },
    }
}
