//! Several lines over the same time: the memory of the variants of `flarena compare`.

use maud::{html, Markup, PreEscaped};

use super::frame::Frame;
use super::scale::time_ticks;
use super::{figure, on_both, polyline, sample, thinned, Key, Points, STYLE};
use crate::report::units::{size, MB};

const MAX_POINTS: usize = 600;
/// On a page and on a phone.
const WIDE: (f64, f64) = (620.0, 270.0);
const NARROW: (f64, f64) = (330.0, 240.0);
const COLOURS: [&str; 7] = [
    "line line-0",
    "line line-1",
    "line line-2",
    "line line-3",
    "line line-4",
    "line line-5",
    "line line-6",
];

/// Seconds and bytes.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Points,
}

/// The chart of all lines.
pub fn lines(title: &str, lines: &[Line]) -> Markup {
    let charts = on_both(WIDE, NARROW, |dimensions| chart(title, lines, dimensions));
    figure(title, "PSS of all processes", &charts, &keys(lines))
}

fn keys(lines: &[Line]) -> Vec<Key> {
    let colours = COLOURS.into_iter().cycle();
    lines
        .iter()
        .zip(colours)
        .map(|(line, class)| (class, line.name.to_owned()))
        .collect()
}

fn chart(title: &str, lines: &[Line], (width, height): (f64, f64)) -> Markup {
    let points = || lines.iter().flat_map(|line| &line.points);
    let end = points().map(|point| point.0).fold(0.0, f64::max);
    let highest = points().map(|point| point.1).fold(MB, f64::max);
    let frame = Frame::new((width, height), (0.0, end), (0.0, highest), f64::NAN);
    let path = |line: &Line| {
        let points = thinned(&line.points, MAX_POINTS);
        polyline(points.iter().map(|(x, y)| frame.place(*x, *y)))
    };
    let body = html! {
        @for (line, class) in lines.iter().zip(COLOURS.iter().cycle()) { path class=(class) d=(path(line)) {} }
    };
    let peak = |line: &Line| {
        let peak = line.points.iter().map(|point| point.1).fold(0.0, f64::max);
        format!("{}: peak {}", line.name, size(peak))
    };
    let peaks: Vec<String> = lines.iter().map(peak).collect();
    let label = format!("{title}. {}", peaks.join(", "));
    frame.finish(&label, &time_ticks(end, width / 80.0), "time", &body)
}

/// A chart of lines with its legend as a file of its own.
pub fn picture(title: &str, lines: &[Line]) -> String {
    const KEY_HEIGHT: f64 = 20.0;
    let (width, below) = (WIDE.0 + 32.0, WIDE.1 + 44.0);
    let height = below + 12.0 + KEY_HEIGHT * lines.len() as f64;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" width=(width) height=(height) aria-label=(title) {
            style { (PreEscaped(STYLE)) }
            rect.page width="100%" height="100%" {}
            text.title x="16" y="26" { (title) }
            g transform="translate(16 36)" { (chart(title, lines, WIDE)) }
            @for (place, (class, name)) in keys(lines).iter().enumerate() {
                g transform={ "translate(92 " (below + KEY_HEIGHT * place as f64) ")" } {
                    (sample(class))
                    text x="20" y="11" { (name) }
                }
            }
        }
    };
    picture.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_drawn_with_its_name() {
        let line = |name| Line {
            name,
            points: vec![(0.0, 5.0 * MB), (1.0, 9.0 * MB)],
        };
        let picture = picture("a <title>", &[line("one"), line("two")]);
        assert_eq!(picture.matches("class=\"line line-").count(), 4);
        assert!(picture.contains(">one<") && picture.contains("two: peak 9.00 MB"));
        assert!(picture.contains("a &lt;title&gt;") && picture.ends_with("</svg>"));
    }
}
