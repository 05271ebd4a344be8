//! The comparison of two runs in one sentence.

use crate::report::analyse::{Comparison, Whole};
use crate::report::units::{signed_size, time_unit, GB, MB};

/// `after: peak 31 % lower (1,885 instead of 2,733 MB), CPU time 5 % lower (61.0 instead of 64.2 s), no
/// growth in either`
pub fn comparison(compared: &Comparison) -> String {
    let pair = &compared.whole;
    let (before, after) = match (&pair.before, &pair.after) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return "neither run has a marker".to_owned(),
        (None, _) => return "the run before has no marker".to_owned(),
        (_, None) => return "the run after has no marker".to_owned(),
    };
    let mut text = format!(
        "after: {}{}, {}",
        peak(before.peak, after.peak),
        cpu(before.cpu_seconds, after.cpu_seconds),
        growth(before, after)
    );
    if before.rounds != after.rounds {
        text += &format!(" ({} rounds before, {} after)", before.rounds, after.rounds);
    }
    text
}

fn peak(before: f64, after: f64) -> String {
    let (old, new, unit) = in_one_unit(before, after);
    changed("peak", percent(before, after), &old, &new, unit)
}

/// Empty if it is unknown.
fn cpu(before: f64, after: f64) -> String {
    if before.is_nan() || after.is_nan() || before <= 0.0 {
        return String::new();
    }
    let (length, unit) = time_unit(before.max(after));
    let decimals = if before.max(after) / length < 10.0 {
        2
    } else {
        1
    };
    let text = |seconds: f64| grouped(&format!("{:.decimals$}", seconds / length));
    let (old, new) = (text(before), text(after));
    let changed = changed("CPU time", percent(before, after), &old, &new, unit);
    format!(", {changed}")
}

fn changed(name: &str, share: f64, old: &str, new: &str, unit: &str) -> String {
    if share.abs() < 0.5 {
        return format!("the same {name} ({new} {unit})");
    }
    let way = if share < 0.0 { "lower" } else { "higher" };
    let share = share.abs();
    format!("{name} {share:.0} % {way} ({new} instead of {old} {unit})")
}

/// The change in per cent of the value before.
pub fn percent(before: f64, after: f64) -> f64 {
    100.0 * (after - before) / before
}

fn growth(before: &Whole, after: &Whole) -> String {
    let named = |run: &Whole| {
        let most = run.growing.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (name, per_x, unit) = most?;
        let others = match run.growing.len() - 1 {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        Some(format!("{name} by {}/{unit}{others}", signed_size(*per_x)))
    };
    match (named(before), named(after)) {
        _ if before.judged == 0 || after.judged == 0 => {
            "not enough rounds to judge growth".to_owned()
        }
        (None, None) if before.is_undecided || after.is_undecided => {
            "no certain growth in either".to_owned()
        }
        (None, None) => "no growth in either".to_owned(),
        (Some(old), None) => format!("no growth any more (before: {old})"),
        (None, Some(new)) => format!("growth only after: {new}"),
        (Some(old), Some(new)) => format!("growth in both (before: {old}; after: {new})"),
    }
}

/// Both sizes as text in the unit that fits the larger one: `2,733`, `1,885`, `MB`.
fn in_one_unit(a: f64, b: f64) -> (String, String, &'static str) {
    let (unit, name, decimals) = match a.max(b) {
        largest if largest >= 100.0 * GB => (GB, "GB", 0),
        largest if largest >= 10.0 * GB => (GB, "GB", 1),
        largest if largest >= 100.0 * MB => (MB, "MB", 0),
        _ => (MB, "MB", 1),
    };
    let text = |bytes: f64| grouped(&format!("{:.decimals$}", bytes / unit));
    (text(a), text(b), name)
}

/// `2,733.5` for `2733.5`
fn grouped(number: &str) -> String {
    let whole = number.split('.').next().unwrap_or(number).len();
    let mut out = String::new();
    for (i, c) in number.chars().enumerate() {
        if i > 0 && i < whole && (whole - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::Pair;
    use crate::report::model::Unit;

    fn run(peak: f64, growing: &[f64]) -> Option<Whole> {
        let growing = growing
            .iter()
            .map(|mb| ("site-1 TR".to_owned(), mb * MB, Unit::Round));
        Some(Whole {
            peak: peak * MB,
            mean: 0.0,
            cpu_seconds: f64::NAN,
            rounds: 40,
            growing: growing.collect(),
            judged: 1,
            is_undecided: false,
        })
    }

    fn sentence(before: Option<Whole>, after: Option<Whole>) -> String {
        let whole = Pair { before, after };
        comparison(&Comparison {
            whole,
            sites: Vec::new(),
        })
    }

    #[test]
    fn the_sentence_names_peak_and_growth_of_both_runs() {
        assert_eq!(
            sentence(run(2733.0, &[]), run(1885.0, &[])),
            "after: peak 31 % lower (1,885 instead of 2,733 MB), no growth in either"
        );
        assert_eq!(
            sentence(run(50.0, &[]), run(75.0, &[2.0, 3.0])),
            "after: peak 50 % higher (75.0 instead of 50.0 MB), \
             growth only after: site-1 TR by +3.00 MB/round and 1 more"
        );
        let undecided = run(50.0, &[]).map(|run| Whole {
            is_undecided: true,
            ..run
        });
        assert_eq!(
            sentence(run(50.0, &[]), undecided),
            "after: the same peak (50.0 MB), no certain growth in either"
        );
        assert_eq!(sentence(run(1.0, &[]), None), "the run after has no marker");
        let busy = |seconds| {
            run(50.0, &[]).map(|run| Whole {
                cpu_seconds: seconds,
                ..run
            })
        };
        assert_eq!(
            sentence(busy(64.2), busy(61.0)),
            "after: the same peak (50.0 MB), CPU time 5 % lower (61.0 instead of 64.2 s), \
             no growth in either"
        );
    }
}
