//! The comparison of two runs in one sentence.

use crate::report::analyse::stats::Change;
use crate::report::analyse::{Comparison, Whole};
use crate::report::units::{range, signed_size, time_unit, Amount};

/// `after: peak 31 % lower (1885.0 instead of 2733.0 MB), CPU time 5 % lower (61.0 instead of 64.2 s), no
/// growth in either; site-1 TR changed most: -40 %, ±1 % at stage send`
pub fn comparison(compared: &Comparison) -> String {
    let (before, after) = match &compared.whole {
        [Some(before), Some(after)] => (before, after),
        [None, None] => return "neither run has a marker".to_owned(),
        [None, _] => return "the run before has no marker".to_owned(),
        [_, None] => return "the run after has no marker".to_owned(),
    };
    let sizes = |low, high| range(low, "instead of", high, Amount::Size);
    let all = [
        changed("peak", before.sum.peak, after.sum.peak, sizes),
        changed(
            "CPU time",
            before.sum.cpu_seconds,
            after.sum.cpu_seconds,
            seconds,
        ),
        Some(growth(before, after)),
    ];
    let mut text = format!(
        "after: {}",
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    );
    if before.rounds != after.rounds {
        text += &format!(" ({} rounds before, {} after)", before.rounds, after.rounds);
    }
    if let Some((name, stage, change)) = compared.most_changed() {
        text += &format!("; {name} changed most: {change} at stage {stage}");
    }
    text
}

/// `peak 31 % lower (1885.0 instead of 2733.0 MB)`; `None` if a value is unknown.
fn changed(name: &str, before: f64, after: f64, values: fn(f64, f64) -> String) -> Option<String> {
    let percent = Change::of_values(before, after)?.percent();
    let way = match percent.abs() < 0.5 {
        true => return Some(format!("the same {name}")),
        false if percent < 0.0 => "lower",
        false => "higher",
    };
    let (percent, values) = (percent.abs(), values(after, before));
    Some(format!("{name} {percent:.0} % {way} ({values})"))
}

/// `61.0 instead of 64.2 s`
fn seconds(after: f64, before: f64) -> String {
    let (length, unit) = time_unit(before.max(after));
    format!(
        "{:.1} instead of {:.1} {unit}",
        after / length,
        before / length
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::Sum;
    use crate::report::model::Unit;
    use crate::report::units::MB;

    fn run(peak: f64, growing: &[f64]) -> Option<Whole> {
        let growing = growing
            .iter()
            .map(|mb| ("site-1 TR".to_owned(), mb * MB, Unit::Round));
        Some(Whole {
            sum: Sum {
                peak: peak * MB,
                mean: 0.0,
                cpu_seconds: f64::NAN,
            },
            rounds: 40,
            growing: growing.collect(),
            judged: 1,
            is_undecided: false,
        })
    }

    fn sentence(before: Option<Whole>, after: Option<Whole>) -> String {
        comparison(&Comparison {
            whole: [before, after],
            sites: Vec::new(),
        })
    }

    #[test]
    fn the_sentence_names_peak_and_growth_of_both_runs() {
        assert_eq!(
            sentence(run(2733.0, &[]), run(1885.0, &[])),
            "after: peak 31 % lower (1885.0 instead of 2733.0 MB), no growth in either"
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
            "after: the same peak, no certain growth in either"
        );
        assert_eq!(sentence(run(1.0, &[]), None), "the run after has no marker");
        let busy = |seconds| {
            run(50.0, &[]).map(|mut run| {
                run.sum.cpu_seconds = seconds;
                run
            })
        };
        assert_eq!(
            sentence(busy(64.2), busy(61.0)),
            "after: the same peak, CPU time 5 % lower (61.0 instead of 64.2 s), \
             no growth in either"
        );
    }
}
