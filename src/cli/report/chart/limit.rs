//! The memory limit of a process in its charts.

use super::frame::Frame;
use crate::report::units::size;

/// A limit far above the data would press them flat against the axis: then it is named instead.
pub fn sees_limit(limit: f64, highest: f64) -> bool {
    limit <= 1.7 * highest
}

pub fn limit_line(frame: &mut Frame, limit: f64) {
    if limit.is_nan() {
        return;
    }
    let name = format!("limit {}", size(limit));
    let (right, y) = frame.place(frame.x.to, limit);
    if limit <= frame.y.to {
        let (left, _) = frame.place(frame.x.from, limit);
        frame.svg.line("limit", (left, y), (right, y));
        frame.svg.text("limit-name", (right, y - 5.0), "end", &name);
    } else {
        frame.svg.text(
            "limit-name",
            (right, 17.0),
            "end",
            &format!("{name} \u{2191}"),
        );
    }
}
