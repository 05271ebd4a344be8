//! The detail view of `top`: all that a process tells about itself, in one text.

use crate::control::{self, Request, Stats, STATS_TIMEOUT};
use crate::output::{align_right, plain, render, table};
use crate::proc::Process;
use crate::stats::sheet;
use crate::units::bytes_or_dash;
use crate::who;

/// Sizes, stages, the lines that hold memory, and the settings.
pub fn text(process: &Process) -> String {
    let stats = match control::ask(process, Request::Stats, STATS_TIMEOUT) {
        Ok(stats) => stats,
        Err(error) => return plain(&error.to_string()),
    };
    let mut text = sheet::sizes(&process.name(), process.pid, &stats);
    text += &format!("\nStages\n{}", stages(&stats));
    text += &format!("\nLines that hold memory\n{}", lines(process));
    sheet::group(&mut text, "settings", &stats);
    text
}

/// The last and the highest size at each stage, in the order of their last markers.
fn stages(stats: &Stats) -> String {
    let mut rows = table(["STAGE", "MARKERS", "ROUND", "LAST", "HIGHEST"]);
    let mut is_empty = true;
    for stage in stats.objects("stages") {
        let number = |name| stage.get(name).and_then(serde_json::Value::as_u64);
        let round = stage.get("round").and_then(serde_json::Value::as_i64);
        let name = stage.get("stage").and_then(serde_json::Value::as_str);
        rows.add_row([
            plain(name.unwrap_or("-")),
            number("markers").unwrap_or(0).to_string(),
            round.map_or("-".to_owned(), |round| round.to_string()),
            bytes_or_dash(number("rss_bytes")),
            bytes_or_dash(number("highest_rss_bytes")),
        ]);
        is_empty = false;
    }
    if is_empty {
        return "  none: it has written no marker (flarena run --profile)\n".to_owned();
    }
    align_right(&mut rows, 1..5);
    render(&rows)
}

fn lines(process: &Process) -> String {
    match who::page_of(process) {
        Ok(page) => page,
        Err(why) => format!("  none: {}\n", plain(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_a_row_with_its_last_and_its_highest_size() {
        let stats = r#"{"stages":[{"stage":"send","round":3,"markers":4,"rss_bytes":2097152,
            "highest_rss_bytes":3145728}]}"#;
        let text = stages(&Stats::parse(stats).unwrap());
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["send", "4", "3", "2.00", "MB", "3.00", "MB"]);
        let none = stages(&Stats::parse("{}").unwrap());
        assert!(none.contains("no marker"), "{none}");
    }
}
