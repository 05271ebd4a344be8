//! Visits the Python frames of a thread, the innermost first. Only reads: no lock, no allocation.

use super::layout::{Chain, Layout, Position, C_STACK, TYPE};
use super::memory::Memory;

/// The frames of one stack that are kept.
pub const DEPTH: usize = 24;
/// The links that are followed. The chain also has entries that are no frames.
const LINKS_MAX: usize = 4 * DEPTH;

/// A frame: its code object, and the current instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawFrame {
    pub code: usize,
    pub index: i32,
    /// A hash of name, line table and first line. It distinguishes a new code object from a freed
    /// one at the same address.
    pub check: u32,
}

impl RawFrame {
    pub fn hash(&self) -> u64 {
        let place = mix(self.code as u64, u64::from(self.index as u32));
        mix(place, u64::from(self.check))
    }
}

/// One step of a hash.
#[inline(always)]
pub fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

/// A hash of bytes.
pub fn mix_bytes(seed: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(seed, |hash, byte| mix(hash, u64::from(*byte)))
}

/// The facts about an interpreter that the walk needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interpreter {
    pub layout: Layout,
    /// The type of code objects. An entry whose code has another type is no Python frame.
    pub code_type: usize,
}

/// Calls `each` for the frames of a thread's state, at most [`DEPTH`] times.
#[inline(always)]
pub fn walk(
    memory: &impl Memory,
    python: &Interpreter,
    thread: usize,
    mut each: impl FnMut(RawFrame),
) {
    let layout = &python.layout;
    let start = match layout.chain {
        Chain::Direct => Some(thread),
        Chain::Through(offset) => memory.word(thread + offset),
    };
    let mut next = start.and_then(|start| memory.word(start.wrapping_add(layout.first_frame)));
    let mut found = 0;
    for _ in 0..LINKS_MAX {
        let Some(frame) = next.filter(|frame| *frame != 0 && found < DEPTH) else {
            return;
        };
        if let Some(raw) = read_frame(memory, python, frame) {
            each(raw);
            found += 1;
        }
        next = memory.word(frame.wrapping_add(layout.previous));
    }
}

#[inline(always)]
fn read_frame(memory: &impl Memory, python: &Interpreter, frame: usize) -> Option<RawFrame> {
    let layout = &python.layout;
    let at = |offset: usize| frame.wrapping_add(offset);
    if let Some(owner) = layout.owner
        && memory.byte(at(owner))? == C_STACK
    {
        return None;
    }
    // 3.14 stores flags in the lowest bits of a reference.
    let code = memory.word(at(layout.code))? & !3;
    if code == 0 || memory.word(code.wrapping_add(TYPE))? != python.code_type {
        return None;
    }
    let of_code = |offset: usize| code.wrapping_add(offset);
    let index = match layout.position {
        Position::Index(offset) => memory.int(at(offset))?,
        Position::Pointer { frame, code } => {
            let instruction = memory.word(at(frame))?;
            (instruction.wrapping_sub(of_code(code)) as isize >> 1) as i32
        }
    };
    let names =
        memory.word(of_code(layout.code_lines))? ^ memory.word(of_code(layout.code_name))?;
    let first_line = memory.int(of_code(layout.code_first_line))?;
    Some(RawFrame {
        code,
        index,
        check: mix(names as u64, u64::from(first_line as u32)) as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::super::layout;
    use super::super::memory::Checked;
    use super::*;

    /// Structures in the layout of 3.10.
    struct Scene {
        thread: [usize; 8],
        frames: Vec<[usize; 16]>,
        code: Box<[usize; 20]>,
    }

    const CODE_TYPE: usize = 0x1234;

    fn scene(depth: usize) -> (Box<Scene>, Interpreter) {
        let layout = layout::known(0x030a).unwrap();
        let mut code = Box::new([0; 20]);
        code[TYPE / 8] = CODE_TYPE;
        let mut scene = Box::new(Scene {
            thread: [0; 8],
            frames: Vec::with_capacity(depth), // must not move
            code,
        });
        let mut previous = 0;
        for index in 0..depth {
            let mut frame = [0; 16];
            frame[layout.previous / 8] = previous;
            frame[layout.code / 8] = scene.code.as_ptr() as usize;
            frame[96 / 8] = index;
            scene.frames.push(frame);
            previous = scene.frames[index].as_ptr() as usize;
        }
        scene.thread[layout.first_frame / 8] = previous;
        let code_type = CODE_TYPE;
        (scene, Interpreter { layout, code_type })
    }

    fn indices(scene: &Scene, python: &Interpreter) -> Vec<i32> {
        let mut found = Vec::new();
        walk(
            &Checked::new(),
            python,
            scene.thread.as_ptr() as usize,
            |raw| found.push(raw.index),
        );
        found
    }

    #[test]
    fn walk_visits_the_innermost_frames_first_up_to_the_depth() {
        let (small, python) = scene(3);
        assert_eq!(indices(&small, &python), [2, 1, 0]);
        let (deep, python) = scene(100);
        let expected: Vec<i32> = (100 - DEPTH as i32..100).rev().collect();
        assert_eq!(indices(&deep, &python), expected);
    }

    #[test]
    fn walk_skips_entries_without_code_and_ends_at_a_wrong_address() {
        let (mut scene, mut python) = scene(3);
        scene.frames[1][python.layout.code / 8] = scene.frames[0].as_ptr() as usize;
        assert_eq!(indices(&scene, &python), [2, 0]);
        python.layout.previous = 8;
        scene.frames[2][1] = 0x10;
        assert_eq!(indices(&scene, &python), [2]);
    }

    #[test]
    fn walk_of_a_cyclic_chain_ends() {
        let (mut scene, python) = scene(2);
        scene.frames[0][python.layout.previous / 8] = scene.frames[1].as_ptr() as usize;
        assert_eq!(indices(&scene, &python).len(), DEPTH);
    }
}
