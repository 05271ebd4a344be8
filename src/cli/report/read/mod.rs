//! Reads files of every kind into the store, and keeps account of what could not be read.

#[cfg(test)]
mod any_input;
mod content;

mod line;
mod record;
mod rss_line;
mod source;
mod timestamp;

use std::io;
use std::path::{Path, PathBuf};

use flarena_shared::marker::FORMAT_VERSION;
use flarena_shared::system_error::reason;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::model::{Duplicate, Notice, Place, Process, Sample, Store};
use crate::report::units::{duration, printable};
use content::Read;
use source::Lines;

/// Messages that are kept of one file; the others are counted.
const MOST_MESSAGES: usize = 5;

#[derive(Debug, Default)]
pub struct FileReport {
    pub path: String,
    pub lines: u64,
    pub markers: u64,
    /// Lines that hold no marker, as most lines of a log.
    pub foreign: u64,
    /// Each with its line, where it is about one.
    pub messages: Vec<(Option<u64>, String)>,
    /// Messages beyond those that were kept.
    pub more: u64,
    /// Something in it was not read.
    pub lost: bool,
}

impl FileReport {
    fn lose(&mut self, line: Option<u64>, text: impl Into<String>) {
        self.lost = true;
        self.note(line, text);
    }

    fn note(&mut self, line: Option<u64>, text: impl Into<String>) {
        if self.messages.len() < MOST_MESSAGES {
            self.messages.push((line, text.into()));
        } else {
            self.more += 1;
        }
    }

    /// One line each, as compilers write them: `file:line: what`.
    pub fn printed(&self) -> impl Iterator<Item = String> + '_ {
        let FileReport { path, more, .. } = self;
        let message = move |(line, text): &(Option<u64>, String)| match line {
            Some(line) => format!("{path}:{line}: {text}"),
            None => format!("{path}: {text}"),
        };
        let more = (*more > 0).then(|| format!("{path}: {more} more like these"));
        self.messages.iter().map(message).chain(more)
    }
}

pub fn read_all(files: &[PathBuf]) -> (Vec<Process>, Vec<FileReport>) {
    let bar = progress(files);
    let mut store = Store::default();
    let files = files.iter().enumerate();
    let reports = files.map(|(i, path)| read_file(path, i, &mut store, &bar));
    let mut reports: Vec<FileReport> = reports.collect();
    bar.finish_and_clear();
    let (processes, duplicates) = store.finish();
    for Duplicate { log, markers } in duplicates {
        let mut reports = reports.iter_mut();
        if let Some(report) = reports.find(|report| without_rotation(&report.path) == log) {
            report.note(None, read_before(markers));
        }
    }
    (processes, reports)
}

fn read_before(markers: u64) -> String {
    match markers {
        1 => "1 marker was read before and counts once".to_owned(),
        _ => format!("{markers} markers were read before and count once"),
    }
}

/// Of one file with this in it.
#[cfg(test)]
pub fn read_bytes(bytes: &[u8]) -> (Vec<Process>, FileReport) {
    let mut store = Store::default();
    let mut report = FileReport::default();
    let lines = Lines::new(Box::new(std::io::Cursor::new(bytes.to_vec())));
    Reader::new(&mut report, &mut store, Path::new("log.txt"), 0).run(lines);
    (store.finish().0, report)
}

/// Drawn on a terminal only.
fn progress(files: &[PathBuf]) -> ProgressBar {
    let known = files.iter().filter_map(|path| path.metadata().ok());
    let bytes = known.filter(|file| file.is_file()).map(|file| file.len());
    let terminal = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(bytes.sum()), terminal);
    let form = "reading {wide_bar} {bytes} of {total_bytes}, {eta} left";
    bar.set_style(ProgressStyle::with_template(form).unwrap_or(ProgressStyle::default_bar()));
    bar
}

fn read_file(path: &Path, index: usize, store: &mut Store, bar: &ProgressBar) -> FileReport {
    let mut report = FileReport {
        path: printable(&path.to_string_lossy()),
        ..FileReport::default()
    };
    match source::open(path, bar) {
        Ok(lines) => Reader::new(&mut report, store, path, index).run(lines),
        Err(error) => report.lose(None, why_unopened(path, &error)),
    }
    report
}

/// A shell passes a pattern that matches nothing on as it is.
fn why_unopened(path: &Path, error: &io::Error) -> String {
    let is_pattern = path.as_os_str().as_encoded_bytes().contains(&b'*');
    match error.kind() {
        io::ErrorKind::NotFound if is_pattern => "no file matches".to_owned(),
        _ => reason(error),
    }
}

struct Reader<'a> {
    report: &'a mut FileReport,
    store: &'a mut Store,
    log: String,
    /// Of the first time in the file; the place of the file among all until there is one.
    epoch: u64,
    has_epoch: bool,
    repeated: u64,
    dropped: u64,
    newer: bool,
}

impl<'a> Reader<'a> {
    fn new(report: &'a mut FileReport, store: &'a mut Store, path: &Path, index: usize) -> Self {
        Reader {
            report,
            store,
            log: without_rotation(&path.to_string_lossy()).to_owned(),
            epoch: index as u64,
            has_epoch: false,
            repeated: 0,
            dropped: 0,
            newer: false,
        }
    }

    fn run(mut self, mut lines: Lines) {
        loop {
            let number = lines.number + 1;
            match lines.next() {
                Ok(Some(line)) => self.take(line::read(line.bytes, line.whole), number),
                Ok(None) => break,
                Err(error) => {
                    let why = format!("cannot be read from here on: {}", reason(&error));
                    self.report.lose(Some(number), why);
                    break;
                }
            }
        }
        self.report.lines = lines.number;
        self.conclude();
    }

    fn take(&mut self, read: Read, line: u64) {
        self.report.foreign += u64::from(read.is_foreign());
        for sample in read.samples {
            self.add(sample, line);
        }
        if let Some(record) = read.record {
            self.store.add_sites(*record);
        }
        if let Some(why) = read.broken {
            self.report.lose(Some(line), why);
        }
    }

    fn add(&mut self, sample: Sample, line: u64) {
        self.report.markers += 1;
        if sample.version > f64::from(FORMAT_VERSION) && !std::mem::replace(&mut self.newer, true) {
            let text = format!(
                "records of version {}, newer than this flarena's {FORMAT_VERSION}: \
                 what it knows of them was read",
                sample.version
            );
            self.report.note(Some(line), text);
        }
        if let Some(t) = sample.t.filter(|_| !self.has_epoch) {
            (self.epoch, self.has_epoch) = ((t * 1e6) as u64, true);
        }
        let place = Place {
            log: &self.log,
            epoch: self.epoch,
            line,
        };
        match self.store.add(&sample, &place) {
            None => {}
            Some(Notice::Repeated) => self.repeated += 1,
            Some(Notice::TooManyProcesses) => self.dropped += 1,
            Some(Notice::ClockWentBack(seconds)) => {
                let back = duration(seconds);
                let text = format!("the clock went back by {back}; the order is that of writing");
                self.report.note(Some(line), text);
            }
        }
    }

    fn conclude(self) {
        let report = self.report;
        if self.repeated > 0 {
            report.note(None, read_before(self.repeated));
        }
        if self.dropped > 0 {
            let dropped = self.dropped;
            let text = format!("{dropped} markers of further processes left out: too many");
            report.lose(None, text);
        }
        match (report.lines, report.markers) {
            (0, _) => report.lose(None, "is empty"),
            (lines, 0) => report.lose(None, format!("no memory marker in its {lines} lines")),
            _ => {}
        }
    }
}

/// `log.txt` of `log.txt.3` and of `log.txt.3.gz`: one log, whatever rotation made of it.
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
