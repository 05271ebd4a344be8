//! The table of sites: stacks that allocated recorded blocks, numbered from 1, with their frames. The
//! thread that first has a stack creates its entry. Entries never change.

use std::ffi::{c_void, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use flarena_shared::sites::{Frame, Stack};
use flarena_sys::loader::objects;

use super::intern::{Interned, ANY};
use super::layout::LENGTH;
use super::lines::line_of;
use super::memory::Memory;
use super::texts::{self, Utf8};
use super::walk::{mix, mix_bytes, Interpreter, RawFrame, DEPTH};

/// The number of sites that fit.
pub const SITES: usize = 4096;
const FRAMES: usize = 8192;

static ENTRIES: Interned<Entry, SITES> = Interned::new();
static FRAME_ENTRIES: Interned<FrameEntry, FRAMES> = Interned::new();

#[derive(Clone, Copy)]
enum Entry {
    /// The numbers of the frames, of which the first `depth` count.
    Python { frames: [u32; DEPTH], depth: usize },
    /// A thread without Python frames: the number of its name, and the code that called malloc.
    Thread { name: u32, caller: usize },
}

/// The numbers of two texts, and a line.
#[derive(Clone, Copy, Default)]
struct FrameEntry {
    file: u32,
    function: u32,
    line: i32,
}

/// The innermost frames of one thread.
#[derive(Default)]
pub struct RawStack {
    frames: [RawFrame; DEPTH],
    depth: usize,
    hash: u64,
}

impl RawStack {
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
pub fn of_stack(memory: &impl Memory, python: &Interpreter, stack: &RawStack, room: usize) -> u32 {
    ENTRIES.number(room, stack.hash, || Some(entry_of(memory, python, stack)))
}

#[cold]
fn entry_of(memory: &impl Memory, python: &Interpreter, stack: &RawStack) -> Entry {
    let mut frames = [0; DEPTH];
    for (number, raw) in frames.iter_mut().zip(stack.frames()) {
        *number = FRAME_ENTRIES.number(ANY, raw.hash(), || {
            let (file, function, line) = decode(memory, python, raw);
            let [file, function] =
                [file, function].map(|text| texts::number_of(text.as_str().as_bytes()));
            Some(FrameEntry {
                file,
                function,
                line,
            })
        });
    }
    let depth = stack.depth;
    Entry::Python { frames, depth }
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
    let hash = mix_bytes(mix(2, caller as u64), name);
    ENTRIES.number(room, hash, || {
        let name = texts::number_of(name);
        Some(Entry::Thread { name, caller })
    })
}

/// For reports: allocates. `None`: there is no such site, or a thread is creating its entry.
pub fn site(number: u32) -> Option<Stack> {
    let mut stack = Stack {
        site: number,
        ..Stack::default()
    };
    match ENTRIES.get(number)? {
        Entry::Python { frames, depth } => {
            stack.frames = frames.into_iter().take(depth).map(frame).collect();
        }
        Entry::Thread { name, caller } => {
            stack.thread = Some(texts::text(name).to_owned());
            stack.library = library_of(caller);
        }
    }
    Some(stack)
}

fn frame(number: u32) -> Frame {
    let entry = FRAME_ENTRIES.get(number).unwrap_or_default();
    let [file, function] = [entry.file, entry.function].map(|text| texts::text(text).to_owned());
    Frame(file, entry.line, function)
}

/// The file name of the library or program that contains the address.
fn library_of(address: usize) -> Option<String> {
    if address == 0 {
        return None;
    }
    let path = match objects::path_of(address as *const c_void)? {
        path if path.is_empty() => std::env::current_exe().ok()?,
        path => PathBuf::from(OsString::from_vec(path.into_bytes())),
    };
    Some(path.file_name()?.to_string_lossy().into_owned())
}
