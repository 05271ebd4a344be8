//! Reads marker files and logs into a `Store`.
//!
//! A damaged line never stops the reading. Each `FileReport` lists the lines that could not be read.

mod folder;
mod line;
mod source;

use std::io::{self, ErrorKind::NotFound};
use std::path::{Path, PathBuf};

use flarena_shared::marker::{Marker, FORMAT_VERSION};
use flarena_shared::system_error::reason;
use serde::Serialize;

use crate::report::model::{Notice, Order, Process, Store};
use crate::report::units::{plural, printable};
use line::Part;
use source::Lines;

/// Messages per file. Further ones are counted.
const MAX_MESSAGES: usize = 5;

/// After the message about a record at the end of a file.
const MAY_GROW: &str = "; the file may still be growing";

#[derive(Debug, Default, Serialize)]
pub struct FileReport {
    pub path: String,
    pub lines: u64,
    pub markers: u64,
    /// Lines without a marker, such as most lines of a log.
    pub other_lines: u64,
    /// In the form of a compiler: `file:line: message`, or `file: message`. Of many the last one says how many are left out.
    pub messages: Vec<String>,
    #[serde(skip)]
    omitted_messages: u64,
    pub fully_read: bool,
    /// Markers that were read before, from this or another file.
    pub repeated_markers: u64,
}

impl FileReport {
    fn of(path: &Path) -> Self {
        FileReport {
            path: printable(&path.to_string_lossy()),
            fully_read: true,
            ..FileReport::default()
        }
    }

    /// The report on a file or folder that cannot be read.
    fn unreadable(path: &Path, text: impl Into<String>) -> Self {
        let mut report = FileReport::of(path);
        report.add_error(None, text);
        report
    }

    /// Adds a message about data that could not be read.
    fn add_error(&mut self, line: Option<u64>, text: impl Into<String>) {
        self.fully_read = false;
        self.add_note(line, text);
    }

    fn add_note(&mut self, line: Option<u64>, text: impl Into<String>) {
        let (path, text) = (&self.path, text.into());
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        let mut message = format!("{path}{line}: {text}");
        if self.messages.len() >= MAX_MESSAGES {
            self.messages.truncate(MAX_MESSAGES);
            self.omitted_messages += 1;
            message = format!("{path}: {}", plural(self.omitted_messages, "more message"));
        }
        self.messages.push(message);
    }
}

/// The messages about some files.
pub fn messages(files: &[FileReport]) -> impl Iterator<Item = String> {
    let each = files.iter().flat_map(|file| file.messages.clone());
    let each = each.chain(message_about_repeated_markers(files));
    each.chain(message_about_files_without_markers(files))
}

/// One message for all files without markers. If no file has any, it names the forms that are read.
fn message_about_files_without_markers(files: &[FileReport]) -> Option<String> {
    const FORMS: &str = "; read are JSON lines of FLARENA_MARKER_FILE and `[RSS]` lines, also behind the prefix of a \
                         log or inside the message of a JSON log, plain or gzip, in UTF-8, or in UTF-16 with a mark";
    // A file without a marker is normal for a log. One with a message has that instead.
    let without = |file: &&FileReport| file.markers == 0 && file.messages.is_empty();
    let without: Vec<_> = files.iter().filter(without).collect();
    let has_markers = files.iter().any(|file| file.markers > 0);
    let forms = if has_markers { "" } else { FORMS };
    match without[..] {
        [] => None,
        [file] => Some(format!("{}: holds no marker{forms}", file.path)),
        _ => Some(format!("{} files hold no marker{forms}", without.len())),
    }
}

/// One message for all files with markers that were read before.
fn message_about_repeated_markers(files: &[FileReport]) -> Option<String> {
    let repeating = files.iter().filter(|file| file.repeated_markers > 0);
    let repeating: Vec<&FileReport> = repeating.collect();
    let markers: u64 = repeating.iter().map(|file| file.repeated_markers).sum();
    let read = format!("{} read twice, counted once", plural(markers, "marker"));
    match repeating[..] {
        [] => None,
        [file] => Some(format!("{}: {read}", file.path)),
        _ => Some(format!("{read}, in {} files", repeating.len())),
    }
}

/// Reads files, and the logs and marker files in folders.
pub fn read_all(inputs: &[PathBuf]) -> (Vec<Process>, Vec<FileReport>) {
    let (mut files, mut reports) = (Vec::new(), Vec::new());
    for input in inputs {
        let before = files.len() + reports.len();
        match input.is_dir() {
            true => folder::add(input, 0, &mut files, &mut reports),
            false => files.push(input.clone()),
        }
        if files.len() + reports.len() == before {
            let text = "has no log and no marker file";
            reports.push(FileReport::unreadable(input, text));
        }
    }
    let mut store = Store::default();
    let files = (0..).zip(&files);
    reports.extend(files.map(|(index, path)| read(path, index, source::open(path), &mut store)));
    let (processes, copies) = store.finish();
    for copy in copies {
        let is_of =
            |report: &&mut FileReport| copy.log.as_deref() == Some(without_rotation(&report.path));
        if let Some(report) = reports.iter_mut().find(is_of) {
            report.repeated_markers += copy.markers;
        }
    }
    (processes, reports)
}

/// Reads the lines of a file into the store.
fn read(path: &Path, index: u64, lines: io::Result<Lines>, store: &mut Store) -> FileReport {
    let mut reader = Reader {
        report: FileReport::of(path),
        log: without_rotation(&path.to_string_lossy()).to_owned(),
        index,
        version: FORMAT_VERSION,
        ..Reader::default()
    };
    match lines {
        Ok(lines) => reader.read(lines, store),
        // A shell passes on a pattern that matches no file.
        Err(error) if error.kind() == NotFound && reader.report.path.contains('*') => {
            reader.report.add_error(None, "no file matches");
        }
        Err(error) => reader.report.add_error(None, reason(&error)),
    }
    reader.report
}

#[derive(Default)]
struct Reader {
    report: FileReport,
    /// The file, without the number that rotation adds.
    log: String,
    /// The place of the file among all.
    index: u64,
    /// The first time in microseconds.
    epoch: Option<u64>,
    /// The marker read last, until it is known whether a `[MEM]` line completes it, and its line.
    pending: Option<(Box<Marker>, u64)>,
    /// Markers of processes beyond the limit of the store.
    dropped_markers: u64,
    /// The newest version of the markers so far.
    version: u32,
}

impl Reader {
    fn read(&mut self, mut lines: Lines, store: &mut Store) {
        loop {
            match lines.next() {
                Ok(Some(line)) => {
                    let (parts, is_whole) = (line::parts(line), line.ends_with(b"\n"));
                    self.report.other_lines += u64::from(parts.is_empty());
                    for part in parts {
                        self.add_part(part, lines.number, is_whole, store);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let why = format!("cannot be read from here on: {}", reason(&error));
                    self.report.add_error(Some(lines.number + 1), why);
                    break;
                }
            }
        }
        self.add_pending(store);
        self.report.lines = lines.number;
        if self.dropped_markers > 0 {
            let dropped = self.dropped_markers;
            let text = format!("too many processes; {dropped} markers are left out");
            self.report.add_error(None, text);
        }
    }

    /// Adds a part of a line. A line without its newline is not whole.
    fn add_part(&mut self, part: Part, line: u64, is_whole: bool, store: &mut Store) {
        match part {
            Part::Marker(marker) => {
                self.add_pending(store);
                self.report.markers += 1;
                self.note_version(marker.v, line);
                self.pending = Some((marker, line));
            }
            Part::Memory(memory) => {
                if let Some((marker, _)) = &mut self.pending {
                    marker.complete(*memory);
                }
            }
            Part::Sites(record) => {
                self.add_pending(store);
                store.add_sites(*record);
            }
            Part::Error(error) => {
                let end = if is_whole { "" } else { MAY_GROW };
                self.report.add_error(Some(line), error + end);
            }
        }
    }

    fn note_version(&mut self, version: u32, line: u64) {
        if version > self.version {
            self.version = version;
            let text = format!(
                "records of version {version}, which is newer than version {FORMAT_VERSION} of this flarena; \
                 unknown fields are ignored"
            );
            self.report.add_note(Some(line), text);
        }
    }

    fn add_pending(&mut self, store: &mut Store) {
        let Some((marker, line)) = self.pending.take() else {
            return;
        };
        self.epoch = self.epoch.or(marker.t.map(|t| (t * 1e6) as u64));
        let of_line = (self.epoch.unwrap_or(self.index), line);
        let (epoch, seq) = marker.seq.map_or(of_line, |seq| (0, seq));
        match store.add(&marker, &self.log, Order { epoch, seq }) {
            None => {}
            Some(Notice::Repeated) => self.report.repeated_markers += 1,
            Some(Notice::TooManyProcesses) => self.dropped_markers += 1,
        }
    }
}

/// `log.txt` for `log.txt.3` and `log.txt.3.gz`: the parts of a rotated log are one log.
fn without_rotation(path: &str) -> &str {
    let path = path.strip_suffix(".gz").unwrap_or(path);
    let is_digits = |end: &str| end.bytes().all(|c| c.is_ascii_digit());
    match path.rsplit_once('.') {
        Some((stem, end)) if matches!(end.len(), 1..=4) && is_digits(end) => stem,
        _ => path,
    }
}

#[cfg(test)]
pub mod tests;
