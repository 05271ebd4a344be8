//! The detail view of `top`: all that a process tells about itself, in one text.

use serde_json::Value;

use crate::control::{self, Request, Stats, STATS_TIMEOUT};
use crate::output::{plain, terminal_width};
use crate::proc::Process;
use crate::stats::sheet;
use crate::units::{bytes_or_dash, or_dash};
use crate::who;

/// Sizes, the stages, the lines that hold memory, and the settings.
pub fn text(process: &Process) -> String {
    let stats = match control::ask(process, Request::Stats, STATS_TIMEOUT) {
        Ok(stats) => stats,
        Err(error) => return plain(&error.to_string()),
    };
    let mut text = sheet::sizes(&process.name(), process.pid, &stats);
    text += &format!("\nRSS at the last marker of each stage\n{}", stages(&stats));
    text += &format!("\nLines that hold memory\n{}", lines(process));
    sheet::group(&mut text, "settings", &stats);
    text
}

/// The stages in the order of their first markers.
fn stages(stats: &Stats) -> String {
    let mut text = format!(
        "  {:<24} {:>5}  {:>10}  {:>10}\n",
        "stage", "round", "rss", "highest"
    );
    let header = text.len();
    for stage in stats.objects("stages") {
        let name = plain(stage.get("stage").and_then(Value::as_str).unwrap_or("-"));
        let round = or_dash(stage.get("round").and_then(Value::as_i64));
        let size = |field: &str| bytes_or_dash(stage.get(field).and_then(Value::as_u64));
        let (last, highest) = (size("rss_bytes"), size("highest_rss_bytes"));
        text += &format!("  {name:<24} {round:>5}  {last:>10}  {highest:>10}\n");
    }
    if text.len() == header {
        return "  none: it has written no marker (flarena run --profile)\n".to_owned();
    }
    text
}

fn lines(process: &Process) -> String {
    // Without the borders of the view.
    let width = terminal_width().map(|width| width.saturating_sub(2));
    who::page_of(process, width)
        .unwrap_or_else(|why| format!("  none: {}\n", plain(&why.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_its_round_and_sizes() {
        let stats = r#"{"stages":[
            {"stage":"train","round":7,"rss_bytes":2097152,"highest_rss_bytes":3145728},
            {"stage":"exit","round":null,"rss_bytes":1048576,"highest_rss_bytes":1048576}]}"#;
        let text = stages(&Stats::parse(stats).unwrap());
        let rows = text.lines().map(|row| row.split_whitespace().collect());
        let rows: Vec<Vec<&str>> = rows.collect();
        assert_eq!(rows[0], ["stage", "round", "rss", "highest"]);
        assert_eq!(rows[1], ["train", "7", "2.00", "MB", "3.00", "MB"]);
        assert_eq!(rows[2], ["exit", "-", "1.00", "MB", "1.00", "MB"]);
        let none = stages(&Stats::parse("{}").unwrap());
        assert!(none.contains("no marker"), "{none}");
    }
}
