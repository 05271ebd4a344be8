pub mod any_input;

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

/// Reads a file with these contents from memory.
pub fn read_from_memory(bytes: &[u8]) -> (Vec<Process>, FileReport) {
    let mut store = Store::default();
    let lines = Lines::new(Box::new(std::io::Cursor::new(bytes.to_vec())));
    let report = read(Path::new("log.txt"), 0, Ok(lines), &mut store);
    (store.finish().0, report)
}

fn read_text(name: &str, text: &str) -> (Vec<Process>, FileReport) {
    read_bytes(name, text.as_bytes())
}

fn messages(report: &FileReport) -> Vec<(Option<u64>, &str)> {
    fn message<'a>(report: &FileReport, text: &'a str) -> (Option<u64>, &'a str) {
        let text = &text[report.path.len() + 1..];
        match text
            .split_once(": ")
            .map(|(line, text)| (line.parse().ok(), text))
        {
            Some((Some(line), text)) => (Some(line), text),
            Some((None, _)) | None => (None, text.trim_start()),
        }
    }
    let all = report.messages.iter();
    all.map(|text| message(report, text)).collect()
}

/// The points of the first stage.
fn points(process: &Process) -> &[Point] {
    process.stages[0].points()
}

fn rounds(process: &Process) -> Vec<i64> {
    let points = points(process).iter();
    points.filter_map(|point| point.round).collect()
}

/// The record with another round and sequence number.
fn record(round: u64) -> String {
    let record = RECORD.replace("\"round\":3", &format!("\"round\":{round}"));
    record.replace(":17}", &format!(":{round}}}"))
}

#[test]
fn a_record_is_read_with_all_its_fields() {
    let (processes, report) = read_text("one", &format!("{RECORD}\n"));
    assert!(report.fully_read, "{report:?}");
    let process = &processes[0];
    assert_eq!((process.pid, process.start), (Some(123), Some(9)));
    assert_eq!((&*process.proc, &*process.site_names()), ("TR", "site-1"));
    assert_eq!(process.peak_rss, 2097152.0);
    let point = &points(process)[0];
    assert_eq!(
        (point.round, point.sizes.get(Size::Live)),
        (Some(3), Some(400.0))
    );
    assert_eq!(
        (point.sizes.get(Size::Recycled), process.cgroup_limit),
        (None, None)
    );
}

#[test]
fn both_forms_that_the_library_writes_are_read() {
    let marker: flarena_shared::marker::Marker = serde_json::from_str(RECORD).unwrap();
    let (processes, report) = read_text("shim", &marker.to_json_line());
    assert!(report.fully_read && points(&processes[0])[0].sizes.get(Size::Live) == Some(400.0));
    let (processes, report) = read_text("shim-text", &marker.to_text_line());
    assert!(report.fully_read && processes[0].stages[0].first_rss() == 1048576.0);
}

#[test]
fn rss_lines_of_nvflare_are_read_among_other_lines() {
    let log = "2026-11-20 06:32:46,100 - worker - INFO - starting\n\
               2026-11-20 06:32:47,250 - mem_utils - INFO - [RSS] CA s=site-1 r=2 send: 87.8 MB\n\
               Traceback (most recent call last):\n";
    let (processes, report) = read_text("log.txt", log);
    assert_eq!(
        (report.markers, report.other_lines, !report.fully_read),
        (1, 2, false)
    );
    assert_eq!((processes[0].proc.as_str(), processes[0].pid), ("CA", None));
    assert_eq!(points(&processes[0])[0].t, Some(1_795_156_367.25));
}

#[test]
fn a_memory_line_completes_the_rss_line_of_its_process_before_it() {
    let log = "[RSS] SJ s=server r=2 after_aggregation: 512.0 MB\n\
               2026-11-20 06:32:47,250 - worker - INFO - saved\n\
               [MEM] SJ s=server r=2 peak=812.0 live=402.1 free=12.0 cached=8.0 file=90.0 left=24.0 limit=1024.0 MB\n\
               [RSS] CJ s=site-1 r=2 after_task: 100.0 MB\n\
               [MEM] TR s=site-1 r=2 peak=90.0 live=40.0 MB\n";
    let (processes, report) = read_text("log.txt", log);
    assert_eq!(
        (report.markers, report.other_lines, !report.fully_read),
        (2, 1, false)
    );
    let first = points(&processes[0])[0].clone();
    let megabytes = |size| (first.sizes.get(size).unwrap() / 1048576.0 * 1000.0).round() / 1000.0;
    assert_eq!(
        (megabytes(Size::Rss), megabytes(Size::Live)),
        (512.0, 402.1)
    );
    assert_eq!(
        (megabytes(Size::Anon), megabytes(Size::Cgroup)),
        (422.0, 1000.0)
    );
    assert_eq!(processes[0].cgroup_limit, Some(1024.0 * 1048576.0));
    assert_eq!(processes[0].peak_rss, 812.0 * 1048576.0);
    assert_eq!(points(&processes[1])[0].sizes.get(Size::Live), None);
}

#[test]
fn markers_inside_json_logs_are_read() {
    let nvflare =
        r#"{"asctime": "2026-11-20 06:32:46", "message": "[RSS] CA s=site-1 r=2 send: 87.8 MB"}"#;
    let docker = serde_json::json!({ "log": format!("{RECORD}\n"), "stream": "stderr" });
    let (processes, report) = read_text("json", &format!("{nvflare}\n{docker}\n"));
    assert_eq!(
        (report.markers, !report.fully_read),
        (2, false),
        "{report:?}"
    );
    assert_eq!(points(&processes[0])[0].t, Some(1_795_156_366.0));
    assert_eq!(processes[1].pid, Some(123));
    let (_, report) = read_text("prefix", &format!("2026-03-01T09:00:00Z {docker}\n"));
    assert_eq!((report.markers, !report.fully_read), (1, false));
}

#[test]
fn markers_are_read_in_the_forms_of_other_loggers() {
    const MARKER: &str = "[RSS] TR s=site-1 r=3 send: 100.0 MB";
    let message = |key: &str| serde_json::json!({ key: MARKER, "stream": "x" }).to_string();
    let nvflare = message("message");
    let utf16 = |mark: u16, bytes: fn(u16) -> [u8; 2]| {
        let units = std::iter::once(mark).chain(MARKER.encode_utf16());
        units.flat_map(bytes).collect::<Vec<u8>>()
    };
    let texts = [
        format!("2026-03-01T09:00:00.1Z {nvflare}"),
        format!("2026-03-01T09:00:00.1+00:00 stderr F {nvflare}"),
        format!("Mar 01 09:00:00 node7 python3[4711]: {nvflare}"),
        format!("2026-03-01T09:00:00Z [info     ] {MARKER} [mem_utils] job=a1"),
        format!("17723,\"{MARKER}\""),
        format!("  \"line\": \"{MARKER}\","),
        format!("{MARKER}\repoch 1/1 100%|####| 10/10"),
        format!("epoch 1/1  40%|####    | 4/10\r{MARKER}"),
        format!(
            "2026-03-01T09:00:00Z stderr P {}\n2026-03-01T09:00:00Z stderr F {}",
            &nvflare[..40],
            &nvflare[40..]
        ),
        message("MESSAGE"),
        message("event"),
        message("textPayload"),
        message("short_message"),
        message("a key of another logger"),
        format!("{{\"text\": \"x\", \"record\": {nvflare}}}"),
    ];
    let texts = texts.into_iter().map(String::into_bytes);
    let texts = texts.chain([
        utf16(0xfeff, u16::to_le_bytes),
        utf16(0xfeff, u16::to_be_bytes),
    ]);
    for text in texts {
        let (processes, report) = read_bytes("log", &text);
        let shown = String::from_utf8_lossy(&text);
        assert!(
            report.markers == 1 && report.fully_read,
            "{shown}: {report:?}"
        );
        let first = points(&processes[0])[0].clone();
        assert_eq!(
            (first.round, first.peak),
            (Some(3), 100.0 * 1048576.0),
            "{shown}"
        );
        assert_eq!(processes[0].site_names(), "site-1", "{shown}");
    }
}

#[test]
fn processes_of_two_machines_with_equal_pid_and_start_are_two() {
    let line = |boot: &str, seq: u64| {
        record(seq).replace("\"seq\"", &format!("\"boot\":\"{boot}\",\"seq\"")) + "\n"
    };
    let text: String = (0..8).map(|seq| line("a", seq) + &line("b", seq)).collect();
    let (processes, report) = read_text("both", &text);
    let markers: Vec<u64> = processes.iter().map(|process| process.markers).collect();
    assert_eq!((markers, report.messages.len()), (vec![8, 8], 0));
}

#[test]
fn sites_of_two_machines_with_equal_pid_and_start_do_not_mix() {
    let of = |boot: &str| {
        let marker = record(0);
        let stack = format!(
            r#"{{"kind":"stack","v":1,"pid":123,"start":9,"site":1,"frames":[["{boot}.py",1,"f"]]}}"#
        );
        let text = format!("{marker}\n{stack}\n");
        text.replace("\"start\":9", &format!("\"start\":9,\"boot\":\"{boot}\""))
    };
    let (processes, _) = read_text("both", &(of("0000000a") + &of("0000000b")));
    let headline = |process: &Process| process.allocation_sites.headline(1, 1);
    let headlines: Vec<String> = processes.iter().map(headline).collect();
    assert_eq!(headlines, ["0000000a.py:1 in f", "0000000b.py:1 in f"]);
}

#[test]
fn gzip_is_read_and_a_truncated_archive_gives_a_message() {
    let pack = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let line = |seq: u64| record(seq) + "\n";
    let two = [pack(&line(1)), pack(&line(2))].concat();
    let (_, report) = read_bytes("two.gz", &two);
    assert_eq!(
        (report.markers, !report.fully_read),
        (2, false),
        "{report:?}"
    );
    let long: String = (0..5000).map(line).collect();
    let whole = pack(&long);
    let (_, report) = read_bytes("cut.gz", &whole[..whole.len() / 2]);
    assert!(!report.fully_read && report.markers > 100, "{report:?}");
    let is_error = |(_, text): &(_, &str)| text.contains("cannot be read from here on");
    assert!(messages(&report).iter().any(is_error), "{report:?}");
}

#[test]
fn damaged_lines_give_messages_and_the_others_are_read() {
    let half = &RECORD[..200];
    let text = format!("{RECORD}\n{half}\n{half}{}\n", record(18));
    let (_, report) = read_text("broken", &text);
    assert_eq!((report.markers, !report.fully_read), (2, true));
    let truncated = "a record that is truncated or not JSON";
    let joined = "several records on one line: 1 read, the others are lost";
    assert_eq!(messages(&report), [(Some(2), truncated), (Some(3), joined)]);
}

#[test]
fn a_file_that_ends_within_a_record_may_still_be_growing() {
    let (_, report) = read_text("growing", &format!("{RECORD}\n{}", &RECORD[..90]));
    let (_, text) = messages(&report)[0];
    assert!(text.ends_with("; the file may still be growing"), "{text}");
}

#[test]
fn a_message_names_the_missing_or_invalid_field() {
    let no_rss = RECORD.replace("\"rss_bytes\":1048576,", "");
    let not_a_number = RECORD.replace("\"live_bytes\":400", "\"live_bytes\":\"many\"");
    let negative = RECORD.replace("1048576", "-3");
    let no_pid = RECORD.replace("\"pid\":123,", "");
    let lines = [no_rss, not_a_number, negative, no_pid].join("\n") + "\n";
    let (processes, report) = read_text("fields", &lines);
    let found = (report.markers, processes.len(), processes[0].pid);
    assert_eq!(found, (1, 1, None));
    let no_rss = "a record without rss_bytes";
    let text = "a record whose live_bytes is invalid";
    let negative = "a record whose rss_bytes is invalid";
    let expected = [(Some(1), no_rss), (Some(2), text), (Some(3), negative)];
    assert_eq!(messages(&report), expected);
}

#[test]
fn known_fields_of_a_newer_version_are_read() {
    let newer = RECORD.replace("{\"v\":1,", "{\"v\":2,\"gpu\":{\"deep\":[1,2]},");
    let (_, report) = read_text("newer", &format!("{newer}\n"));
    assert_eq!((report.markers, !report.fully_read), (1, false));
    let (_, text) = messages(&report)[0];
    assert!(text.starts_with("records of version 2"), "{text}");
}

#[test]
fn a_pid_with_two_start_times_is_two_processes() {
    let again = RECORD.replace("\"start\":9", "\"start\":10");
    let (processes, _) = read_text("reuse", &format!("{RECORD}\n{again}\n"));
    assert_eq!(processes.len(), 2);
}

#[test]
fn a_pid_and_start_time_on_two_hosts_are_two_processes() {
    let file = |host: &str| {
        let with_host = |seq: u64| match seq {
            0 => record(0).replace("\"seq\"", &format!("\"host\":\"{host}\",\"seq\"")),
            _ => record(seq),
        };
        (0..4).map(|seq| with_host(seq) + "\n").collect::<String>()
    };
    let scratch = Scratch::new();
    let (one, other) = (
        scratch.write("one", &file("node-1")),
        scratch.write("other", &file("node-2")),
    );
    let (processes, reports) = read_all(&[one, other]);
    let counts: Vec<u64> = processes.iter().map(|process| process.markers).collect();
    assert_eq!(counts, [4, 4]);
    assert_eq!(messages(&reports[1]), []);
}

/// The first marker of a program, at a time.
fn load(program: &str, t: f64) -> String {
    let named = format!("\"program\":\"{program}\",\"stage\":\"load\"");
    let record = record(0).replace("\"stage\":\"send\"", &named);
    record
        .replace("\"round\":0", "\"round\":null")
        .replace("1763619820.5", &t.to_string())
}

#[test]
fn an_exec_begins_another_process() {
    let send = |seq: u64, t: f64| record(seq).replace("1763619820.5", &t.to_string());
    let stack = r#"{"kind":"stack","v":1,"pid":123,"start":9,"site":1,"frames":[["a.py",1,"f"]]}"#;
    let wrapper = [load("wrapper.py", 100.0), send(1, 101.0), stack.to_owned()];
    let train = [
        load("train.py", 102.0),
        stack.replace("a.py", "b.py"),
        send(1, 103.0),
        send(2, 104.0),
    ];
    let scratch = Scratch::new();
    let first = scratch.write("first", &(wrapper.join("\n") + "\n"));
    let second = scratch.write("second", &(train.join("\n") + "\n"));
    let both = scratch.write(
        "both",
        &([wrapper.join("\n"), train.join("\n")].join("\n") + "\n"),
    );
    for files in [
        vec![both.clone()],
        vec![first, second],
        vec![both.clone(), both],
    ] {
        let (processes, _) = read_all(&files);
        let found = processes.iter().map(|process| {
            let program = process.program.as_deref();
            let line = process.allocation_sites.headline(1, 1);
            (program, process.markers, line)
        });
        let expected = [
            (Some("wrapper.py"), 2, "a.py:1 in f".to_owned()),
            (Some("train.py"), 3, "b.py:1 in f".to_owned()),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected, "{} files", files.len());
    }
}

#[test]
fn the_parts_of_a_marker_file_are_one_process_in_any_order() {
    let lines = |from: u64, to: u64| {
        let line = |seq: u64| record(seq).replace("1763619820.5", &format!("{}", 100 + seq)) + "\n";
        (from..to).map(line).collect::<String>()
    };
    let scratch = Scratch::new();
    let older = scratch.write(
        "m.jsonl.1",
        &(load("train.py", 100.0) + "\n" + &lines(1, 5)),
    );
    let newer = scratch.write("m.jsonl", &lines(5, 9));
    for files in [[older.clone(), newer.clone()], [newer, older]] {
        let (processes, _) = read_all(&files);
        let counts: Vec<u64> = processes.iter().map(|process| process.markers).collect();
        assert_eq!(counts, [9], "{files:?}");
    }
}

#[test]
fn a_clock_that_goes_back_keeps_the_order() {
    let line = |seq: u64, t: f64| record(seq).replace("1763619820.5", &t.to_string());
    let text = [line(0, 5000.0), line(1, 1000.0), line(2, 1010.0)].join("\n") + "\n";
    let (processes, report) = read_text("clock", &text);
    assert_eq!(messages(&report), []);
    assert_eq!(rounds(&processes[0]), [0, 1, 2]);
}

#[test]
fn a_file_given_twice_is_counted_once() {
    let scratch = Scratch::new();
    let path = scratch.write("markers", &format!("{RECORD}\n"));
    let (processes, reports) = read_all(&[path.clone(), path]);
    assert_eq!(processes[0].markers, 1);
    let message = message_about_repeated_markers(&reports).unwrap();
    assert!(
        message.ends_with("markers: 1 marker read twice, counted once"),
        "{message}"
    );
}

#[test]
fn files_without_markers_are_no_error_and_have_one_message() {
    let scratch = Scratch::new();
    let empty = scratch.write("empty", "");
    let other = scratch.write("other", "hello\n{\"a\":1}\n");
    let markers = scratch.write("markers", &format!("{RECORD}\n"));
    let message = |files: &[PathBuf]| {
        let (_, reports) = read_all(files);
        assert!(reports
            .iter()
            .all(|file| file.fully_read && file.messages.is_empty()));
        message_about_files_without_markers(&reports)
    };
    let one = format!("{}: holds no marker", empty.display());
    assert_eq!(message(&[empty.clone(), markers.clone()]), Some(one));
    let two = "2 files hold no marker".to_owned();
    assert_eq!(message(&[empty, other, markers.clone()]), Some(two));
    assert_eq!(message(&[markers]), None);
}

#[test]
fn missing_files_and_directories_give_messages() {
    let scratch = Scratch::new();
    let (_, reports) = read_all(&[scratch.path().to_owned(), PathBuf::from("/nonexistent/x")]);
    let directory = "has no log and no marker file";
    assert_eq!(messages(&reports[0]), [(None, directory)]);
    assert_eq!(messages(&reports[1]), [(None, "No such file or directory")]);
    assert!(reports.iter().all(|report| !report.fully_read));
}

#[test]
fn coloured_lines_are_read() {
    let line = "2025-11-25 00:00:00,123 - mem_utils - INFO - [RSS] CA s=site-1 r=0 send: 300.0 MB";
    let docker = serde_json::json!({ "log": format!("\x1b[37m{line}\x1b[0m\r\n") });
    for text in [
        format!("\x1b[37m{line}\x1b[0m\r\n"),
        format!("\x1b]0;a title\x07\x1b[1;31m\x1b[K{line}\n"),
        format!("\x1b]0;a title\x1b\\{line}\x1b[m\n"),
        format!("\x1b[32m{RECORD}\x1b[0m\n"),
        format!("{docker}\n"),
    ] {
        let (_, report) = read_text("coloured", &text);
        let found = (report.markers, !report.fully_read);
        assert_eq!(found, (1, false), "{text:?}: {report:?}");
    }
}

#[test]
fn a_compressed_file_of_another_format_gives_the_command_that_unpacks_it() {
    for (start, command) in [
        (&b"\xfd7zXZ\0\0\x04"[..], "xz -d"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd -d"),
        (b"BZh91AY", "bzip2 -d"),
    ] {
        let (_, report) = read_bytes("packed", start);
        let text = format!("is compressed; unpack it first, with {command}");
        assert_eq!(messages(&report), [(None, &text[..])]);
        assert!(!report.fully_read);
    }
}

#[test]
fn a_pattern_that_matches_no_file_has_its_own_message() {
    let (_, reports) = read_all(&[PathBuf::from("/nonexistent/site-*/log.txt*")]);
    assert_eq!(messages(&reports[0]), [(None, "no file matches")]);
    assert!(!reports[0].fully_read);
}

#[test]
fn parts_of_a_rotated_log_are_one_process_in_time_order() {
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
    assert_eq!(rounds(&processes[0]), [0, 1, 2, 3]);
}

#[test]
fn a_process_in_a_log_and_in_markers_is_counted_once() {
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
    let name = |process: &Process| format!("{} {}", process.proc, process.site_names());
    let names: Vec<String> = processes.iter().map(name).collect();
    assert_eq!(names, ["TR site-1", "CA site-2"]);
    let message = message_about_repeated_markers(&reports).unwrap();
    assert!(
        message.ends_with("log.txt: 24 markers read twice, counted once"),
        "{message}"
    );
}

#[test]
fn a_job_process_that_trains_is_counted_once() {
    let scratch = Scratch::new();
    let (mut json, mut text) = (String::new(), String::new());
    for round in 0..12_u64 {
        for (place, stage, nvflare) in [(0, "receive", "recv"), (1, "send", "send")] {
            let record = record(round)
                .replace("TR", "CJ")
                .replace("\"send\"", &format!("\"{stage}\""));
            let record = record.replace("1048576", &(90_u64 << 20).to_string());
            json += &record.replace(&format!(":{round}}}"), &format!(":{}}}", 2 * round + place));
            json += "\n";
            text += &format!("x - INFO - [RSS] CA s=site-1 r={round} {nvflare}: 90.4 MB\n");
        }
    }
    let (processes, _) = read_all(&[
        scratch.write("m.jsonl", &json),
        scratch.write("log.txt", &text),
    ]);
    let names: Vec<&str> = processes.iter().map(|process| &*process.proc).collect();
    assert_eq!(names, ["CJ"]);
}

#[test]
fn the_start_of_a_process_in_a_log_and_in_markers_is_counted_once() {
    let scratch = Scratch::new();
    let load = record(0)
        .replace("\"send\"", "\"load\"")
        .replace("\"round\":0", "\"round\":null");
    let load = load.replace("\"site\":\"site-1\"", "\"site\":null");
    let markers = scratch.write("m.jsonl", &format!("{load}\n{}\n", record(1)));
    let log = scratch.write("log.txt", "x - INFO - [RSS] TR s=- r=- load: 1.0 MB\n");
    let (processes, _) = read_all(&[markers, log]);
    assert_eq!(processes.len(), 1);
}

#[test]
fn two_logs_of_one_process_are_counted_once_and_logs_of_two_runs_twice() {
    let log = |hour: u32, is_json: bool| {
        let lines = (0..12).flat_map(|round| {
            let start = format!("2026-11-25 {hour:02}:{round:02}:00,123");
            [("CJ", "receive"), ("CA", "recv")].map(|(proc, stage)| {
                let text = format!("[RSS] {proc} s=site-1 r={round} {stage}: 90.4 MB");
                match is_json {
                    true => format!("{{\"asctime\":\"{start}\",\"message\":\"{text}\"}}\n"),
                    false => format!("{start} - mem_utils - INFO - {text}\n"),
                }
            })
        });
        lines.collect::<String>()
    };
    let scratch = Scratch::new();
    let text = scratch.write("a/log.txt", &log(6, false));
    let json = scratch.write("a/log.json", &log(6, true));
    let later = scratch.write("b/log.txt", &log(7, false));
    let names = |paths: &[PathBuf]| {
        let (processes, _) = read_all(paths);
        let names = processes.iter().map(|process| process.proc.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&[json, text.clone()]), ["CJ"]);
    assert_eq!(names(&[text, later]), ["CJ", "CJ"]);
}

#[test]
fn equal_first_lines_of_two_logs_are_of_one_process_only_if_the_whole_log_is_a_copy() {
    let log = |site: &str, mark: &str| {
        let send = |round: u32| format!("[RSS] TR s={site} r={round} send: 90.4 MB");
        let lines = std::iter::once("[RSS] TR s=- r=- load: 20.4 MB".to_owned());
        let lines = lines.chain((0..12).map(send)).enumerate();
        let lines =
            lines.map(|(minute, line)| format!("2026-11-25 06:{minute:02}:00{mark} {line}\n"));
        lines.collect::<String>()
    };
    let scratch = Scratch::new();
    let first = scratch.write("a/stderr", &log("site-1", ",123"));
    let copy = scratch.write("b/stderr", &log("site-1", ".5Z"));
    let other = scratch.write("c/stderr", &log("site-2", ",500"));
    let counts = |paths: &[PathBuf]| {
        let (processes, reports) = read_all(paths);
        let repeated = reports.iter().map(|report| report.repeated_markers);
        (processes.len(), repeated.collect::<Vec<_>>())
    };
    assert_eq!(counts(&[first.clone(), other]), (4, vec![0, 0]));
    assert_eq!(counts(&[first, copy]), (2, vec![0, 13]));
    let first = scratch.write("d/stderr", &log("-", ",123"));
    let copy = scratch.write("e/stderr", &log("-", ",123"));
    assert_eq!(counts(&[first, copy]), (1, vec![0, 13]));
}
