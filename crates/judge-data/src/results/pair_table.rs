//! The logits of a pair's verdicts at each layer, as rows of pairs have them.

use judge_core::{Layer, Outcome, Scale, lager::LayerTable};
use serde::{Deserialize, Serialize};

use crate::rows::ids::mean_of_places;
use crate::rows::pair_verdict::{preference, preferred};
use crate::{Error, Row};

/// The logits of each verdict at each layer, in one order of a pair:
/// `{"layers", "logits": {"A", "B", "tie"?}}`, in the letters of the pair as it is given.
///
/// Layer weights are fitted on it with the preferences of people: see [`ScoreTable`](crate::ScoreTable).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairTable {
    /// The layers, ascending.
    pub layers: Vec<Layer>,
    /// The logits.
    pub logits: PairLogits,
}

/// One logit for each layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairLogits {
    /// The first response is better.
    #[serde(rename = "A")]
    pub first: Vec<f32>,
    /// The second is better.
    #[serde(rename = "B")]
    pub second: Vec<f32>,
    /// Neither is; `None` where a judge cannot say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<Vec<f32>>,
}

impl PairTable {
    /// What one outcome has of the labels of `scale`, whose values are preferences for the response that was shown first; of the exchanged
    /// order, verdicts are turned round. `None` for an outcome without a reading, or without one position at which as many labels were
    /// read.
    pub(crate) fn of(outcome: &Outcome, scale: &Scale, exchanged: bool) -> Option<Self> {
        let [labels] = &outcome.reading().ok()?.labels[..] else { return None };
        let [step] = &labels.steps[..] else { return None };
        if labels.tokens.len() != scale.values().count() {
            return None;
        }
        let column = |preference: f64| {
            let column = scale.values().position(|value| value == preference)?;
            labels.layers.iter().map(|layer| labels.row(step, *layer).map(|row| row[column])).collect()
        };
        let [shown_first, shown_second] = [column(1.0)?, column(0.0)?];
        let (first, second) = if exchanged { (shown_second, shown_first) } else { (shown_first, shown_second) };
        Some(Self { layers: labels.layers.clone(), logits: PairLogits { first, second, tie: column(0.5) } })
    }

    /// The labels' values as texts, and the logits with a column for each.
    pub(crate) fn table(&self, row: &Row) -> Result<(Vec<String>, LayerTable), Error> {
        let PairLogits { first, second, tie } = &self.logits;
        let columns = [("0", Some(second)), ("0.5", tie.as_ref()), ("1", Some(first))];
        let columns: Vec<(&str, &Vec<f32>)> = columns.into_iter().filter_map(|(name, c)| Some((name, c?))).collect();
        for (_, column) in &columns {
            if column.len() != self.layers.len() {
                let (place, what) = (row.place().clone(), "logits of a verdict".to_owned());
                return Err(Error::Ragged { place, what, expected: self.layers.len(), found: column.len() });
            }
        }
        let logits = (0..self.layers.len()).flat_map(|layer| columns.iter().map(move |(_, c)| f64::from(c[layer])));
        let table = LayerTable::new(self.layers.clone(), columns.len(), logits.collect());
        let table = table.map_err(|source| Error::Table { place: row.place().clone(), source: Box::new(source) })?;
        Ok((columns.into_iter().map(|(name, _)| name.to_owned()).collect(), table))
    }
}

/// A row of pairs, as far as layer weights need it.
pub(crate) struct GradedTable {
    /// The mean preference of the raters.
    pub(crate) human: Option<f64>,
    /// What a person gave that is no preference, in words.
    pub(crate) no_grade: Option<String>,
    /// The labels.
    pub(crate) labels: Vec<String>,
    /// Their logits, averaged over the orders.
    pub(crate) table: LayerTable,
}

impl GradedTable {
    pub(crate) fn from_row(row: &Row) -> Result<Self, Error> {
        const EXPECTED: &str = "a list of objects with \"order\", \"layers\" and \"logits\" of A and B, as a judge that reads all layers leaves them";
        let orders: Vec<PairTable> = row.required("orders", EXPECTED)?;
        let tables = orders.iter().map(|order| order.table(row)).collect::<Result<Vec<_>, Error>>()?;
        let Some((labels, first)) = tables.first() else {
            return Err(row.wrong("orders", "one for each order, of a pair that is not \"unscored\""));
        };
        if tables.iter().any(|(others, table)| others != labels || table.layers() != first.layers()) {
            return Err(row.wrong("orders", "the same layers and labels in each"));
        }
        let mean = |at: usize| tables.iter().map(|(_, table)| table.logits()[at]).sum::<f64>() / tables.len() as f64;
        let logits = (0..first.logits().len()).map(mean).collect();
        let table = LayerTable::new(first.layers().to_vec(), first.n_scores(), logits);
        let table = table.map_err(|source| Error::Table { place: row.place().clone(), source: Box::new(source) })?;
        let (raters, no_grade) = preferred(row);
        let raters: Vec<Option<f64>> = raters.into_iter().map(|choice| choice.map(preference)).collect();
        Ok(Self { human: mean_of_places(&raters), no_grade, labels: labels.clone(), table })
    }
}
