use std::io::Write;

use super::*;
use crate::report::model::{Point, Size};
use crate::scratch::Scratch;

const RECORD: &str = r#"{"v":1,"t":1763619820.5,"pid":123,"ppid":1,"start":9,"proc":"TR","role":"client","site":"site-1","round":3,"stage":"send","alloc":"jemalloc","rss_bytes":1048576,"anon_bytes":500,"file_bytes":300,"shmem_bytes":0,"swap_bytes":0,"hwm_bytes":2097152,"live_bytes":400,"retained_bytes":50,"recycled_bytes":null,"cgroup_bytes":null,"cgroup_limit_bytes":null,"seq":17}"#;

fn read_bytes(name: &str, bytes: &[u8]) -> (Vec<Process>, FileReport) {
    let scratch = Scratch::new();
    let path = scratch.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let (processes, mut reports) = read_all(&[path]);
    (processes, reports.remove(0))
}

fn read_text(name: &str, text: &str) -> (Vec<Process>, FileReport) {
    read_bytes(name, text.as_bytes())
}

fn messages(report: &FileReport) -> Vec<(Option<u64>, &str)> {
    let messages = report.messages.iter();
    messages.map(|(line, text)| (*line, &text[..])).collect()
}

/// At its first stage.
fn points(process: &Process) -> &[Point] {
    process.stages[0].1.points()
}

fn rounds(process: &Process) -> Vec<f64> {
    points(process).iter().map(|point| point.round).collect()
}

/// The record as another round of its process.
fn record(round: u64) -> String {
    let record = RECORD.replace("\"round\":3", &format!("\"round\":{round}"));
    record.replace(":17}", &format!(":{round}}}"))
}

#[test]
fn a_record_is_read_with_all_its_fields() {
    let (processes, report) = read_text("one", &format!("{RECORD}\n"));
    assert!(!report.lost, "{report:?}");
    let process = &processes[0];
    assert_eq!((process.pid, process.start), (Some(123), Some(9)));
    assert_eq!((&*process.proc, &*process.site()), ("TR", "site-1"));
    assert_eq!(process.hwm, 2097152.0);
    let point = &points(process)[0];
    assert_eq!((point.round, point.sizes[Size::Live]), (3.0, 400.0));
    assert!(point.sizes[Size::Recycled].is_nan() && process.limit.is_nan());
}

#[test]
fn what_the_shim_writes_is_what_is_read() {
    let marker: flarena_shared::marker::Marker = serde_json::from_str(RECORD).unwrap();
    let (processes, report) = read_text("shim", &marker.to_json_line());
    assert!(!report.lost && points(&processes[0])[0].sizes[Size::Live] == 400.0);
    let (processes, report) = read_text("shim-text", &marker.to_text_line());
    assert!(!report.lost && processes[0].stages[0].1.first_rss() == 1048576.0);
}

#[test]
fn nvflares_own_log_lines_are_read_among_others() {
    let log = "2026-11-20 06:32:46,100 - worker - INFO - starting\n\
               2026-11-20 06:32:47,250 - mem_utils - INFO - [RSS] CA s=site-1 r=2 send: 87.8 MB\n\
               Traceback (most recent call last):\n";
    let (processes, report) = read_text("log.txt", log);
    assert_eq!((report.markers, report.foreign, report.lost), (1, 2, false));
    assert_eq!((processes[0].proc.as_str(), processes[0].pid), ("CA", None));
    assert_eq!(points(&processes[0])[0].t, 1_795_156_367.25);
}

#[test]
fn logs_in_json_are_unwrapped() {
    let nvflare =
        r#"{"asctime": "2026-11-20 06:32:46", "message": "[RSS] CA s=site-1 r=2 send: 87.8 MB"}"#;
    let docker = serde_json::json!({ "log": format!("{RECORD}\n"), "stream": "stderr" });
    let (processes, report) = read_text("json", &format!("{nvflare}\n{docker}\n"));
    assert_eq!((report.markers, report.lost), (2, false), "{report:?}");
    assert_eq!(points(&processes[0])[0].t, 1_795_156_366.0);
    assert_eq!(processes[1].pid, Some(123));
}

#[test]
fn gzip_is_read_and_a_cut_off_archive_is_told_with_its_line() {
    let pack = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let line = |seq: u64| record(seq) + "\n";
    let two = [pack(&line(1)), pack(&line(2))].concat();
    let (_, report) = read_bytes("two.gz", &two);
    assert_eq!((report.markers, report.lost), (2, false), "{report:?}");
    let long: String = (0..5000).map(line).collect();
    let whole = pack(&long);
    let (_, report) = read_bytes("cut.gz", &whole[..whole.len() / 2]);
    assert!(report.lost && report.markers > 100, "{report:?}");
    let is_told = |(_, text): &(_, &str)| text.contains("cannot be read from here on");
    assert!(messages(&report).iter().any(is_told), "{report:?}");
}

#[test]
fn broken_lines_are_named_and_the_rest_is_read() {
    let half = &RECORD[..200];
    let text = format!("{RECORD}\n{half}\n{half}{}\n", record(18));
    let (_, report) = read_text("broken", &text);
    assert_eq!((report.markers, report.lost), (2, true));
    let cut = "a record that is cut off or not JSON";
    let joined = "records that run into each other: 1 read, the rest lost";
    assert_eq!(messages(&report), [(Some(2), cut), (Some(3), joined)]);
}

#[test]
fn a_file_that_ends_in_a_record_says_that_it_may_be_growing() {
    let (_, report) = read_text("growing", &format!("{RECORD}\n{}", &RECORD[..90]));
    let (_, text) = messages(&report)[0];
    assert!(text.ends_with("; the file may still be growing"), "{text}");
}

#[test]
fn missing_and_wrong_fields_are_named() {
    let no_rss = RECORD.replace("\"rss_bytes\":1048576,", "");
    let wrong = RECORD.replace("\"live_bytes\":400", "\"live_bytes\":\"many\"");
    let negative = RECORD.replace("1048576", "-3");
    let no_pid = RECORD.replace("\"pid\":123,", "");
    let text = [no_rss, wrong, negative, no_pid].join("\n") + "\n";
    let (processes, report) = read_text("fields", &text);
    let left = (report.markers, processes.len(), processes[0].pid);
    assert_eq!(left, (1, 1, None));
    let no_rss = "a record without rss_bytes";
    let many = "a record whose live_bytes is not what it should be";
    let negative = "a record whose rss_bytes is not what it should be";
    let expected = [(Some(1), no_rss), (Some(2), many), (Some(3), negative)];
    assert_eq!(messages(&report), expected);
}

#[test]
fn newer_records_are_read_as_far_as_known() {
    let newer = RECORD.replace("{\"v\":1,", "{\"v\":2,\"gpu\":{\"deep\":[1,2]},");
    let (_, report) = read_text("newer", &format!("{newer}\n"));
    assert_eq!((report.markers, report.lost), (1, false));
    let (_, text) = messages(&report)[0];
    assert!(text.starts_with("records of version 2"), "{text}");
}

#[test]
fn one_pid_used_twice_is_two_processes() {
    let again = RECORD.replace("\"start\":9", "\"start\":10");
    let (processes, _) = read_text("reuse", &format!("{RECORD}\n{again}\n"));
    assert_eq!(processes.len(), 2);
}

#[test]
fn a_clock_that_jumps_back_is_told_and_changes_no_order() {
    let line = |seq: u64, t: f64| record(seq).replace("1763619820.5", &t.to_string());
    let text = [line(0, 5000.0), line(1, 1000.0), line(2, 1010.0)].join("\n") + "\n";
    let (processes, report) = read_text("clock", &text);
    let (line, text) = messages(&report)[0];
    assert_eq!(line, Some(2));
    assert!(text.starts_with("the clock went back by 67 min"), "{text}");
    assert_eq!(rounds(&processes[0]), [0.0, 1.0, 2.0]);
}

#[test]
fn a_file_given_twice_counts_once() {
    let scratch = Scratch::new();
    let path = scratch.write("markers", &format!("{RECORD}\n"));
    let (processes, reports) = read_all(&[path.clone(), path]);
    assert_eq!(processes[0].samples, 1);
    let read_before = "1 marker was read before and counts once";
    assert_eq!(messages(&reports[1]), [(None, read_before)]);
}

#[test]
fn empty_foreign_and_missing_files_and_directories_are_told() {
    let (_, empty) = read_text("empty", "");
    assert_eq!(messages(&empty), [(None, "is empty")]);
    let (_, foreign) = read_text("foreign", "hello\n{\"a\":1}\n");
    assert_eq!(
        messages(&foreign),
        [(None, "no memory marker in its 2 lines")]
    );
    let (_, reports) = read_all(&[std::env::temp_dir(), PathBuf::from("/nonexistent/x")]);
    let directory = "is a directory; name the files in it";
    assert_eq!(messages(&reports[0]), [(None, directory)]);
    assert_eq!(messages(&reports[1]), [(None, "No such file or directory")]);
    assert!(reports.iter().all(|r| r.lost) && empty.lost && foreign.lost);
}

#[test]
fn a_pattern_that_matches_nothing_is_told_apart_from_a_missing_file() {
    let (_, reports) = read_all(&[PathBuf::from("/nonexistent/site-*/log.txt*")]);
    assert_eq!(messages(&reports[0]), [(None, "no file matches")]);
    assert!(reports[0].lost);
}

#[test]
fn rotated_parts_of_a_log_are_one_process_in_the_order_of_time() {
    let line = |minute: u32, round: u32| {
        format!(
            "2026-11-20 06:{minute:02}:00,000 - [RSS] CA s=site-1 r={round} send: {round}.0 MB\n"
        )
    };
    let scratch = Scratch::new();
    let newer = scratch.write("log.txt", &(line(30, 2) + &line(40, 3)));
    let older = scratch.write("log.txt.1", &(line(10, 0) + &line(20, 1)));
    let (processes, _) = read_all(&[newer, older]);
    assert_eq!(processes.len(), 1);
    assert_eq!(rounds(&processes[0]), [0.0, 1.0, 2.0, 3.0]);
}

/// Seen: a job's log and its markers, given together, counted one process twice.
#[test]
fn a_log_and_the_markers_of_its_process_count_it_once() {
    let scratch = Scratch::new();
    let (mut json, mut text) = (String::new(), String::new());
    for round in 0..12 {
        let megabytes = 400 + 10 * round;
        let rss = format!("\"rss_bytes\":{}", megabytes << 20);
        json += &record(round).replace("\"rss_bytes\":1048576", &rss);
        json += "\n";
        text += &format!("x - INFO - [RSS] TR s=site-1 r={round} send: {megabytes}.0 MB\n");
        text += &format!("x - INFO - [RSS] CA s=site-1 r={round} send: {megabytes}.3 MB\n");
        text += &format!("x - INFO - [RSS] CA s=site-2 r={round} send: {megabytes}.3 MB\n");
    }
    let markers = scratch.write("m.jsonl", &json);
    let log = scratch.write("log.txt", &text);
    let (processes, reports) = read_all(&[markers, log]);
    let name = |process: &Process| format!("{} {}", process.proc, process.site());
    let names: Vec<String> = processes.iter().map(name).collect();
    assert_eq!(names, ["TR site-1", "CA site-2"]);
    let read_before = "12 markers were read before and count once";
    assert_eq!(messages(&reports[1]), [(None, read_before); 2]);
}
