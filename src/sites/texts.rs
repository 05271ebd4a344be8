//! Names of files and functions as UTF-8. Each is stored once, in a static arena, and never freed.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::intern::{Interned, ANY};
use super::layout::Layout;
use super::memory::Memory;
use super::walk::mix_bytes;

const ROOM: usize = 1 << 20;
/// Bytes of a name that are kept: the last ones, because the end of a path says more.
const LONGEST: usize = 300;

struct Arena(UnsafeCell<[u8; ROOM]>);

// SAFETY: one thread writes a range, the one that advanced `USED` over it, before it shares the range.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; ROOM]));
static USED: AtomicUsize = AtomicUsize::new(0);
static TEXTS: Interned<&'static [u8], 4096> = Interned::new();

/// The number of a text; 0 if the table is full.
pub fn number_of(text: &[u8]) -> u32 {
    TEXTS.number(ANY, mix_bytes(1, text), || keep(text))
}

/// A copy in the arena. `None` if it is full.
fn keep(text: &[u8]) -> Option<&'static [u8]> {
    let more = |used: usize| Some(used + text.len()).filter(|end| *end <= ROOM);
    let start = USED.fetch_update(Relaxed, Relaxed, more).ok()?;
    // SAFETY: the range is inside the arena. The update reserved it for this thread, which writes it once.
    unsafe {
        let copy = ARENA.0.get().cast::<u8>().add(start);
        std::ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
        Some(std::slice::from_raw_parts(copy, text.len()))
    }
}

/// "?" if there was no room for the text, or while another thread writes it.
pub fn text(number: u32) -> &'static str {
    let text = TEXTS.get(number).unwrap_or(b"?");
    std::str::from_utf8(text).unwrap_or("?")
}

/// A Python string as UTF-8; of a long one, the end. Control characters become `?`.
pub struct Utf8 {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Utf8 {
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub fn of(memory: &impl Memory, layout: &Layout, object: usize) -> Utf8 {
        let mut text = Utf8 {
            bytes: [0; LONGEST],
            len: 0,
        };
        text.fill(memory, layout, object);
        text
    }

    fn fill(&mut self, memory: &impl Memory, layout: &Layout, object: usize) -> Option<()> {
        let len = memory.word(object.wrapping_add(layout.text_len))?;
        let state = memory.int(object.wrapping_add(layout.text_state))? as u32;
        let (width, ascii) = ((state >> 2 & 7) as usize, state >> 6 & 1 == 1);
        let more = if ascii { 0 } else { layout.text_compact_more };
        let start = object.wrapping_add(layout.text_ascii + more);
        if len > 1 << 16 || !matches!(width, 1 | 2 | 4) {
            return None;
        }
        // A character has at most four bytes.
        let mut first = 0;
        if len * if ascii { 1 } else { 4 } > LONGEST {
            first = len.saturating_sub(if ascii { LONGEST } else { LONGEST / 4 });
        }
        for index in first..len {
            let mut point = 0u32;
            for byte in 0..width {
                let part = memory.byte(start.wrapping_add(index * width + byte))?;
                point |= u32::from(part) << (8 * byte);
            }
            let letter = char::from_u32(point).filter(|c| !c.is_control());
            self.push(letter.unwrap_or('?'));
        }
        Some(())
    }

    fn push(&mut self, letter: char) {
        let room = self.bytes.get_mut(self.len..self.len + letter.len_utf8());
        if let Some(room) = room {
            self.len += letter.encode_utf8(room).len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout;
    use super::super::memory::Checked;
    use super::*;

    #[test]
    fn text_is_stored_once_and_read_back() {
        let number = number_of(b"fedavg.py");
        assert_eq!(number_of(b"fedavg.py"), number);
        assert_ne!(number_of(b"other.py"), number);
        assert_eq!((text(number), text(0)), ("fedavg.py", "?"));
    }

    /// A compact string in the layout of 3.12.
    fn python_text(width: u32, ascii: bool, len: usize, bytes: &[u8]) -> Vec<u8> {
        let layout = layout::known(0x030c).unwrap();
        let start = layout.text_ascii + if ascii { 0 } else { layout.text_compact_more };
        let mut object = vec![0; start];
        object[layout.text_len..][..8].copy_from_slice(&len.to_ne_bytes());
        let state = width << 2 | 1 << 5 | u32::from(ascii) << 6;
        object[layout.text_state..][..4].copy_from_slice(&state.to_ne_bytes());
        object.extend_from_slice(bytes);
        object
    }

    fn read(object: &[u8]) -> String {
        let layout = layout::known(0x030c).unwrap();
        let text = Utf8::of(&Checked::new(), &layout, object.as_ptr() as usize);
        text.as_str().to_owned()
    }

    #[test]
    fn strings_of_every_width_are_read() {
        assert_eq!(read(&python_text(1, true, 4, b"a\nb\"")), "a?b\"");
        assert_eq!(read(&python_text(1, false, 2, &[b'a', 0xe9])), "a\u{e9}");
        let wide: Vec<u8> = "\u{4e2d}x"
            .encode_utf16()
            .flat_map(u16::to_ne_bytes)
            .collect();
        assert_eq!(read(&python_text(2, false, 2, &wide)), "\u{4e2d}x");
        let wider = 0x1f600u32.to_ne_bytes();
        assert_eq!(read(&python_text(4, false, 1, &wider)), "\u{1f600}");
    }

    #[test]
    fn long_string_keeps_its_end() {
        let long = [vec![b'x'; 1000], b"end.py".to_vec()].concat();
        let text = read(&python_text(1, true, long.len(), &long));
        assert!(text.len() == LONGEST && text.ends_with("xend.py"));
        assert_eq!(read(&python_text(0, true, 5, b"odd")), "");
    }
}
