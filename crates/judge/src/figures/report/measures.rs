//! What rows of `judge rag` measure, over all of them.

use std::collections::BTreeMap;

use judge_cli::report::{SHARE, mean_of_clusters};
use judge_core::rag::RagMeasure;
use judge_data::Row;
use judge_metrics::comparison::Statistic;
use serde::{Deserialize, Serialize};

/// What is kept of each measure: its value in each row that has it, and the question of the row.
#[derive(Default)]
pub struct Measures(BTreeMap<RagMeasure, Vec<(f64, String)>>);

/// A measure over all rows that have it.
#[derive(Serialize)]
pub struct Measured {
    pub n: usize,
    /// Its mean; rows of one question, where rows have it, are no independent draws.
    pub mean: Statistic,
}

/// A measure as a row has it. What other programs call so may be anything.
#[derive(Deserialize)]
struct Written {
    mean: f64,
}

impl Measures {
    /// Looks at a row; its value of a measure.
    pub fn see(&mut self, id: &str, row: &Row) -> BTreeMap<RagMeasure, f64> {
        let value = |measure: RagMeasure| {
            let written: Written = serde_json::from_str(row.value(measure.as_str())?).ok()?;
            Some((measure, written.mean))
        };
        let found: BTreeMap<RagMeasure, f64> = RagMeasure::ALL.into_iter().filter_map(value).collect();
        for (&measure, &mean) in &found {
            let question = row.value("question").map_or_else(|| format!("\0{id}"), str::to_owned);
            self.0.entry(measure).or_default().push((mean, question));
        }
        found
    }

    /// Each measure that a row has.
    pub fn found(self) -> BTreeMap<RagMeasure, Measured> {
        let measured = |values: Vec<(f64, String)>| {
            let (values, questions): (Vec<f64>, Vec<String>) = values.into_iter().unzip();
            // What another program calls so may be on another scale.
            let is_share = values.iter().all(|value| (SHARE[0]..=SHARE[1]).contains(value));
            let range = if is_share { SHARE } else { [f64::NEG_INFINITY, f64::INFINITY] };
            Measured { n: values.len(), mean: mean_of_clusters(&values, &questions, range, "no row has it") }
        };
        self.0.into_iter().map(|(measure, values)| (measure, measured(values))).collect()
    }
}
