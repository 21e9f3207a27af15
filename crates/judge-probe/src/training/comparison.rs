//! What the report says in words. Numbers and intervals are made in `held_out`.
//!
//! The words say what an interval shows and no more: that 0 lies in it is no proof that the probe and the baseline are equally
//! good. Several baselines are compared without a correction for their number.

use std::collections::BTreeMap;

use judge_metrics::comparison::Statistic;
use serde::{Deserialize, Serialize};

use super::Evaluation;

/// What the interval of a difference between the probe and a baseline says.
///
/// The order of the variants is the order of the sentences in [`Evaluation::findings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is above 0.
    /// At that level the probe agrees better with people than the baseline.
    Better,
    /// It is below 0.
    /// The baseline agrees better.
    Worse,
    /// It holds 0.
    /// An end that is exactly 0 counts as holding it. More rows may decide it.
    Undecided,
    /// These rows do not define the difference.
    /// For example a correlation where a predictor says the same of every row.
    Undefined,
}

impl Outcome {
    /// Of a difference, probe minus baseline.
    ///
    /// The level is that of the interval; see [`ProbeTraining::bootstrap`](super::ProbeTraining::bootstrap).
    ///
    /// ```
    /// use judge_metrics::Interval;
    /// use judge_metrics::comparison::{Reported, Statistic};
    /// use judge_probe::training::Outcome;
    ///
    /// let gain = |low: f64, high: f64| {
    ///     let interval = Some(Interval { low, high, level: 0.95 });
    ///     Statistic::Defined(Reported { interval, ..Reported::alone((low + high) / 2.0, "bootstrap".into()) })
    /// };
    /// assert_eq!(Outcome::of(&gain(0.02, 0.3)), Outcome::Better);
    /// assert_eq!(Outcome::of(&gain(-0.1, 0.3)), Outcome::Undecided);
    /// ```
    pub fn of(difference: &Statistic) -> Self {
        match (difference, difference.interval()) {
            (Statistic::Undefined { .. }, _) => Self::Undefined,
            (_, Some(interval)) if interval.low > 0.0 => Self::Better,
            (_, Some(interval)) if interval.high < 0.0 => Self::Worse,
            _ => Self::Undecided,
        }
    }
}

impl Evaluation {
    /// In words whether the probe beats each baseline by weighted F1, one sentence for each outcome that occurs. `called` says what a
    /// baseline, given by its name in [`gain_over`](Self::gain_over), is called.
    ///
    /// The best outcome comes first; within a sentence baselines are in the order of their names in
    /// [`gain_over`](Self::gain_over). Without baselines there are no sentences. Spearman's correlation has no part in it: the
    /// majority has none, and a finding must be about the same statistic for all.
    pub fn findings(&self, called: impl Fn(&str) -> String) -> Vec<String> {
        // Sorted by outcome, since `Outcome` is ordered.
        let mut by_outcome: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
        for (name, gain) in &self.gain_over {
            by_outcome.entry(Outcome::of(&gain.weighted_f1)).or_default().push(called(name));
        }
        let n = self.n;
        let sentence = |(outcome, names): (Outcome, Vec<String>)| {
            let names = listed(&names);
            match outcome {
                Outcome::Better => format!("the probe beats {names}"),
                Outcome::Worse => format!("the probe does not beat {names}: it is worse"),
                Outcome::Undecided => {
                    format!("the probe does not beat {names}: no difference that these {n} rows can show")
                }
                Outcome::Undefined => format!("these {n} rows do not define a difference from {names}"),
            }
        };
        by_outcome.into_iter().map(sentence).collect()
    }
}

/// `a`, `a and b`, `a, b and c`.
/// Without a comma before `and`; empty of no names.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use judge_metrics::Interval;
    use judge_metrics::comparison::Reported;

    use super::*;
    use crate::training::Gain;

    #[test]
    fn findings_say_what_the_intervals_say() {
        let gain = |low, high| {
            let interval = Some(Interval { low, high, level: 0.95 });
            let known = Reported { interval, ..Reported::alone((low + high) / 2.0, String::new()) };
            let difference = Statistic::Defined(known);
            Gain {
                weighted_f1: difference.clone(),
                spearman: difference,
                brier_score: None,
                area_under_risk_coverage: None,
            }
        };
        let undefined = || Statistic::Undefined { reason: "constant".into() };
        let gains = [
            ("majority", gain(0.1, 0.3)),
            ("surface", gain(0.01, 0.3)),
            ("tfidf", gain(-0.1, 0.2)),
            ("prompted", gain(-0.3, -0.1)),
            (
                "other",
                Gain {
                    weighted_f1: undefined(),
                    spearman: undefined(),
                    brier_score: None,
                    area_under_risk_coverage: None,
                },
            ),
        ];
        let gain_over = gains.into_iter().map(|(name, gain)| (name.to_owned(), gain)).collect();
        let evaluation = Evaluation { n: 40, predictors: BTreeMap::new(), gain_over };
        assert_eq!(
            evaluation.findings(str::to_owned),
            [
                "the probe beats majority and surface",
                "the probe does not beat prompted: it is worse",
                "the probe does not beat tfidf: no difference that these 40 rows can show",
                "these 40 rows do not define a difference from other",
            ]
        );
        // An interval that ends at 0 holds it.
        assert_eq!(Outcome::of(&gain(0.0, 0.2).spearman), Outcome::Undecided);
        assert_eq!(listed(&["a", "b", "c"].map(str::to_owned)), "a, b and c");
    }
}
