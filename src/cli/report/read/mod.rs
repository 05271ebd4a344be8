//! Reads marker files and logs into a `Store`.
//!
//! A damaged line never stops the reading. Each `FileReport` lists the lines that could not be read.

mod folder;
mod line;
mod record;
mod source;
mod timestamp;

use std::io;
use std::path::{Path, PathBuf};

use flarena_shared::marker::FORMAT_VERSION;
use flarena_shared::system_error::reason;

use crate::report::model::{Notice, Process, Sample, SourceLine, Store};
use crate::report::units::printable;
use line::LineContent;
use source::Lines;

/// Messages that are printed per file. Further ones are counted.
const MAX_MESSAGES: usize = 5;

#[derive(Debug, Default)]
pub struct FileReport {
    pub path: String,
    pub lines: u64,
    pub markers: u64,
    /// Lines without a marker, such as most lines of a log.
    pub other_lines: u64,
    /// The file was read, and contains no marker. This is normal for a log.
    pub lacks_markers: bool,
    /// Each message, with its line if it concerns one.
    pub messages: Vec<(Option<u64>, String)>,
    /// Number of messages that are not in `messages`.
    pub omitted_messages: u64,
    /// A part of the file could not be read.
    pub is_incomplete: bool,
    /// Markers that were read before, from this or another file.
    pub repeated_markers: u64,
}

impl FileReport {
    fn of(path: &Path) -> Self {
        FileReport {
            path: printable(&path.to_string_lossy()),
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
        self.is_incomplete = true;
        self.add_note(line, text);
    }

    fn add_note(&mut self, line: Option<u64>, text: impl Into<String>) {
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push((line, text.into()));
        } else {
            self.omitted_messages += 1;
        }
    }

    /// The messages in the form of a compiler: `file:line: message`.
    pub fn printed_messages(&self) -> impl Iterator<Item = String> + '_ {
        let path = &self.path;
        let message = move |(line, text): &(Option<u64>, String)| match line {
            Some(line) => format!("{path}:{line}: {text}"),
            None => format!("{path}: {text}"),
        };
        let omitted = self.omitted_messages;
        let omitted = (omitted > 0).then(|| format!("{path}: {omitted} more messages"));
        self.messages.iter().map(message).chain(omitted)
    }
}

/// One message for all files without markers. If no file has any, it names the forms that are read.
pub fn message_about_files_without_markers(files: &[FileReport]) -> Option<String> {
    const FORMS: &str = "; read are JSON lines of FLARENA_MARKER_FILE and `[RSS]` lines, also behind the prefix of a \
                         log or inside the message of a JSON log, plain or gzip, in UTF-8, or in UTF-16 with a mark";
    let without: Vec<_> = files.iter().filter(|file| file.lacks_markers).collect();
    let forms = if files.iter().any(|file| file.markers > 0) {
        ""
    } else {
        FORMS
    };
    match without[..] {
        [] => None,
        [file] => Some(format!("{}: holds no marker{forms}", file.path)),
        _ => Some(format!("{} files hold no marker{forms}", without.len())),
    }
}

/// One message for all files with markers that were read before.
pub fn message_about_repeated_markers(files: &[FileReport]) -> Option<String> {
    let repeating = files.iter().filter(|file| file.repeated_markers > 0);
    let repeating: Vec<&FileReport> = repeating.collect();
    let markers: u64 = repeating.iter().map(|file| file.repeated_markers).sum();
    let read = match markers {
        0 => return None,
        1 => "1 marker was read twice and is counted once".to_owned(),
        _ => format!("{markers} markers were read twice and are counted once"),
    };
    Some(match repeating[..] {
        [file] => format!("{}: {read}", file.path),
        _ => format!("{read}, in {} files", repeating.len()),
    })
}

/// Reads files, and the logs and marker files in folders.
pub fn read_all(inputs: &[PathBuf]) -> (Vec<Process>, Vec<FileReport>) {
    let (files, mut reports) = files_of(inputs);
    let mut store = Store::default();
    let files = files.iter().enumerate();
    reports.extend(files.map(|(i, path)| read_file(path, i, &mut store)));
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

/// The files of all inputs, and a report on each folder without files, and each zip file.
fn files_of(inputs: &[PathBuf]) -> (Vec<PathBuf>, Vec<FileReport>) {
    let (mut files, mut reports) = (Vec::new(), Vec::new());
    for input in inputs {
        if !input.is_dir() {
            files.push(input.clone());
            continue;
        }
        let found = folder::files(input);
        if found.files.is_empty() && found.zips.is_empty() && found.errors.is_empty() {
            let text = "has no log and no marker file";
            reports.push(FileReport::unreadable(input, text));
        }
        for zip in found.zips {
            let text = "is a zip file, whose logs are not read; unpack it, and name its folder";
            let mut report = FileReport::of(&zip);
            report.add_note(None, text);
            reports.push(report);
        }
        let errors = found.errors.iter();
        reports.extend(errors.map(|(folder, error)| FileReport::unreadable(folder, reason(error))));
        files.extend(found.files);
    }
    (files, reports)
}

/// Reads one file with these contents.
#[cfg(test)]
pub fn read_bytes(bytes: &[u8]) -> (Vec<Process>, FileReport) {
    let mut store = Store::default();
    let lines = Lines::new(Box::new(std::io::Cursor::new(bytes.to_vec())));
    let report = Reader::new(Path::new("log.txt"), 0, &mut store).run(lines);
    (store.finish().0, report)
}

fn read_file(path: &Path, index: usize, store: &mut Store) -> FileReport {
    match source::open(path) {
        Ok(lines) => Reader::new(path, index, store).run(lines),
        Err(error) => FileReport::unreadable(path, open_error(path, &error)),
    }
}

/// The message for a file that cannot be opened. A shell passes on a pattern that matches no file,
/// so a missing path with `*` is such a pattern.
fn open_error(path: &Path, error: &io::Error) -> String {
    let is_pattern = path.as_os_str().as_encoded_bytes().contains(&b'*');
    match error.kind() {
        io::ErrorKind::NotFound if is_pattern => "no file matches".to_owned(),
        _ => reason(error),
    }
}

struct Reader<'a> {
    report: FileReport,
    store: &'a mut Store,
    log: String,
    index: usize,
    first_time: Option<f64>,
    /// The `[RSS]` line read last, until it is known whether a `[MEM]` line completes it.
    pending: Option<(Sample, u64)>,
    /// Markers of processes beyond the limit of the store.
    dropped_markers: u64,
    /// A record of a newer format version was reported.
    has_reported_version: bool,
}

impl<'a> Reader<'a> {
    fn new(path: &Path, index: usize, store: &'a mut Store) -> Self {
        Reader {
            report: FileReport::of(path),
            store,
            log: without_rotation(&path.to_string_lossy()).to_owned(),
            index,
            first_time: None,
            pending: None,
            dropped_markers: 0,
            has_reported_version: false,
        }
    }

    fn run(mut self, mut lines: Lines) -> FileReport {
        loop {
            match lines.next() {
                Ok(Some(line)) => {
                    let content = line::read(line.bytes, line.end);
                    self.add_line(content, lines.number);
                }
                Ok(None) => break,
                Err(error) => {
                    let why = format!("cannot be read from here on: {}", reason(&error));
                    self.report.add_error(Some(lines.number + 1), why);
                    break;
                }
            }
        }
        self.add_pending();
        self.report.lines = lines.number;
        self.add_summary()
    }

    fn add_line(&mut self, content: LineContent, line: u64) {
        self.report.other_lines += u64::from(content.is_empty());
        for sample in content.samples {
            self.add_pending();
            match sample.pid {
                Some(_) => self.add(sample, line),
                None => self.pending = Some((sample, line)),
            }
        }
        if let Some(memory) = content.memory
            && let Some((sample, _)) = &mut self.pending
        {
            sample.complete(&memory);
        }
        if let Some(record) = content.sites {
            self.store.add_sites(*record);
        }
        if let Some(error) = content.error {
            self.report.add_error(Some(line), error);
        }
    }

    fn add_pending(&mut self) {
        if let Some((sample, line)) = self.pending.take() {
            self.add(sample, line);
        }
    }

    fn add(&mut self, sample: Sample, line: u64) {
        self.report.markers += 1;
        let newer = sample.format_version;
        let newer = newer.filter(|version| *version > f64::from(FORMAT_VERSION));
        if let Some(version) = newer.filter(|_| !self.has_reported_version) {
            self.has_reported_version = true;
            let text = format!(
                "records of version {version}, which is newer than version {FORMAT_VERSION} of this flarena; \
                 unknown fields are ignored"
            );
            self.report.add_note(Some(line), text);
        }
        self.first_time = self.first_time.or(sample.t);
        let source = SourceLine {
            log: &self.log,
            epoch: self
                .first_time
                .map_or(self.index as u64, |t| (t * 1e6) as u64),
            line,
        };
        match self.store.add(&sample, &source) {
            None => {}
            Some(Notice::Repeated) => self.report.repeated_markers += 1,
            Some(Notice::TooManyProcesses) => self.dropped_markers += 1,
        }
    }

    fn add_summary(self) -> FileReport {
        let mut report = self.report;
        if self.dropped_markers > 0 {
            let dropped = self.dropped_markers;
            let text = format!("too many processes; {dropped} markers are left out");
            report.add_error(None, text);
        }
        report.lacks_markers = report.markers == 0 && !report.is_incomplete;
        report
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
mod tests;
