//! Finds the line of an instruction in CPython's line tables. Pure: bytes in, a line out.

use super::layout::Lines;

/// The line of instruction `index` in a code object whose first line is `first`. In 3.9 the index
/// counts bytes, later instructions of two bytes. `byte` returns a byte of the table, or `None`
/// after its end.
pub fn line_of(form: Lines, byte: impl Fn(usize) -> Option<u8>, first: i32, index: i32) -> i32 {
    if index < 0 {
        return first;
    }
    match form {
        Lines::Lnotab => lnotab(byte, first, index),
        Lines::Ranges => ranges(byte, first, index),
        Lines::Locations => locations(byte, first, index),
    }
}

/// Pairs of increments: of the position in the code, and of the line.
fn lnotab(byte: impl Fn(usize) -> Option<u8>, first: i32, index: i32) -> i32 {
    let (mut line, mut at) = (first, 0);
    for (length, delta) in pairs(byte) {
        at += length;
        if at > index {
            break;
        }
        line = line.wrapping_add(delta);
    }
    line
}

/// An unsigned and a signed byte each.
fn pairs(byte: impl Fn(usize) -> Option<u8>) -> impl Iterator<Item = (i32, i32)> {
    let pair = move |at| Some((byte(at)?.into(), (byte(at + 1)? as i8).into()));
    (0..).step_by(2).map_while(pair)
}

/// Pairs: a number of code bytes, and the increment to their line. -128: they have no line.
fn ranges(byte: impl Fn(usize) -> Option<u8>, first: i32, index: i32) -> i32 {
    let (mut line, mut end) = (first, 0);
    for (length, delta) in pairs(byte) {
        end += length;
        if delta != -128 {
            line = line.wrapping_add(delta);
        }
        if index.wrapping_mul(2) < end {
            break;
        }
    }
    line
}

/// Entries: one byte with the kind and the length in code, then the data of the kind.
fn locations(byte: impl Fn(usize) -> Option<u8>, first: i32, index: i32) -> i32 {
    let (mut line, mut end, mut at) = (first, 0i32, 0usize);
    while let Some(head) = byte(at) {
        at += 1;
        let kind = (head >> 3) & 15;
        match kind {
            15 => {}
            13 | 14 => {
                let numbers = if kind == 14 { 4 } else { 1 };
                for number in 0..numbers {
                    let value;
                    (value, at) = varint(&byte, at);
                    if number == 0 {
                        line = line.wrapping_add(signed(value));
                    }
                }
            }
            10..=12 => {
                line = line.wrapping_add(i32::from(kind) - 10);
                at += 2;
            }
            _ => at += 1,
        }
        end = end.wrapping_add(i32::from(head & 7) + 1);
        if index < end {
            break;
        }
    }
    line
}

/// Six bits per byte, the lowest first. Returns the value and the position after it.
fn varint(byte: impl Fn(usize) -> Option<u8>, mut at: usize) -> (u32, usize) {
    let (mut value, mut shift) = (0u32, 0);
    loop {
        let Some(part) = byte(at) else {
            return (value, at);
        };
        at += 1;
        value |= u32::from(part & 63) << shift;
        shift += 6;
        if part & 64 == 0 || shift > 24 {
            return (value, at);
        }
    }
}

/// The lowest bit is the sign.
fn signed(value: u32) -> i32 {
    let size = (value >> 1) as i32;
    if value & 1 == 1 {
        -size
    } else {
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables are of this function, compiled by 3.9, 3.10 and 3.12:
    ///
    /// ```python
    /// def f(x):
    ///     y = [x,
    ///          x]
    ///     if x:
    ///         return g(y)
    /// ```
    fn line(form: Lines, table: &[u8], index: i32) -> i32 {
        line_of(form, |at| table.get(at).copied(), 1, index)
    }

    #[test]
    fn the_table_of_3_9_is_pairs_of_increments() {
        let table = [0, 1, 2, 1, 2, 255, 4, 2, 4, 1];
        let lines = [0, 2, 4, 8, 12, 18].map(|index| line(Lines::Lnotab, &table, index));
        assert_eq!(lines, [2, 3, 2, 4, 5, 5]);
    }

    #[test]
    fn the_table_of_3_10_is_pairs_of_ranges() {
        let table = [2, 1, 2, 1, 4, 255, 4, 2, 8, 1, 4, 255];
        let lines = [0, 1, 2, 4, 6, 11].map(|index| line(Lines::Ranges, &table, index));
        assert_eq!(lines, [2, 3, 2, 4, 5, 4]);
    }

    #[test]
    fn instruction_of_3_10_without_a_line_has_the_line_before() {
        assert_eq!(line(Lines::Ranges, &[2, 3, 2, 128, 2, 1], 1), 4);
    }

    #[test]
    fn the_table_of_3_11_and_later_has_entries_of_five_kinds() {
        let table = [
            128, 0, 216, 9, 10, 216, 9, 10, 240, 3, 1, 9, 12, 128, 65, 225, 7, 8, 220, 15, 16, 144,
            17, 139, 116, 136, 11, 240, 3, 0, 8, 9,
        ];
        let lines = [0, 1, 2, 3, 5, 7, 13, 18].map(|at| line(Lines::Locations, &table, at));
        assert_eq!(lines, [1, 2, 3, 2, 4, 5, 5, 4]);
        // One line on without columns, then none.
        let lines = [0, 1].map(|at| line(Lines::Locations, &[0xe8, 2, 0xf8], at));
        assert_eq!(lines, [2, 2]);
    }

    #[test]
    fn truncated_table_ends_the_search() {
        for form in [Lines::Lnotab, Lines::Ranges, Lines::Locations] {
            assert_eq!(line(form, &[], 3), 1);
            assert_eq!(line(form, &[0xf0], -1), 1);
            line(form, &[0xf0, 0xff], 900);
        }
    }
}
