//! Output of all subcommands: text, JSON, messages, tables, wrapped lines, files. `println!` panics if the
//! disk behind stdout is full, so it is not used.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::Context;
use comfy_table::{presets, CellAlignment, ContentArrangement, Row, Table};
use flarena_shared::system_error::reason;
use serde::Serialize;

/// Writes text to stdout, with a newline at its end.
pub fn print(text: &str) -> anyhow::Result<()> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let mut out = io::stdout().lock();
    write!(out, "{text}{end}")
        .and_then(|()| out.flush())
        .context("cannot write to stdout")
}

/// Writes one JSON value and a newline to stdout.
pub fn print_json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<()> {
    print(&serde_json::to_string(value)?)
}

/// Writes a message to stderr: one line, or wrapped to the width of a terminal. A closed or full
/// stderr is ignored.
pub fn note(text: impl std::fmt::Display) {
    let width = width_of(io::stderr());
    let _ = io::stderr().write_all(message(&text.to_string(), width).as_bytes());
}

fn message(text: &str, width: Option<usize>) -> String {
    let margin = " ".repeat(NAME.len());
    let line = |(place, line)| match place {
        0 => wrapped(line, NAME, &margin, width),
        _ => wrapped(line, &margin, &margin, width),
    };
    text.lines().enumerate().map(line).collect()
}

/// Writes the message about a wrong command line to stderr, wrapped to the width of a terminal.
pub fn refusal(text: &str) {
    let width = width_of(io::stderr());
    let lines = text.lines().map(|line| indented(line, width));
    let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
}

/// A line with its indentation. The lines after a break have two more spaces.
pub fn indented(line: &str, width: Option<usize>) -> String {
    let text = line.trim_start();
    let margin = &line[..line.len() - text.len()];
    wrapped(text, margin, &format!("{margin}  "), width)
}

/// Text that begins with `first`, in lines of `width` columns. The lines after a break begin with `later`.
pub fn wrapped(text: &str, first: &str, later: &str, width: Option<usize>) -> String {
    let room = width.map(|width| width.saturating_sub(first.len().max(later.len())));
    let lines = match room {
        Some(room) if text.chars().count() > room => wrap(text, Some(room)),
        Some(_) | None => vec![text.to_owned()],
    };
    format!("{first}{}\n", lines.join(&format!("\n{later}")))
}

const NAME: &str = "flarena: ";

/// An error and its causes, without the numbers of system errors.
pub fn chain(error: &anyhow::Error) -> String {
    let text = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(error) => reason(error),
        None => cause.to_string(),
    };
    error.chain().map(text).collect::<Vec<_>>().join(": ")
}

/// A table without borders, as wide as the terminal. In a pipe its width is not limited.
pub fn table(headers: impl Into<Row>) -> Table {
    let mut table = unlimited_table();
    table.set_header(headers);
    if let Some(width) = terminal_width() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    table
}

/// A table without borders, as wide as its lines.
pub fn unlimited_table() -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// A table with one space between its columns, and these columns of numbers.
pub fn tight(mut table: Table, numbers: impl IntoIterator<Item = usize>) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    with_numbers(table, numbers)
}

/// The table as text without trailing spaces. These columns are aligned to the right.
pub fn with_numbers(mut table: Table, columns: impl IntoIterator<Item = usize>) -> String {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let line = |line: String| line.trim_end().to_owned() + "\n";
    table.lines().map(line).collect()
}

/// The narrowest column of stacks.
const MIN_STACK: usize = 12;

/// A table whose last column is a stack, `train.py:16 in load <- run.py:2 in <module>`, and whose others
/// are numbers. If the lines do not fit into `width`, the headings are broken, and the stack is wrapped
/// to the width that remains after the numbers. Without a width each row is one line.
pub fn table_of_stacks<const N: usize>(
    headers: [&str; N],
    rows: &[[String; N]],
    width: Option<usize>,
) -> String {
    let last = N - 1;
    let table = filled(headers.map(str::to_owned), rows);
    if let Some(width) = width.filter(|width| width_of_first(N, &table) + 2 * N - 1 > *width) {
        let headers = headers.map(|text| text.replace(' ', "\n").replace('/', "/\n"));
        let numbers = width_of_first(last, &filled(headers.clone(), rows));
        let room = width.saturating_sub(numbers + last).max(MIN_STACK);
        let mut rows = rows.to_vec();
        for row in &mut rows {
            row[last] = wrapped_stack(&row[last], room).join("\n");
        }
        return tight(filled(headers, &rows), 0..last);
    }
    with_numbers(table, 0..last)
}

fn filled<const N: usize>(headers: [String; N], rows: &[[String; N]]) -> Table {
    let mut table = unlimited_table();
    table.set_header(headers).add_rows(rows);
    table
}

/// The width of the content of the first columns.
fn width_of_first(count: usize, table: &Table) -> usize {
    let widths = table.column_max_content_widths();
    widths[..count]
        .iter()
        .map(|width| usize::from(*width))
        .sum()
}

/// A stack in lines of `width` columns. Each frame begins a line. Of a longer word the beginning is cut:
/// the end is the file name with the line.
fn wrapped_stack(stack: &str, width: usize) -> Vec<String> {
    let frames = stack.replace(" <- ", "\n<- ");
    let lines = frames.lines().flat_map(|frame| wrap(frame, Some(width)));
    let cut = |line: String| match line.chars().count().saturating_sub(width) {
        0 => line,
        excess => std::iter::once('\u{2026}')
            .chain(line.chars().skip(excess + 1))
            .collect(),
    };
    lines.map(cut).collect()
}

/// Replaces a file by a rename: a reader sees the old file or the whole new one. If writing fails, the old file stays.
pub fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = match fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        // A pipe or /dev/stdout cannot be replaced.
        true => fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes())),
        false => replace_file(path, text),
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temporary_name = OsString::from(".");
    temporary_name.push(name);
    // The collector of Prometheus would read a name that ends in `.prom`.
    temporary_name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary_name);
    let written = create(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A new file, also where another one has the name: in a shared folder such as /tmp it may be another user's.
pub fn create(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => fs::File::create_new(path),
    }
}

/// The width of stdout if it is a terminal.
pub fn terminal_width() -> Option<usize> {
    width_of(io::stdout())
}

fn width_of(stream: impl IsTerminal + AsFd) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// `text` in lines of `width` columns; unchanged without a width. A line never breaks inside a word, between a number and
/// its unit, or inside a command in backquotes, which may be pasted. A word longer than a line stays whole.
pub fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else {
        return vec![text.to_owned()];
    };
    let mut lines: Vec<String> = Vec::new();
    for word in with_units(text.split_whitespace(), width) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => *line = word,
            Some(line) if fits(line, &word, width) => append(line, &word),
            _ => lines.push(word),
        }
    }
    lines
}

/// Joins each number with the next word, its unit, and the words of a command, if both fit into a line.
fn with_units<'a>(words: impl Iterator<Item = &'a str>, width: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in words {
        let belongs = |last: &str| {
            let is_in_command = last.matches('`').count() % 2 == 1;
            is_in_command || is_number(last) && !is_number(word)
        };
        match pieces.last_mut() {
            Some(last) if belongs(last) && fits(last, word, width) => append(last, word),
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

fn fits(line: &str, more: &str, width: usize) -> bool {
    line.chars().count() + 1 + more.chars().count() <= width
}

fn append(line: &mut String, more: &str) {
    line.push(' ');
    line.push_str(more);
}

/// Whether a word is a number without punctuation after it.
fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches('(');
    let is_part = |letter: u8| letter.is_ascii_digit() || b".,+-~".contains(&letter);
    word.bytes().all(is_part) && word.ends_with(|letter: char| letter.is_ascii_digit())
}

/// Untrusted text with its control characters replaced, so that it cannot control the terminal.
pub fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(plain("a\x1b[2Jb\n"), "a?[2Jb?");
    }

    #[test]
    fn lines_break_between_words_and_a_long_word_stays_whole() {
        assert_eq!(wrap("a bc  def", Some(4)), ["a bc", "def"]);
        assert_eq!(wrap("a abcdefgh b", Some(4)), ["a", "abcdefgh", "b"]);
        assert_eq!(wrap("a  b", None), ["a  b"]);
        assert!(wrap("", Some(0)).is_empty());
    }

    #[test]
    fn a_number_and_its_unit_stay_on_one_line() {
        assert_eq!(wrap("of 64 KB each", Some(5)), ["of", "64 KB", "each"]);
        assert_eq!(wrap("a -1.5 % b", Some(6)), ["a", "-1.5 %", "b"]);
        assert_eq!(wrap("up to 3, two", Some(8)), ["up to 3,", "two"]);
        assert_eq!(wrap("7 bytes", Some(4)), ["7", "bytes"]);
        assert_eq!(wrap("of 4 64 KB", Some(8)), ["of 4", "64 KB"]);
        let finding = "(95 %: -0.96 MB to +1.60 MB)";
        assert_eq!(wrap(finding, Some(21)), ["(95 %: -0.96 MB to", "+1.60 MB)"]);
    }

    #[test]
    fn a_command_in_backquotes_stays_on_one_line() {
        assert_eq!(wrap("run `a b c` d", Some(8)), ["run", "`a b c`", "d"]);
        assert_eq!(wrap("`a b c d` e", Some(6)), ["`a b c", "d` e"]);
    }

    #[test]
    fn a_wrapped_message_is_indented_and_in_a_pipe_it_is_one_line() {
        assert_eq!(message("a  b c", None), "flarena: a  b c\n");
        assert_eq!(
            message("aa bb cc", Some(14)),
            "flarena: aa bb\n         cc\n"
        );
    }

    #[test]
    fn a_long_line_of_a_refusal_is_wrapped_and_indented() {
        assert_eq!(indented("  tip: a  b", Some(20)), "  tip: a  b\n");
        assert_eq!(indented("  aa bb cc", Some(9)), "  aa bb\n    cc\n");
        assert_eq!(indented("", Some(9)), "\n");
        assert_eq!(indented("  aa bb cc", None), "  aa bb cc\n");
    }

    #[test]
    fn an_error_chain_has_no_error_numbers() {
        let error = io::Error::from_raw_os_error(2);
        let error = anyhow::Error::from(error).context("cannot write to x");
        assert_eq!(
            chain(&error),
            "cannot write to x: No such file or directory"
        );
    }

    #[test]
    fn a_stack_has_the_width_that_remains_and_a_long_path_loses_its_beginning() {
        let rows = |file: &str| {
            let stack = format!("{file}:16 in grow <- train.py:30 in <module>");
            [["3".to_owned(), "24.0 MB".to_owned(), stack]]
        };
        let table = |file, width| table_of_stacks(["SITE", "OLDEST AGE", "AT"], &rows(file), width);
        let row = "3     24.0 MB  train.py:16 in grow <- train.py:30 in <module>";
        for width in [None, Some(80)] {
            let text = table("train.py", width);
            assert!(text.contains(row), "{text}");
        }
        assert_eq!(
            table("train.py", Some(39)),
            "SITE  OLDEST AT\n         \
             AGE\n   \
             3 24.0 MB train.py:16 in grow\n             \
             <- train.py:30 in <module>\n"
        );
        let text = table("model_persistor.py", Some(34));
        assert!(text.contains(" model_persistor.py:16\n"), "{text}");
        let text = table("model_persistor.py", Some(30));
        assert!(text.contains(" \u{2026}_persistor.py:16\n"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 30),
            "{text}"
        );
    }

    #[test]
    fn a_table_in_a_pipe_has_one_line_per_row_and_no_trailing_spaces() {
        let mut table = table(["NAME", "SIZE"]);
        table.add_row(["a".repeat(300), "1".to_owned()]);
        let text = with_numbers(table, [1]);
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    }

    #[test]
    fn a_file_is_replaced_with_no_temporary_file_left_and_a_link_is_not_followed() {
        let scratch = Scratch::new();
        let file = scratch.path().join("out.prom");
        replace(&file, "one").unwrap();
        replace(&file, "two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
        let other = scratch.write("other", "precious");
        std::os::unix::fs::symlink(&other, scratch.path().join("link")).unwrap();
        create(&scratch.path().join("link")).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        drop(scratch);
        assert!(replace(&file, "gone").is_err());
    }
}
