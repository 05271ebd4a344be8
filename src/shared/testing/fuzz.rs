//! Properties of any settings, option string and log line, and the fuzz targets that check them.

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use crate::defaults;
use crate::malloc_conf::{merge, pairs, Fault};
use crate::marker::{name_from_bytes, parse_text, Marker, FORMAT_VERSION, MB};
use crate::settings::{self, setting, Key};

/// The input is lines of `NAME=VALUE`, an environment.
pub fn settings(input: &[u8]) {
    any_environment(|key| {
        let name = setting(key).name.as_bytes();
        let mut lines = input.split(|&byte| byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b"="))
    });
}

/// The first byte is half the size of the buffer, the rest is `MALLOC_CONF`.
pub fn malloc_conf(input: &[u8]) {
    if let Some((room, user)) = input.split_first() {
        any_option_string(user, 2 * usize::from(*room));
    }
}

/// The input is a log line, and its lines are the names in a marker.
pub fn marker(input: &[u8]) {
    any_line(input);
    let mut names = input.split(|&byte| byte == b'\n').map(name_from_bytes);
    if let (Some(proc), Some(stage)) = (names.next(), names.next()) {
        any_names(proc, stage, names.next(), input.len() as i64);
    }
}

pub fn any_environment<'a>(value: impl Fn(Key) -> Option<&'a [u8]>) {
    let mut problems = Vec::new();
    let read = settings::read(&value, |problem| problems.push(problem));
    assert!(problems
        .iter()
        .all(|problem| !problem.value.trim_ascii().is_empty()));
    // A second read gives the same settings.
    assert_eq!(read, settings::read(&value, |_| ()));
}

pub fn any_option_string(user: &[u8], room: usize) {
    let standard = || pairs(defaults::MALLOC_CONF.as_bytes(), |_, _| ()).map(|p| (p.key, p.value));
    let mut out = vec![0xAA; room];
    let mut cut = false;
    let len = merge(user, standard(), &mut out, |_, fault| {
        cut |= matches!(fault, Fault::TooLong)
    });
    assert!(len < room.max(1));
    assert!(room == 0 || out[len] == 0);
    // The written string has no fault, and merging it again changes nothing.
    let mut faults = 0;
    let written: Vec<_> = pairs(&out[..len], |_, _| faults += 1).collect();
    assert_eq!(faults, 0);
    let mut again = vec![0xAA; room];
    let len_again = merge(&out[..len], std::iter::empty(), &mut again, |_, _| ());
    assert_eq!(again[..len_again], out[..len]);
    if room > defaults::MALLOC_CONF.len() && !cut {
        for (key, _) in standard() {
            assert!(written.iter().any(|pair| pair.key == key));
        }
    }
}

pub fn any_line(line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    if let Some(marker) = parse_text(&text) {
        assert!(!marker.proc.is_empty() && !marker.stage.is_empty());
    }
    let name = name_from_bytes(line);
    assert!(name.len() <= 128 * 3, "{} bytes", name.len());
}

/// Both forms of a marker parse to what was written, for any name of process and stage.
fn any_names(proc: String, stage: String, site: Option<String>, number: i64) {
    let written = Marker {
        site,
        round: Some(number),
        rss_bytes: Some(number.unsigned_abs() * 99_999),
        ..blank(proc, stage)
    };
    let line = written.to_json_line();
    assert_eq!(line.matches('\n').count(), 1);
    assert_eq!(serde_json::from_str::<Marker>(&line).unwrap(), written);
    let line = written.to_text_line();
    assert_eq!(line.matches(char::is_control).count(), 1, "its newline");
    let read = parse_text(&line);
    if written.proc.is_empty() || written.stage.is_empty() {
        assert_eq!(read, None);
        return;
    }
    let read = read.expect("its own line");
    assert_eq!(read.round, written.round);
    assert_eq!(read.stage.chars().count(), written.stage.chars().count());
    assert_eq!(read.proc.chars().count(), written.proc.chars().count());
    let off = read.rss_bytes.unwrap() as f64 - written.rss_bytes.unwrap() as f64;
    assert!(off.abs() <= 0.06 * MB, "{off}");
}

fn blank(proc: String, stage: String) -> Marker {
    let record = serde_json::json!({ "v": FORMAT_VERSION, "t": 0.5, "pid": 7, "proc": proc, "stage": stage });
    serde_json::from_value(record).unwrap()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_saved_inputs_of_the_fuzzers_pass() {
        super::corpus::run("settings", super::settings);
        super::corpus::run("malloc_conf", super::malloc_conf);
        super::corpus::run("marker", super::marker);
    }
}
