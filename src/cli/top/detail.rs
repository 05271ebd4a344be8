//! The detail view of `top`: all that a process tells about itself, in one text.

use serde_json::{Map, Value};

use crate::control::{self, Request, Stats, STATS_TIMEOUT};
use crate::output::{plain, terminal_width};
use crate::proc::Process;
use crate::stats::sheet;
use crate::units::{bytes, bytes_or_dash};
use crate::who;

/// Sizes, the stages, the lines that hold memory, and the settings.
pub fn text(process: &Process) -> String {
    let stats = match control::ask(process, Request::Stats, STATS_TIMEOUT) {
        Ok(stats) => stats,
        Err(error) => return plain(&error.to_string()),
    };
    let mut text = sheet::sizes(&process.name(), process.pid, &stats);
    text += &format!(
        "\nRSS at the last marker of each stage\n{}",
        markers(&stats)
    );
    text += &format!("\nLines that hold memory\n{}", lines(process));
    sheet::group(&mut text, "settings", &stats);
    text
}

/// The resident size at each stage, or, of an older library, at the last markers.
fn markers(stats: &Stats) -> String {
    let sizes = stats.numbers("marked_rss_bytes");
    if sizes.is_empty() {
        return "  none: it has written no marker (flarena run --profile)\n".to_owned();
    }
    let stages: Vec<&Map<String, Value>> = stats.objects("stages").collect();
    if !stages.is_empty() {
        return table(&stages);
    }
    let stage = plain(stats.text("stage").unwrap_or("-"));
    let sizes: Vec<String> = sizes.into_iter().map(bytes).collect();
    format!("  stage {stage}, rss {}\n", sizes.join(", "))
}

/// The stages in the order of their first markers.
fn table(stages: &[&Map<String, Value>]) -> String {
    let mut text = format!(
        "  {:<24} {:>5}  {:>10}  {:>10}\n",
        "stage", "round", "rss", "highest"
    );
    for stage in stages {
        let name = plain(stage.get("stage").and_then(Value::as_str).unwrap_or("-"));
        let round = stage.get("round").and_then(Value::as_i64);
        let round = round.map_or("-".to_owned(), |round| round.to_string());
        let size = |field: &str| bytes_or_dash(stage.get(field).and_then(Value::as_u64));
        let (last, highest) = (size("rss_bytes"), size("highest_rss_bytes"));
        text += &format!("  {name:<24} {round:>5}  {last:>10}  {highest:>10}\n");
    }
    text
}

fn lines(process: &Process) -> String {
    // Without the borders of the view.
    let width = terminal_width().map(|width| usize::from(width).saturating_sub(2));
    match who::page_of(process, width) {
        Ok(page) => page,
        Err(why) => format!("  none: {}\n", plain(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_its_round_and_sizes() {
        let stats = r#"{"marked_rss_bytes":[1],"stages":[
            {"stage":"train","round":7,"rss_bytes":2097152,"highest_rss_bytes":3145728},
            {"stage":"exit","round":null,"rss_bytes":1048576,"highest_rss_bytes":1048576}]}"#;
        let text = markers(&Stats::parse(stats).unwrap());
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|row| row.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0], ["stage", "round", "rss", "highest"]);
        assert_eq!(rows[1], ["train", "7", "2.00", "MB", "3.00", "MB"]);
        assert_eq!(rows[2], ["exit", "-", "1.00", "MB", "1.00", "MB"]);
    }

    #[test]
    fn the_last_markers_have_their_stage_and_sizes() {
        let stats = r#"{"stage":"send","marked_rss_bytes":[2097152,3145728]}"#;
        let text = markers(&Stats::parse(stats).unwrap());
        assert_eq!(text, "  stage send, rss 2.00 MB, 3.00 MB\n");
        let none = markers(&Stats::parse("{}").unwrap());
        assert!(none.contains("no marker"), "{none}");
    }
}
