//! Memory over time, all stages: single markers while they can be told apart, else their range.

use super::frame::{Frame, HEADROOM};
use super::scale::times;
use super::svg::{area, polyline, shortened, steps};
use crate::report::analyse::ProcessReport;
use crate::report::explain::phrases::and_live;
use crate::report::model::{Point, Size, Sizes};
use crate::report::units::{duration, size, MB};

/// More markers run into each other: then columns show their range.
const MOST_MARKERS: usize = 220;
const MOST_COLUMNS: usize = 180;
/// A gap this long was a clock that was set, not a job that slept.
const LONGEST_PAUSE_SECONDS: f64 = 30.0 * 86400.0;

struct Marker<'a> {
    elapsed: f64,
    stage: &'a str,
    point: &'a Point,
}

/// The whole job.
pub fn chart(report: &ProcessReport, id: &str) -> Option<String> {
    let markers = markers(report)?;
    let few = markers.len() <= MOST_MARKERS;
    let mut frame = frame(report, &markers, 0.0)?;
    if few {
        lines(&mut frame, &markers);
    } else {
        ranges(&mut frame, &markers, report.finding.rounds);
    }
    frame.limit_line();
    let note = match few {
        true => "each marker a dot",
        false => "range of all stages",
    };
    frame.title("Over time", note);
    legend(&mut frame, &markers, few);
    let title = format!("{}: memory over time", report.name());
    let text = format!(
        "RSS over {} in {} markers; peak {}.",
        duration(markers.last()?.elapsed),
        report.process.samples,
        size(report.process.hwm)
    );
    Some(frame.finish(id, &title, &text))
}

/// The last round alone, its stages named.
pub fn last_round(report: &ProcessReport, id: &str) -> Option<String> {
    let mut markers = markers(report)?;
    let rounds = markers.iter().filter(|m| !m.point.round.is_nan());
    let last = rounds.map(|m| m.point.round).next_back()?;
    let first = markers.iter().position(|m| m.point.round == last)?;
    markers.drain(..first);
    let start = markers.first()?.elapsed;
    markers.iter_mut().for_each(|m| m.elapsed -= start);
    let mut frame = frame(report, &markers, headroom(&markers)).filter(|_| markers.len() > 1)?;
    named_stages(&mut frame, &markers);
    lines(&mut frame, &markers);
    frame.limit_line();
    let note = format!("round {last:.0} over time, stages marked");
    frame.title("The last round", &note);
    legend(&mut frame, &markers, true);
    let title = format!("{}: memory in the last round", report.name());
    let stage = |m: &Marker| format!("{} {}", m.stage, size(m.point.sizes[Size::Rss]));
    let text: Vec<String> = markers.iter().take(40).map(stage).collect();
    Some(frame.finish(id, &title, &text.join(", ")))
}

fn frame(report: &ProcessReport, markers: &[Marker], headroom: f64) -> Option<Frame> {
    let end = markers.last()?.elapsed;
    let highest = markers.iter().map(|m| m.point.peak).fold(MB, f64::max);
    let limit = report.process.limit;
    let mut frame = Frame::new((0.0, end), (0.0, highest), limit, headroom);
    frame.axes(&times(end, 8.0), "time");
    Some(frame)
}

fn legend(frame: &mut Frame, markers: &[Marker], single: bool) {
    frame.legend(if single { "rss" } else { "fill-rss" }, "RSS");
    if markers.iter().any(|m| !m.point.sizes[Size::Live].is_nan()) {
        frame.legend(if single { "live" } else { "fill-live" }, "live");
        if single {
            frame.legend("fill-held", "cached + retained");
        }
    }
}

/// All markers in their order, on a time axis that never goes back.
fn markers(report: &ProcessReport) -> Option<Vec<Marker<'_>>> {
    let stages = report.process.stages.iter();
    let mut markers: Vec<Marker> = stages
        .flat_map(|(stage, series)| {
            series.points().iter().map(move |point| Marker {
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
        if (0.0..LONGEST_PAUSE_SECONDS).contains(&step) {
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
    let held = line(&|s| s[Size::Live] + s.held_back());
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
        let sizes = format!("RSS {}{}", size(rss), and_live(live));
        let tip = format!("{stage}{round}, after {after}: {sizes}");
        let at = frame.place(marker.elapsed, rss);
        frame.svg.dot("mark", at, &tip);
    }
}

/// For the names of the stages, which read upwards to below the legend.
fn headroom(markers: &[Marker]) -> f64 {
    const LETTER: f64 = 8.2;
    let letters = |marker: &Marker| shortened(marker.stage).chars().count();
    let letters = markers.iter().map(letters);
    (LETTER * letters.max().unwrap_or(0) as f64).min(HEADROOM)
}

/// A hairline for each marker, and above the data its name where there is room for one.
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

/// The lowest and the highest size in each column; the wrong way around where there is none.
type Ends = Vec<(f64, f64)>;

fn ranges(frame: &mut Frame, markers: &[Marker], rounds: u64) {
    let end = frame.x.to;
    // Narrower than two rounds, a column would show how they alternate with it, not their range.
    let columns = ((rounds / 2) as usize).clamp(8, MOST_COLUMNS);
    let ends = |of: Size| {
        let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); columns];
        for marker in markers {
            let column = ((marker.elapsed / end * columns as f64) as usize).min(columns - 1);
            let value = marker.point.sizes[of];
            ends[column] = (ends[column].0.min(value), ends[column].1.max(value));
        }
        ends
    };
    let (rss, live) = (ends(Size::Rss), ends(Size::Live));
    values(frame, &rss, &live, end);
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

/// A place over each column that shows its range.
fn values(frame: &mut Frame, rss: &Ends, live: &Ends, end: f64) {
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
    (low <= high).then(|| format!("{name} {} to {}", size(low), size(high)))
}
