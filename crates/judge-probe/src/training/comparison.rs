//! What the report says in words. Numbers and intervals are made in `held_out`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Evaluation, Statistic};

/// What the interval of a difference between the probe and a baseline says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is above 0.
    Better,
    /// It is below 0.
    Worse,
    /// It holds 0.
    Undecided,
    /// These rows do not define the difference.
    Undefined,
}

impl Outcome {
    /// Of a difference, probe minus baseline.
    pub fn of(difference: &Statistic) -> Self {
        match *difference {
            Statistic::Undefined { .. } => Self::Undefined,
            Statistic::Defined { low, .. } if low > 0.0 => Self::Better,
            Statistic::Defined { high, .. } if high < 0.0 => Self::Worse,
            Statistic::Defined { .. } => Self::Undecided,
        }
    }
}

impl Evaluation {
    /// In words whether the probe beats each baseline by weighted F1, one sentence for each outcome that occurs. `called` says what a baseline,
    /// given by its name in [`gain_over`](Self::gain_over), is called.
    pub fn findings(&self, called: impl Fn(&str) -> String) -> Vec<String> {
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
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::Gain;

    #[test]
    fn findings_say_what_the_intervals_say() {
        let gain = |low, high| {
            let difference = Statistic::Defined { estimate: (low + high) / 2.0, low, high };
            Gain { weighted_f1: difference.clone(), spearman: difference }
        };
        let undefined = || Statistic::Undefined { undefined: "constant".into() };
        let gains = [
            ("majority", gain(0.1, 0.3)),
            ("surface", gain(0.01, 0.3)),
            ("tfidf", gain(-0.1, 0.2)),
            ("prompted", gain(-0.3, -0.1)),
            ("other", Gain { weighted_f1: undefined(), spearman: undefined() }),
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
