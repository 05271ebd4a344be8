//! Opens what the user names: a file, plain or gzip, a pipe, `-` for standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;

const BUFFER_BYTES: usize = 256 * 1024;
/// A longer line is cut: markers are far shorter, and memory is not ours to spend.
const MOST_LINE_BYTES: usize = 256 * 1024;

/// The bar counts the bytes as they come from the disk, before they are unpacked.
pub fn open(path: &Path, bar: &ProgressBar) -> io::Result<Lines> {
    let inner: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else if path.is_dir() {
        return Err(io::Error::other("is a directory; name the files in it"));
    } else {
        Box::new(File::open(path)?)
    };
    let mut plain = BufReader::with_capacity(BUFFER_BYTES, bar.wrap_read(inner));
    let is_gzip = plain.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(Lines::new(if is_gzip {
        let unpacked = MultiGzDecoder::new(plain);
        Box::new(BufReader::with_capacity(BUFFER_BYTES, unpacked))
    } else {
        Box::new(plain)
    }))
}

/// The lines of a file, one at a time.
pub struct Lines {
    bytes: Box<dyn BufRead>,
    buffer: Vec<u8>,
    /// The number of the line that was read last, from 1.
    pub number: u64,
}

pub struct Line<'a> {
    pub bytes: &'a [u8],
    /// It ended with a newline and was not cut.
    pub whole: bool,
}

impl Lines {
    pub fn new(bytes: Box<dyn BufRead>) -> Self {
        Lines {
            bytes,
            buffer: Vec::new(),
            number: 0,
        }
    }

    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let mut start = (&mut self.bytes).take(MOST_LINE_BYTES as u64);
        if start.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        let whole = self.buffer.ends_with(b"\n");
        if !whole {
            self.bytes.skip_until(b'\n')?;
        }
        self.number += 1;
        Ok(Some(Line {
            bytes: &self.buffer,
            whole,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_the_last_may_lack_its_newline() {
        let mut lines = Lines::new(Box::new(&b"one\n\nthree"[..]));
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push((line.bytes.to_vec(), line.whole));
        }
        let expected: [(&[u8], bool); 3] = [(b"one\n", true), (b"\n", true), (b"three", false)];
        assert!(seen.iter().map(|(b, w)| (&b[..], *w)).eq(expected));
        assert_eq!(lines.number, 3);
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let endless = BufReader::new(io::repeat(b'x').take(20 << 20));
        let mut lines = Lines::new(Box::new(endless));
        assert_eq!(lines.next().unwrap().unwrap().bytes.len(), MOST_LINE_BYTES);
        assert!(lines.buffer.capacity() <= 2 * MOST_LINE_BYTES);
        assert!(lines.next().unwrap().is_none());
    }
}
