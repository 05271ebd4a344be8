//! The memory of all processes over the time of day, stacked by site.

use std::fmt::Write;

use super::frame::Frame;
use super::layers::{layers, Layer};
use super::scale::clock_ticks;
use super::svg::cut_to;
use crate::report::analyse::{Grouping, Together};
use crate::report::calendar::{date, time_of_day};
use crate::report::units::{plural, size, MB};

const KEY_HEIGHT: f64 = 20.0;
/// Width of a letter of the legend.
const LETTER: f64 = 7.8;
const MAX_NAMED_KILLS: usize = 4;
/// Parts of the time that have a tooltip.
const TOOLTIPS: usize = 100;

/// `width` is 1240 for a page, or less for a phone.
pub fn chart(all: &Together, id: &str, (width, height): (f64, f64)) -> Option<String> {
    let last = all.moments.last()?;
    let highest = f64::max(all.peak, MB);
    let mut frame = Frame::sized(
        (width, height),
        (all.start, all.end),
        (0.0, highest),
        all.limit,
    );
    let ticks = clock_ticks(all.start, all.end, width / 110.0);
    frame.axes(
        &ticks,
        &format!("time of day, UTC, from {}", date(all.start)),
    );
    let step = (all.end - all.start) / all.moments.len() as f64;
    let layers = layers(all);
    let mut sums = vec![0.0; all.moments.len()];
    let mut paths = Vec::new();
    for layer in &layers {
        for (sum, moment) in sums.iter_mut().zip(&all.moments) {
            *sum += layer.bytes(moment);
        }
        let path = filled_steps(&frame, all.start, step, sums.iter().copied());
        paths.push((layer.class, path));
    }
    // Each area begins at 0, so the lower ones are drawn over the higher ones.
    for (class, path) in paths.iter().rev() {
        frame.svg.path(&format!("layer {class}"), path);
    }
    tooltips(&mut frame, all, &layers, step);
    for (t, name) in &all.kills {
        let (x, bottom) = frame.place(*t, 0.0);
        let (_, top) = frame.place(*t, frame.y.to);
        frame.svg.line("kill", (x, bottom), (x, top));
        let tip = format!("killed at {}: {name}", time_of_day(*t));
        frame.svg.dot("kill-dot", (x, top), &tip);
    }
    frame.limit_line();
    let reports: usize = all.groups.iter().map(|group| group.members.len()).sum();
    let by = match all.grouping {
        Grouping::Sites => "stacked by site",
        Grouping::Processes => "stacked by process",
    };
    match reports {
        1 => frame.title("The process", "over the time of day"),
        _ => frame.title("All processes", by),
    }
    let rows = legend(&mut frame, all, &layers, (width, height));
    let text = format!(
        "{}, peak {} at {}, {} at the end.",
        plural(layers.len() as u64, "layer"),
        size(all.peak),
        time_of_day(all.peak_time),
        size(last.total),
    );
    Some(frame.finish_taller(id, "Memory of all processes", &text, rows * KEY_HEIGHT))
}

/// The area below steps of equal width.
fn filled_steps(
    frame: &Frame,
    start: f64,
    step: f64,
    heights: impl Iterator<Item = f64>,
) -> String {
    let (left, base) = frame.place(start, 0.0);
    let mut path = format!("M{left:.1} {base:.1}");
    let (mut x, mut drawn) = (left, String::new());
    for (i, height) in heights.enumerate() {
        let (from, y) = frame.place(start + i as f64 * step, height);
        let y = format!("{y:.1}");
        if y != drawn {
            let _ = write!(path, "H{from:.1}V{y}");
            drawn = y;
        }
        x = frame.place(start + (i + 1) as f64 * step, height).0;
    }
    let _ = write!(path, "H{x:.1}V{base:.1}Z");
    path
}

fn tooltips(frame: &mut Frame, all: &Together, layers: &[Layer], step: f64) {
    let width = all.moments.len().div_ceil(TOOLTIPS);
    for (place, part) in all.moments.chunks(width).enumerate() {
        let highest = part.iter().max_by(|a, b| a.total.total_cmp(&b.total));
        let Some(moment) = highest else { continue };
        let mut tip = format!("{}: {}", time_of_day(moment.t), size(moment.total));
        for layer in layers {
            let bytes = layer.bytes(moment);
            if bytes > 0.0 {
                let _ = write!(tip, "\n{} in {}", size(bytes), layer.name);
            }
        }
        let from = all.start + (place * width) as f64 * step;
        let (left, top) = frame.place(from, frame.y.to);
        let (right, bottom) = frame.place(from + part.len() as f64 * step, 0.0);
        let area = (right - left, bottom - top);
        frame.svg.rect("hover", (left, top), area, &tip);
    }
}

/// Draws the names below the chart. Returns the number of rows.
fn legend(frame: &mut Frame, all: &Together, layers: &[Layer], (width, height): (f64, f64)) -> f64 {
    let mut keys: Vec<(String, String)> = Vec::new();
    for layer in layers {
        keys.push((format!("layer {}", layer.class), layer.name.clone()));
    }
    for (t, name) in all.kills.iter().take(MAX_NAMED_KILLS) {
        let key = format!("killed at {}: {name}", time_of_day(*t));
        keys.push(("kill-dot".into(), key));
    }
    match all.kills.len().saturating_sub(MAX_NAMED_KILLS) {
        0 => {}
        more => keys.push(("kill-dot".into(), format!("{more} more killed"))),
    }
    let left = 16.0;
    let (mut x, mut row) = (left, 0.0);
    let max_letters = ((width - left - 24.0) / LETTER) as usize;
    for (class, name) in keys {
        let name = cut_to(&name, max_letters);
        let room = 19.0 + LETTER * name.chars().count() as f64 + 16.0;
        if x > left && x + room > width {
            (x, row) = (left, row + 1.0);
        }
        let y = height + 14.0 + KEY_HEIGHT * row;
        frame.svg.rect(&class, (x, y - 10.0), (13.0, 11.0), "");
        frame.svg.text("key", (x + 19.0, y), "start", &name);
        x += room;
    }
    row + 1.0
}
