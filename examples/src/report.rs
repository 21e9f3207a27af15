//! How well scores agree with people, as numbers for machines and rows for people.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_core::{LayerTable, LayerWeights, Scale, States, Variant};
use judge_metrics::Error;
use judge_metrics::correlation::{pearson, spearman};
use judge_metrics::resampling::{Bootstrap, BootstrapInterval, BootstrapMethod};
use serde::Serialize;

/// A statistic with its percentile bootstrap interval, or why the data do not define it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Statistic {
    /// It is defined.
    Defined {
        /// On the rows as they are.
        estimate: f64,
        /// Lower end of the 95 % interval.
        low: f64,
        /// Upper end of the 95 % interval.
        high: f64,
    },
    /// It is not, e.g. because all scores are equal.
    Undefined {
        /// Why.
        undefined: String,
    },
}

/// Enough for two digits of an interval's ends, and done in a moment.
pub const BOOTSTRAP: Bootstrap =
    Bootstrap { resamples: 1_000, level: 0.95, seed: 0, method: BootstrapMethod::Percentile };

impl Statistic {
    /// What a bootstrap found.
    ///
    /// # Errors
    /// Those that do not mean that the data leave it undefined.
    pub fn of(found: Result<BootstrapInterval, Error>) -> Result<Self, Error> {
        match found {
            Ok(found) => {
                Ok(Self::Defined { estimate: found.estimate, low: found.interval.low, high: found.interval.high })
            }
            Err(error) if error.is_undefined() || matches!(error, Error::TooFewItems { .. }) => {
                Ok(Self::Undefined { undefined: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }

    /// For a table: the estimate and its interval, or a dash.
    #[must_use]
    pub fn cell(&self) -> String {
        match self {
            Self::Defined { estimate, low, high } => format!("{estimate:.3} [{low:.3}, {high:.3}]"),
            Self::Undefined { .. } => "undefined".to_owned(),
        }
    }

    /// The estimate, where there is one.
    #[must_use]
    pub fn estimate(&self) -> Option<f64> {
        match self {
            Self::Defined { estimate, .. } => Some(*estimate),
            Self::Undefined { .. } => None,
        }
    }
}

/// Agreement of scores with people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Spearman's rank correlation.
    pub spearman: Statistic,
    /// Pearson's correlation.
    pub pearson: Statistic,
}

/// Agreement of `scores` with `human`, with 95 % percentile bootstrap intervals of 1,000 resamples of rows.
///
/// # Errors
/// If the two are not of one length or hold NaN; what the data do not define is [`Statistic::Undefined`].
pub fn agreement(scores: &[f64], human: &[f64]) -> Result<Agreement> {
    let bootstrap = BOOTSTRAP;
    let statistic = |of: fn(&[f64], &[f64]) -> Result<f64, Error>| Statistic::of(bootstrap.paired(scores, human, of));
    Ok(Agreement {
        spearman: statistic(|x, y| Ok(spearman(x, y)?.estimate))?,
        pearson: statistic(|x, y| Ok(pearson(x, y)?.estimate))?,
    })
}

/// Spearman of `scores` with `human` less that of `others`, all three drawn together; interval as for [`agreement`].
///
/// # Errors
/// If the three are not of one length or hold NaN.
pub fn difference(scores: &[f64], others: &[f64], human: &[f64]) -> Result<Statistic> {
    anyhow::ensure!(
        scores.len() == human.len() && others.len() == human.len(),
        "{}, {} and {} scores to compare",
        scores.len(),
        others.len(),
        human.len()
    );
    let found = BOOTSTRAP.interval(human.len(), |rows| {
        let take = |column: &[f64]| -> Vec<f64> { rows.iter().map(|&row| column[row]).collect() };
        let human = take(human);
        Ok(spearman(&take(scores), &human)?.estimate - spearman(&take(others), &human)?.estimate)
    });
    Ok(Statistic::of(found)?)
}

/// The scores that one variant gives to tables.
///
/// # Errors
/// If a table does not fit the scale or the weights.
pub fn variant_scores<'t>(
    variant: Variant,
    tables: impl IntoIterator<Item = &'t LayerTable>,
    scale: &Scale,
    states: States,
    weights: Option<&LayerWeights>,
) -> Result<Vec<f64>> {
    let score = |table| Ok(variant.score(table, scale, states, weights.map(LayerWeights::weights))?.score);
    tables.into_iter().map(score).collect()
}

/// Rows of a table for people: a name, Spearman, Pearson.
#[must_use]
pub fn rows<'a>(title: &str, entries: impl IntoIterator<Item = (&'a str, &'a Agreement)>) -> Vec<Vec<String>> {
    let head = vec![title.to_owned(), "Spearman [95 %]".to_owned(), "Pearson [95 %]".to_owned()];
    let row = |(name, agreement): (&str, &Agreement)| {
        vec![name.to_owned(), agreement.spearman.cell(), agreement.pearson.cell()]
    };
    std::iter::once(head).chain(entries.into_iter().map(row)).collect()
}

/// Counts of unscored items by reason, for people; empty if there are none.
#[must_use]
pub fn unscored(reasons: &BTreeMap<String, usize>) -> String {
    reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_scores_are_undefined_and_say_why() {
        let found = agreement(&[3.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(
            matches!(&found.spearman, Statistic::Undefined { undefined } if undefined.contains("constant") || undefined.contains('3'))
        );
        let json = serde_json::to_value(&found).unwrap();
        assert!(json["pearson"]["undefined"].is_string());
        assert!(agreement(&[1.0, f64::NAN], &[1.0, 2.0]).is_err());
    }

    #[test]
    fn agreement_has_the_contracts_fields() {
        let found = agreement(&[1.0, 2.0, 3.0, 5.0], &[1.0, 2.0, 4.0, 5.0]).unwrap();
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["spearman"]["estimate"], 1.0);
        assert!(json["pearson"]["low"].as_f64().unwrap() <= json["pearson"]["high"].as_f64().unwrap());
    }
}
