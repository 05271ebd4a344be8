//! Opens an input (a file, a pipe, or `-` for standard input; plain or gzip) and reads its lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use memchr::memchr;

const BUFFER_BYTES: usize = 256 * 1024;
/// A longer line is cut, so that the memory of the report stays bounded. Markers are much shorter.
const MAX_LINE_BYTES: u64 = 256 * 1024;
/// No further parts are added to a longer line.
const MAX_JOINED_BYTES: usize = 1 << 20;

/// The first bytes of formats that are not read, and the command that unpacks them.
const PACKED: [(&[u8], &str); 4] = [
    (b"\xfd7zXZ\0", "xz -d"),
    (b"\x28\xb5\x2f\xfd", "zstd -d"),
    (b"BZh", "bzip2 -d"),
    (b"PK\x03\x04", "unzip"),
];

pub fn open(path: &Path) -> io::Result<Lines> {
    let inner: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut plain = BufReader::with_capacity(BUFFER_BYTES, inner);
    let start = plain.fill_buf()?;
    if let Some((_, command)) = PACKED.iter().find(|(magic, _)| start.starts_with(magic)) {
        let text = format!("is compressed; unpack it first, with {command}");
        return Err(io::Error::other(text));
    }
    let is_gzip = start.starts_with(&[0x1f, 0x8b]);
    let unpacked = |plain| BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(plain));
    let mut bytes: Box<dyn BufRead> = match is_gzip {
        true => Box::new(unpacked(plain)),
        false => Box::new(plain),
    };
    // A damaged archive fails again when its lines are read.
    let unit: Option<fn([u8; 2]) -> u16> = match bytes.fill_buf() {
        Ok([0xff, 0xfe, ..]) => Some(u16::from_le_bytes),
        Ok([0xfe, 0xff, ..]) => Some(u16::from_be_bytes),
        _ => None,
    };
    Ok(Lines::new(match unit {
        Some(unit) => Box::new(BufReader::new(Utf16 { bytes, unit })),
        None => bytes,
    }))
}

/// Text in UTF-16, read as UTF-8.
struct Utf16 {
    bytes: Box<dyn BufRead>,
    unit: fn([u8; 2]) -> u16,
}

impl Read for Utf16 {
    /// One character at a time. A marker has only characters of one unit; others are replaced.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut written = 0;
        while buffer.len() - written >= char::MAX_LEN_UTF8 {
            let mut unit = [0; 2];
            match self.bytes.read_exact(&mut unit) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                read => read?,
            }
            let letter = char::from_u32(u32::from((self.unit)(unit)));
            let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
            written += letter.encode_utf8(&mut buffer[written..]).len();
        }
        Ok(written)
    }
}

/// Reads a file line by line.
pub struct Lines {
    bytes: Box<dyn BufRead>,
    buffer: Vec<u8>,
    /// The number of the last line read, from 1.
    pub number: u64,
}

impl Lines {
    pub fn new(bytes: Box<dyn BufRead>) -> Self {
        Lines {
            bytes,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// The next line, or the parts of one line that a container runtime has divided. It lacks a newline if the file ended
    /// without one, or if the line was longer than the limit.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.clear();
        loop {
            let begin = self.buffer.len();
            let mut start = (&mut self.bytes).take(MAX_LINE_BYTES);
            let is_last = start.read_until(b'\n', &mut self.buffer)? == 0;
            if is_last && begin == 0 {
                return Ok(None);
            }
            self.number += u64::from(!is_last);
            if !self.buffer.ends_with(b"\n") {
                self.bytes.skip_until(b'\n')?;
            }
            let part = divided(&self.buffer[begin..]);
            if let Some((length, _)) = part.filter(|_| begin > 0) {
                // The first part keeps its time.
                self.buffer.drain(begin..begin + length);
            }
            let more_follows = part.is_some_and(|(_, more_follows)| more_follows);
            if is_last || !more_follows || self.buffer.len() > MAX_JOINED_BYTES {
                return Ok(Some(&self.buffer));
            }
            let content = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
            self.buffer.truncate(content.len());
        }
    }
}

/// The length of the prefix of a line that the container runtime (CRI) may have divided, and whether more follows:
/// `2026-03-01T09:00:00.1Z stderr P ...`.
fn divided(line: &[u8]) -> Option<(usize, bool)> {
    const STREAM: usize = b" stderr ".len();
    let after_time = memchr(b' ', line)?;
    let (stream, content) = line[after_time..].split_at_checked(STREAM)?;
    let more_follows = match (stream, content) {
        (b" stdout " | b" stderr ", [b'P', b' ', ..]) => true,
        (b" stdout " | b" stderr ", [b'F', b' ', ..]) => false,
        _ => return None,
    };
    Some((after_time + STREAM + 2, more_follows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_the_last_may_lack_a_newline() {
        let mut lines = Lines::new(Box::new(&b"one\n\nthree"[..]));
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push(line.to_vec());
        }
        assert_eq!(seen, [&b"one\n"[..], b"\n", b"three"]);
        assert_eq!(lines.number, 3);
    }

    #[test]
    fn an_endless_line_takes_bounded_memory() {
        let endless = BufReader::new(io::repeat(b'x').take(20 << 20));
        let mut lines = Lines::new(Box::new(endless));
        let max = MAX_LINE_BYTES as usize;
        assert_eq!(lines.next().unwrap().unwrap().len(), max);
        assert!(lines.buffer.capacity() <= 2 * max);
        assert!(lines.next().unwrap().is_none());
    }
}
