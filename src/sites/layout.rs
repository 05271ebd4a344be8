//! The offsets in CPython's structures that the walk of frames needs, by version.
//!
//! Up to 3.12 they are constants from the headers, which do not change within a minor version. From
//! 3.13 on the interpreter publishes them in `_PyRuntime` (`_Py_DebugOffsets`), whose own layout
//! depends on the version. Nothing else in the library knows CPython's layout.

/// The start of the chain of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// A pointer in the thread's state.
    Direct,
    /// Through another pointer in the thread's state, at this offset (3.11, 3.12).
    Through(usize),
}

/// The form of a frame's current instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The index of the instruction or of its byte, a C int at this offset.
    Index(usize),
    /// The address of the instruction. Its code begins at offset `code` of the code object.
    Pointer { frame: usize, code: usize },
}

/// The form of the line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// 3.9: pairs of increments.
    Lnotab,
    /// 3.10: pairs of ranges.
    Ranges,
    /// 3.11 and later: the location table.
    Locations,
}

/// Offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub chain: Chain,
    /// The pointer to the first frame.
    pub first_frame: usize,
    pub previous: usize,
    pub code: usize,
    /// In 3.12 the chain also has entries that are no frames. The owner field identifies them.
    pub owner: Option<usize>,
    pub position: Position,
    pub code_name: usize,
    pub code_file: usize,
    pub code_first_line: usize,
    pub code_lines: usize,
    pub lines: Lines,
    /// A compact string: its length, its flags, and the text if it is ASCII.
    pub text_len: usize,
    pub text_state: usize,
    pub text_ascii: usize,
    /// The text of a string that is not ASCII begins so many bytes later.
    pub text_compact_more: usize,
    pub bytes_start: usize,
}

/// The type of every object, and the length of one that has a length.
pub const TYPE: usize = 8;
pub const LENGTH: usize = 16;

/// The owner of an entry that is no frame: the C stack.
pub const C_STACK: u8 = 3;

const V3_9: Layout = Layout {
    chain: Chain::Direct,
    first_frame: 24,
    previous: 24,
    code: 32,
    owner: None,
    position: Position::Index(104),
    code_name: 112,
    code_file: 104,
    code_first_line: 40,
    code_lines: 120,
    lines: Lines::Lnotab,
    text_len: 16,
    text_state: 32,
    text_ascii: 48,
    text_compact_more: 24,
    bytes_start: 32,
};

const V3_10: Layout = Layout {
    position: Position::Index(96),
    lines: Lines::Ranges,
    ..V3_9
};

const V3_11: Layout = Layout {
    chain: Chain::Through(56),
    first_frame: 8,
    previous: 48,
    code: 32,
    position: Position::Pointer {
        frame: 56,
        code: 184,
    },
    code_name: 128,
    code_file: 112,
    code_first_line: 72,
    code_lines: 136,
    lines: Lines::Locations,
    ..V3_9
};

const V3_12: Layout = Layout {
    first_frame: 0,
    previous: 8,
    code: 0,
    owner: Some(70),
    position: Position::Pointer {
        frame: 56,
        code: 192,
    },
    code_first_line: 68,
    text_ascii: 40,
    text_compact_more: 16,
    ..V3_11
};

/// A minor version, as in the upper half of `PY_VERSION_HEX`.
const fn minor(number: u32) -> u32 {
    3 << 8 | number
}

/// The layout of a version that does not publish its own.
pub fn known(version: u32) -> Option<Layout> {
    of_version(version, [(9, V3_9), (10, V3_10), (11, V3_11), (12, V3_12)])
}

fn of_version<T, const N: usize>(version: u32, table: [(u32, T); N]) -> Option<T> {
    let mut rows = table.into_iter();
    let (_, row) = rows.find(|(number, _)| minor(*number) == version)?;
    Some(row)
}

/// Words of `_Py_DebugOffsets` that are read.
pub const DEBUG_WORDS: usize = 96;
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");

/// Positions in `_Py_DebugOffsets`, in words. Each group begins with the size of its structure.
struct Groups {
    thread: usize,
    frame: usize,
    code: usize,
    bytes: usize,
    unicode: usize,
}

const V3_13: Groups = Groups {
    thread: 19,
    frame: 28,
    code: 34,
    bytes: 64,
    unicode: 67,
};

const V3_14: Groups = Groups {
    thread: 22,
    frame: 31,
    code: 39,
    bytes: 74,
    unicode: 77,
};

/// The reasons why there is no layout.
pub const FREE_THREADED: &str = "this Python is free-threaded";
pub const UNKNOWN: &str = "this version of Python is not known";

/// The layout that an interpreter of 3.13 or later publishes.
pub fn from_debug_offsets(
    version: u32,
    words: &[u64; DEBUG_WORDS],
) -> Result<Layout, &'static str> {
    let at = of_version(version, [(13, V3_13), (14, V3_14)]).ok_or(UNKNOWN)?;
    let word = |index: usize| words.get(index).map_or(0, |word| *word as usize);
    if words[0] != COOKIE || words[1] >> 16 != u64::from(version) {
        return Err(UNKNOWN);
    }
    if words[2] != 0 {
        return Err(FREE_THREADED);
    }
    Ok(Layout {
        chain: Chain::Direct,
        first_frame: word(at.thread + 4),
        previous: word(at.frame + 1),
        code: word(at.frame + 2),
        owner: None,
        position: Position::Pointer {
            frame: word(at.frame + 3),
            code: word(at.code + 9),
        },
        code_file: word(at.code + 1),
        code_name: word(at.code + 3),
        code_lines: word(at.code + 4),
        code_first_line: word(at.code + 5),
        lines: Lines::Locations,
        text_state: word(at.unicode + 1),
        text_len: word(at.unicode + 2),
        text_ascii: word(at.unicode + 3),
        text_compact_more: 16,
        bytes_start: word(at.bytes + 2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of 3.13.0 that are used, recorded from its `_PyRuntime`.
    fn recorded_3_13() -> [u64; DEBUG_WORDS] {
        let mut words = [0; DEBUG_WORDS];
        words[..3].copy_from_slice(&[COOKIE, 0x030d_00f0, 0]);
        words[19..28].copy_from_slice(&[304, 0, 8, 16, 72, 152, 160, 232, 32]);
        words[28..34].copy_from_slice(&[80, 8, 0, 56, 72, 70]);
        words[34..44].copy_from_slice(&[208, 112, 120, 128, 136, 68, 52, 96, 104, 200]);
        words[64..67].copy_from_slice(&[40, 16, 32]);
        words[67..71].copy_from_slice(&[64, 32, 16, 40]);
        words
    }

    #[test]
    fn debug_offsets_of_3_13_give_its_layout() {
        let expected = Layout {
            chain: Chain::Direct,
            first_frame: 72,
            owner: None,
            position: Position::Pointer {
                frame: 56,
                code: 200,
            },
            ..V3_12
        };
        assert_eq!(
            from_debug_offsets(minor(13), &recorded_3_13()),
            Ok(expected)
        );
    }

    #[test]
    fn free_threaded_and_unknown_builds_have_no_layout() {
        let mut words = recorded_3_13();
        words[2] = 1;
        assert_eq!(from_debug_offsets(minor(13), &words), Err(FREE_THREADED));
        assert_eq!(
            from_debug_offsets(minor(14), &recorded_3_13()),
            Err(UNKNOWN)
        );
        assert_eq!(
            from_debug_offsets(minor(15), &recorded_3_13()),
            Err(UNKNOWN)
        );
        words[0] = 0;
        assert_eq!(from_debug_offsets(minor(13), &words), Err(UNKNOWN));
    }

    #[test]
    fn table_has_only_the_versions_that_publish_no_offsets() {
        let known = |number| known(minor(number)).is_some();
        assert!((9..=12).all(known));
        assert!(!known(8) && !known(13));
    }
}
