//! Memory over time at all stages: single markers, or ranges if there are many markers.

use super::frame::{Frame, HEADROOM};
use super::scale::time_ticks;
use super::svg::{area, polyline, shortened, steps};
use crate::report::analyse::ProcessReport;
use crate::report::explain::live_suffix;
use crate::report::model::{Point, Size, Sizes};
use crate::report::units::{duration, range as size_range, size, Amount, MB};

/// More markers would overlap. Columns then show their range.
const MAX_MARKERS: usize = 220;
const MAX_COLUMNS: usize = 180;
/// A longer gap comes from a clock that was set, and counts as zero.
const MAX_PAUSE_SECONDS: f64 = 30.0 * 86400.0;

struct Marker<'a> {
    elapsed: f64,
    stage: &'a str,
    point: &'a Point,
}

/// How the markers are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// A dot per marker.
    Dots,
    /// The range of the markers in each column.
    Ranges,
}

/// The whole job.
pub fn chart(report: &ProcessReport, id: &str) -> Option<String> {
    let markers = markers(report)?;
    let style = match markers.len() <= MAX_MARKERS {
        true => Style::Dots,
        false => Style::Ranges,
    };
    let mut frame = frame(report, &markers, 0.0)?;
    let note = match style {
        Style::Dots => {
            lines(&mut frame, &markers);
            "one dot per marker"
        }
        Style::Ranges => {
            ranges(&mut frame, &markers, report.finding.rounds);
            "range of all stages"
        }
    };
    frame.limit_line();
    frame.title("Over time", note);
    legend(&mut frame, &markers, style);
    let title = format!("{}: memory over time", report.full_name());
    let text = format!(
        "RSS over {} in {} markers; peak {}.",
        duration(markers.last()?.elapsed),
        report.process.markers,
        size(report.process.peak_rss)
    );
    Some(frame.finish(id, &title, &text))
}

/// The last round, with the names of its stages.
pub fn last_round(report: &ProcessReport, id: &str) -> Option<String> {
    let mut markers = markers(report)?;
    let last = start_of_last_round(&mut markers)?;
    let start = markers.first()?.elapsed;
    markers.iter_mut().for_each(|m| m.elapsed -= start);
    let mut frame = frame(report, &markers, headroom(&markers)).filter(|_| markers.len() > 1)?;
    named_stages(&mut frame, &markers);
    lines(&mut frame, &markers);
    frame.limit_line();
    let note = format!("round {last:.0} over time, stages marked");
    frame.title("The last round", &note);
    legend(&mut frame, &markers, Style::Dots);
    let title = format!("{}: memory in the last round", report.full_name());
    let stage = |m: &Marker| format!("{} {}", m.stage, size(m.point.sizes[Size::Rss]));
    let text: Vec<String> = markers.iter().take(40).map(stage).collect();
    Some(frame.finish(id, &title, &text.join(", ")))
}

/// Removes the markers before the last round, and returns its number. A number occurs again if the
/// process serves several jobs.
fn start_of_last_round(markers: &mut Vec<Marker>) -> Option<f64> {
    let rounds = markers.iter().map(|m| m.point.round);
    let last = rounds.clone().rfind(|round| !round.is_nan())?;
    let is_other = |m: &Marker| !m.point.round.is_nan() && m.point.round != last;
    let before = markers.iter().rposition(is_other).map_or(0, |i| i + 1);
    let first = rounds.skip(before).position(|round| round == last)?;
    markers.drain(..before + first);
    Some(last)
}

fn frame(report: &ProcessReport, markers: &[Marker], headroom: f64) -> Option<Frame> {
    let end = markers.last()?.elapsed;
    let highest = markers.iter().map(|m| m.point.peak).fold(MB, f64::max);
    let limit = report.process.cgroup_limit;
    let mut frame = Frame::new((0.0, end), (0.0, highest), limit, headroom);
    frame.axes(&time_ticks(end, 8.0), "time");
    Some(frame)
}

fn legend(frame: &mut Frame, markers: &[Marker], style: Style) {
    let (rss, live) = match style {
        Style::Dots => ("rss", "live"),
        Style::Ranges => ("fill-rss", "fill-live"),
    };
    frame.legend(rss, "RSS");
    if markers.iter().any(|m| !m.point.sizes[Size::Live].is_nan()) {
        frame.legend(live, "live");
        if style == Style::Dots {
            frame.legend("fill-held", "cached + retained");
        }
    }
}

/// All markers in order, on a time axis that never goes back.
fn markers(report: &ProcessReport) -> Option<Vec<Marker<'_>>> {
    let stages = report.process.stages.iter();
    let mut markers: Vec<Marker> = stages
        .flat_map(|(stage, series)| {
            let drawn = series.drawn().into_iter();
            drawn.map(move |(_, point)| Marker {
                elapsed: 0.0,
                stage,
                point,
            })
        })
        .filter(|marker| !marker.point.t.is_nan())
        .collect();
    markers.sort_by_key(|marker| marker.point.order);
    let mut elapsed = 0.0;
    let mut before = markers.first()?.point.t;
    for marker in &mut markers {
        let step = marker.point.t - before;
        if (0.0..MAX_PAUSE_SECONDS).contains(&step) {
            elapsed += step;
        }
        before = marker.point.t;
        marker.elapsed = elapsed;
    }
    (elapsed > 0.0).then_some(markers)
}

fn lines(frame: &mut Frame, markers: &[Marker]) {
    let line = |of: &dyn Fn(&Sizes) -> f64| -> Vec<(f64, f64)> {
        let places = markers.iter().map(|m| (m.elapsed, of(&m.point.sizes)));
        let known = places.filter(|(_, y)| !y.is_nan());
        frame.steps(&known.collect::<Vec<_>>())
    };
    let live = line(&|s| s[Size::Live]);
    let held = line(&|s| s[Size::Live] + s.kept_free());
    let rss = line(&|s| s[Size::Rss]);
    frame.svg.path("fill-held", &area(&held, &live));
    frame.svg.path("live", &polyline(live));
    frame.svg.path("rss", &polyline(rss));
    for marker in markers {
        let (rss, live) = (
            marker.point.sizes[Size::Rss],
            marker.point.sizes[Size::Live],
        );
        let round = match marker.point.round {
            round if round.is_nan() => String::new(),
            round => format!(", round {round:.0}"),
        };
        let (stage, after) = (marker.stage, duration(marker.elapsed));
        let sizes = format!("RSS {}{}", size(rss), live_suffix(live));
        let tip = format!("{stage}{round}, after {after}: {sizes}");
        let at = frame.place(marker.elapsed, rss);
        frame.svg.dot("dot", at, &tip);
    }
}

/// The space above the data for the vertical names of the stages.
fn headroom(markers: &[Marker]) -> f64 {
    const LETTER: f64 = 8.2;
    let letters = |marker: &Marker| shortened(marker.stage).chars().count();
    let letters = markers.iter().map(letters);
    (LETTER * letters.max().unwrap_or(0) as f64).min(HEADROOM)
}

/// A thin line for each marker, and the name of its stage above it if there is room.
fn named_stages(frame: &mut Frame, markers: &[Marker]) {
    const LINE_HEIGHT: f64 = 16.0;
    let mut free_from = f64::NEG_INFINITY;
    for marker in markers {
        let (x, top) = frame.place(marker.elapsed, frame.y.to);
        let (_, bottom) = frame.place(marker.elapsed, frame.y.from);
        frame.svg.line("grid", (x, top), (x, bottom));
        if x - LINE_HEIGHT >= free_from {
            let name = shortened(marker.stage);
            frame.svg.upright("stage", (x + 5.0, top - 6.0), &name);
            free_from = x;
        }
    }
}

/// The lowest and the highest size in each column; (infinity, -infinity) for an empty column.
type Ends = Vec<(f64, f64)>;

fn ranges(frame: &mut Frame, markers: &[Marker], rounds: u64) {
    let end = frame.x.to;
    // A column spans at least two rounds. Narrower ones would show artefacts of their alignment.
    let columns = ((rounds / 2) as usize).clamp(8, MAX_COLUMNS);
    let ends = |kind: Size| {
        let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); columns];
        for marker in markers {
            let column = ((marker.elapsed / end * columns as f64) as usize).min(columns - 1);
            let value = marker.point.sizes[kind];
            ends[column] = (ends[column].0.min(value), ends[column].1.max(value));
        }
        ends
    };
    let (rss, live) = (ends(Size::Rss), ends(Size::Live));
    tooltips(frame, &rss, &live, end);
    for (ends, fill, edge) in [
        (&rss, "fill-rss", "rss-edge"),
        (&live, "fill-live", "live-edge"),
    ] {
        let all = ends.iter().enumerate();
        let known = all.filter(|(_, (low, high))| low <= high);
        let at = |i: usize| (i as f64 + 0.5) / columns as f64 * end;
        let (low, high): (Vec<_>, Vec<_>) = known
            .map(|(i, (low, high))| (frame.place(at(i), *low), frame.place(at(i), *high)))
            .unzip();
        frame.svg.path(fill, &area(&steps(&high), &steps(&low)));
        frame.svg.path(edge, &polyline(steps(&high)));
    }
}

/// An invisible dot above each column with a tooltip that shows its range.
fn tooltips(frame: &mut Frame, rss: &Ends, live: &Ends, end: f64) {
    let width = end / rss.len() as f64;
    for (i, (rss, live)) in rss.iter().zip(live).enumerate() {
        let Some(sizes) = range("RSS", *rss) else {
            continue;
        };
        let live = range("live", *live).map_or(String::new(), |live| format!(", {live}"));
        let (from, to) = (i as f64 * width, (i + 1) as f64 * width);
        let tip = format!("{} to {}: {sizes}{live}", duration(from), duration(to));
        let at = frame.place((i as f64 + 0.5) * width, rss.1);
        frame.svg.dot("hit", at, &tip);
    }
}

fn range(name: &str, (low, high): (f64, f64)) -> Option<String> {
    (low <= high).then(|| format!("{name} {}", size_range(low, "to", high, Amount::Size)))
}
