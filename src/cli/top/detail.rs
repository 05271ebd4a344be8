//! The detail view of `top`: all that a process tells about itself, in one text.

use crate::control::{self, Request, Stats, STATS_TIMEOUT};
use crate::output::plain;
use crate::proc::Process;
use crate::stats::sheet;
use crate::units::bytes;
use crate::who;

/// Sizes, the last markers, the lines that hold memory, and the settings.
pub fn text(process: &Process) -> String {
    let stats = match control::ask(process, Request::Stats, STATS_TIMEOUT) {
        Ok(stats) => stats,
        Err(error) => return plain(&error.to_string()),
    };
    let mut text = sheet::sizes(&process.name(), process.pid, &stats);
    text += &format!("\nLast markers\n{}", markers(&stats));
    text += &format!("\nLines that hold memory\n{}", lines(process));
    sheet::group(&mut text, "settings", &stats);
    text
}

/// The stage of the last marker, and the resident sizes at the last markers, the oldest first.
fn markers(stats: &Stats) -> String {
    let sizes = stats.numbers("marked_rss_bytes");
    if sizes.is_empty() {
        return "  none: it has written no marker (flarena run --profile)\n".to_owned();
    }
    let stage = plain(stats.text("stage").unwrap_or("-"));
    let sizes: Vec<String> = sizes.into_iter().map(bytes).collect();
    format!("  stage {stage}, rss {}\n", sizes.join(", "))
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
    fn the_last_markers_have_their_stage_and_sizes() {
        let stats = r#"{"stage":"send","marked_rss_bytes":[2097152,3145728]}"#;
        let text = markers(&Stats::parse(stats).unwrap());
        assert_eq!(text, "  stage send, rss 2.00 MB, 3.00 MB\n");
        let none = markers(&Stats::parse("{}").unwrap());
        assert!(none.contains("no marker"), "{none}");
    }
}
