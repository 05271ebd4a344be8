//! The memory of all processes over the time of day, stacked by site.

use std::fmt::Write;

use maud::{html, Markup};

use super::frame::{px, Frame};
use super::layers::{layers, Layer};
use super::scale::clock_ticks;
use super::{figure, on_both, Key};
use crate::report::analyse::{Grouping, Moment, Together};
use crate::report::calendar::{date, time_of_day};
use crate::report::units::{plural, size, MB};

/// On a page and on a phone.
const WIDE: (f64, f64) = (1100.0, 340.0);
const NARROW: (f64, f64) = (330.0, 280.0);
const MAX_NAMED_KILLS: usize = 4;
/// Parts of the time that have a tooltip.
const TOOLTIPS: usize = 100;

/// `None` if all markers have the same time.
pub fn chart(all: &Together) -> Option<Markup> {
    let last = all.moments.last()?;
    let layers = layers(all);
    let label = format!(
        "Memory of all processes. {}, peak {} at {}, {} at the end.",
        plural(layers.len() as u64, "layer"),
        size(all.peak),
        time_of_day(all.peak_time),
        size(last.total),
    );
    let charts = on_both(WIDE, NARROW, |dimensions| {
        sized(all, &layers, &label, dimensions)
    });
    let processes: usize = all.groups.iter().map(|group| group.members.len()).sum();
    let (title, note) = match (processes, all.grouping) {
        (1, _) => ("The process", "over the time of day"),
        (_, Grouping::Sites) => ("All processes", "stacked by site"),
        (_, Grouping::Processes) => ("All processes", "stacked by process"),
    };
    Some(figure(title, note, &charts, &keys(all, &layers)))
}

fn sized(all: &Together, layers: &[Layer], label: &str, (width, height): (f64, f64)) -> Markup {
    let ends = (all.start, all.end);
    let frame = Frame::new(
        (width, height),
        ends,
        (0.0, f64::max(all.peak, MB)),
        all.limit,
    );
    let step = (all.end - all.start) / all.moments.len() as f64;
    let mut sums = vec![0.0; all.moments.len()];
    let mut areas: Vec<(&str, String)> = Vec::new();
    for layer in layers {
        for (sum, moment) in sums.iter_mut().zip(&all.moments) {
            *sum += layer.bytes(moment);
        }
        areas.push((layer.key.0, filled_steps(&frame, all.start, step, &sums)));
    }
    let top = frame.y.place(frame.y.to);
    let bottom = frame.y.place(0.0);
    let tips = all.moments.chunks(all.moments.len().div_ceil(TOOLTIPS));
    let body = html! {
        // Each area begins at 0, so the lower ones are drawn over the higher ones.
        @for (class, path) in areas.iter().rev() { path class={ "layer " (class) } d=(path) {} }
        @for part in tips {
            @let left = frame.x.place(part[0].t);
            @let right = frame.x.place(part[part.len() - 1].t + step);
            rect.hover x=(px(left)) y=(px(top)) width=(px(right - left)) height=(px(bottom - top)) {
                title { (tooltip(part, layers)) }
            }
        }
        @for (t, name) in &all.kills {
            @let x = px(frame.x.place(*t));
            path.kill d={ "M" (x) " " (px(bottom)) "V" (px(top)) } {}
            circle.kill-dot cx=(x) cy=(px(top)) r="2.6" { title { (killed(*t, name)) } }
        }
    };
    let ticks = clock_ticks(all.start, all.end, width / 110.0);
    let axis = format!("time of day, UTC, from {}", date(all.start));
    frame.finish(label, &ticks, &axis, &body)
}

fn killed(t: f64, name: &str) -> String {
    format!("killed at {}: {name}", time_of_day(t))
}

/// The area below steps of equal width.
fn filled_steps(frame: &Frame, start: f64, step: f64, heights: &[f64]) -> String {
    let (left, base) = frame.place(start, 0.0);
    let mut path = format!("M{left:.1} {base:.1}");
    let mut drawn = String::new();
    for (i, height) in heights.iter().enumerate() {
        let (from, y) = frame.place(start + i as f64 * step, *height);
        let y = px(y);
        if y != drawn {
            let _ = write!(path, "H{from:.1}V{y}");
            drawn = y;
        }
    }
    let right = frame.x.place(start + heights.len() as f64 * step);
    let _ = write!(path, "H{right:.1}V{base:.1}Z");
    path
}

/// The moment with the highest total, and its layers.
fn tooltip(part: &[Moment], layers: &[Layer]) -> String {
    let highest = part.iter().max_by(|a, b| a.total.total_cmp(&b.total));
    let highest = highest.unwrap_or(&part[0]);
    let mut tip = format!("{}: {}", time_of_day(highest.t), size(highest.total));
    for layer in layers {
        let bytes = layer.bytes(highest);
        if bytes > 0.0 {
            let _ = write!(tip, "\n{} in {}", size(bytes), layer.key.1);
        }
    }
    tip
}

fn keys(all: &Together, layers: &[Layer]) -> Vec<Key> {
    let mut keys: Vec<Key> = layers.iter().map(|layer| layer.key.clone()).collect();
    let kills = all.kills.iter().take(MAX_NAMED_KILLS);
    keys.extend(kills.map(|(t, name)| ("kill-dot", killed(*t, name))));
    if all.kills.len() > MAX_NAMED_KILLS {
        let more = all.kills.len() - MAX_NAMED_KILLS;
        keys.push(("kill-dot", format!("{more} more killed")));
    }
    keys
}
