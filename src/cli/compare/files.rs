//! The comparison as JSON. Pure.

use serde_json::{json, Map, Value};

use super::model::{Comparison, Outcome, METRICS};

pub fn json(comparison: &Comparison) -> Value {
    let outcomes = comparison.outcomes.iter();
    let variants: Vec<Value> = outcomes
        .map(|outcome| variant(comparison, outcome))
        .collect();
    json!({
        "version": flarena_shared::VERSION,
        "command": comparison.command,
        "cpus": comparison.cpus,
        "variants": variants,
    })
}

fn variant(comparison: &Comparison, outcome: &Outcome) -> Value {
    let runs = outcome.runs.iter().map(|run| {
        let figures = METRICS
            .each_ref()
            .map(|metric| (metric.key.to_owned(), (metric.of)(run).into()));
        let mut figures: Map<String, Value> = figures.into_iter().collect();
        figures.insert("foreign_cpu_share".to_owned(), run.load_of_others.into());
        figures.insert("pss".to_owned(), json!(run.series.points()));
        Value::Object(figures)
    });
    let runs: Vec<Value> = runs.collect();
    let figures = METRICS.each_ref().map(|metric| {
        let change = outcome.change_from(comparison.plain(), metric);
        let figure = json!({"spread": outcome.spread(metric), "against_plain": change});
        (metric.key.to_owned(), figure)
    });
    let failure = outcome.failure.as_ref();
    json!({
        "name": outcome.name,
        "library": outcome.library,
        "failure": failure.map(|failure| json!({"status": failure.status, "log": failure.log})),
        "figures": Map::from_iter(figures),
        "runs": runs,
    })
}

#[cfg(test)]
mod tests {
    use super::super::model::fixtures::{comparison, outcome};
    use super::super::model::PLAIN;
    use super::*;

    #[test]
    fn the_json_has_figures_ratios_and_samples_of_each_variant() {
        let all = comparison(vec![
            outcome(PLAIN, &[100.0, 102.0]),
            outcome("flarena glibc", &[50.0, 51.0]),
        ]);
        let json = json(&all);
        let flarena = &json["variants"][1];
        assert_eq!(flarena["runs"][0]["peak_pss_bytes"], 50.0 * 1_048_576.0);
        assert_eq!(
            flarena["figures"]["peak_pss_bytes"]["against_plain"]["verdict"],
            "less"
        );
        assert_eq!(flarena["runs"][0]["pss"].as_array().unwrap().len(), 21);
    }
}
