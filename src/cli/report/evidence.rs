//! The verdict in words: the evidence in one sentence, and what to do about it.

use super::model::{Process, Size};
use super::stats::{Course, Shape};
use super::units::{duration, size};
use super::verdict::{Finding, Verdict};

pub fn sentence(process: &Process, finding: &Finding) -> String {
    match finding.verdict {
        Verdict::NotEnoughRounds => {
            let unit = plural(finding.rounds, finding.unit);
            format!("{unit}: 5 are needed for a verdict, 8 settled ones to call it growth.")
        }
        Verdict::WarmingUp => warming_up(finding),
        Verdict::Flat => flat(finding),
        Verdict::Swap => swap(process, finding),
        _ => growing(process, finding),
    }
}

fn plural(n: u64, unit: &str) -> String {
    if n == 1 {
        format!("1 {unit}")
    } else {
        format!("{n} {unit}s")
    }
}

/// `RSS`, or `RSS and swap` where pages were swapped out.
fn what(finding: &Finding) -> &'static str {
    if finding.typical[Size::Swap] > 0.0 {
        "RSS and swap"
    } else {
        "RSS"
    }
}

fn settled(finding: &Finding) -> String {
    let left = finding.rounds.saturating_sub(finding.trend.warm_up as u64);
    let warm_up = match finding.trend.warm_up {
        0 => String::new(),
        n => format!(" ({n} of warm-up left out)"),
    };
    format!("over {}{warm_up}", plural(left, finding.unit))
}

fn flat(finding: &Finding) -> String {
    let (level, over, unit) = (
        size(finding.typical.footprint()),
        settled(finding),
        finding.unit,
    );
    let what = what(finding);
    match finding.trend.shape {
        Shape::Sawtooth { height } => {
            format!(
                "{what} swings by {} around {level} and comes back each time, {over}.",
                size(height)
            )
        }
        Shape::Steps { last_x, .. } if finding.trend.course == Course::Level => {
            format!(
                "{what} stepped up at {unit} {last_x:.0} and is level since, at {level}, {over}."
            )
        }
        _ if finding.trend.course == Course::Falling => {
            let slope = size(-finding.trend.slope.per_x);
            format!("{what} falls, by {slope}/{unit}, and was {level} in the middle, {over}.")
        }
        _ => format!(
            "{what} stays at {level}, give or take {}, {over}; growth above {}/{unit} would show.",
            size(finding.trend.noise),
            size(f64::max(finding.trend.slope.high, 4096.0)),
        ),
    }
}

fn warming_up(finding: &Finding) -> String {
    let (what, unit, over) = (what(finding), finding.unit, settled(finding));
    let slope = size(finding.trend.slope.per_x);
    match finding.trend.shape {
        Shape::Steps { last_x, .. } => format!(
            "{what} stepped up at {unit} {last_x:.0}, too near the end to tell what follows; \
             watch as many {unit}s again."
        ),
        _ if finding.rounds < 12 => {
            format!("{what} rises by {slope}/{unit} {over}: too few to tell a warm-up from growth.")
        }
        _ => format!("{what} still rises, by {slope}/{unit} {over}, but slower and slower."),
    }
}

fn grows_by(finding: &Finding) -> String {
    let slope = &finding.trend.slope;
    let hour = 3600.0 / finding.seconds_per_unit * slope.per_x;
    let per_hour = if hour.is_finite() {
        format!(", {}/h", size(hour))
    } else {
        String::new()
    };
    format!(
        "{} grows by {}/{} (95 %: {} to {}{per_hour}) {}, seen at {}",
        what(finding),
        size(slope.per_x),
        finding.unit,
        size(slope.low),
        size(slope.high),
        settled(finding),
        super::units::printable(&finding.stage),
    )
}

fn growing(process: &Process, finding: &Finding) -> String {
    let (parts, unit) = (&finding.parts, finding.unit);
    let live = size(parts.live);
    match finding.verdict {
        Verdict::LiveGrowth if !finding.trend.is_growing() => format!(
            "live memory grows from {unit} to {unit}, but {} stays near {}: so far it fills pages \
             that the allocator had left.",
            what(finding),
            size(finding.typical.footprint()),
        ),
        Verdict::LiveGrowth if parts.other > parts.live => format!(
            "{}; {}/{unit} of it lies outside of malloc (small Python objects, pinned or mapped \
             buffers): the program holds more each {unit}.",
            grows_by(finding),
            size(parts.other),
        ),
        Verdict::LiveGrowth => format!(
            "{}; live memory by {live}: the program holds more each {unit}.",
            grows_by(finding)
        ),
        Verdict::Retention => format!(
            "{}, live memory by {live}: {} holds {} that nobody uses.",
            grows_by(finding),
            process.alloc.as_deref().unwrap_or("the allocator"),
            size(finding.typical.held_back()),
        ),
        Verdict::FileBacked if parts.shmem > parts.file => format!(
            "{}, shared memory by {}: nothing takes that back while it is in use.",
            grows_by(finding),
            size(parts.shmem),
        ),
        Verdict::FileBacked => format!(
            "{}, pages of files by {}: the kernel takes those back when it needs memory.",
            grows_by(finding),
            size(parts.file),
        ),
        _ => format!(
            "{}; these markers hold RSS only, which cannot tell who holds it.",
            grows_by(finding)
        ),
    }
}

fn swap(process: &Process, finding: &Finding) -> String {
    let limit = if process.limit.is_nan() {
        String::new()
    } else {
        format!(" (limit {})", size(process.limit))
    };
    format!(
        "swap grows by {}/{} {}, RSS is {}, live memory does not grow: the kernel pushes pages \
         out{limit}.",
        size(finding.parts.swap),
        finding.unit,
        settled(finding),
        size(finding.typical[Size::Rss]),
    )
}

pub fn remedy(process: &Process, finding: &Finding) -> Option<String> {
    let remedy = match finding.verdict {
        Verdict::Flat | Verdict::WarmingUp | Verdict::NotEnoughRounds => return None,
        Verdict::LiveGrowth => {
            "look for a list, cache or history that gains an entry each time; tracemalloc or memray \
             name it"
        }
        Verdict::Retention if 2.0 * finding.parts.recycled > finding.parts.held_back => {
            "set FLARENA_DECAY_MS=100, or call flarena.trim() at the end of each round"
        }
        Verdict::Retention if process.alloc.as_deref() == Some("jemalloc") => {
            "set MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0, or call flarena.trim() at the end \
             of each round"
        }
        Verdict::Retention => {
            "set NVFLARE_ENABLE_JEMALLOC_PRELOAD=true, or MALLOC_ARENA_MAX=2 (client) or 4 \
             (server), or call flarena.trim() at the end of each round"
        }
        Verdict::Growth => {
            "run it with `flarena run --profile`: its markers tell live memory from retained"
        }
        Verdict::Swap => "give the job more memory, or fewer neighbours; swapped pages slow it down",
        Verdict::FileBacked if finding.parts.shmem > finding.parts.file => {
            "look into /dev/shm: tensors shared between processes that nobody unlinks"
        }
        Verdict::FileBacked => {
            "nothing to set; if the cgroup's limit is near, map less of the data set or model"
        }
    };
    Some(remedy.to_owned())
}

/// `3.5 h` from the first marker to the last.
pub fn watched(process: &Process) -> Option<String> {
    let points = || {
        process
            .stages
            .iter()
            .flat_map(|(_, series)| series.points())
    };
    let first = points().map(|p| p.t).fold(f64::NAN, f64::min);
    let last = points().map(|p| p.t).fold(f64::NAN, f64::max);
    (last > first).then(|| duration(last - first))
}
