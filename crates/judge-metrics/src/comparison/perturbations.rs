//! Changes that should not matter: does a judge of pairs prefer a response after one, beyond what a change of white space does?

use super::biases::{BiasFinding, Of, Words, finding, unparsed_share};
use crate::Error;
use crate::bias::robustness::{attack_success, robustness_rate};
use crate::preference::{Preference, Unparsed};
use crate::resampling::Bootstrap;

/// Verdicts on one pair before and after a response of it was changed, [`First`](Preference::First) being the changed response throughout.
/// Each has one entry per order that was asked, the same orders in the same places; `None` where the text held no verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct PerturbedVerdicts {
    /// On the pair as it is.
    pub before: Vec<Option<Preference>>,
    /// With the change.
    pub after: Vec<Option<Preference>>,
    /// With a change that says nothing, such as white space: the noise floor.
    pub neutral: Vec<Option<Preference>>,
    /// Pairs with the same question are drawn together.
    pub question: String,
}

/// How a change to one of two responses moves a judge's verdicts. Intervals are the bootstrap's, drawn over questions.
///
/// | statistic | what it is |
/// |---|---|
/// | `excess` | win rate of the changed response less its win rate after the neutral change, in [−1, 1]; ties are half wins, and so are texts without a verdict unless these are dropped. Above 0, the change pays |
/// | `gain` | win rate after the change less that before |
/// | `attack_success` | of the verdicts against the response, the share that is for it after the change ([`attack_success`]) |
/// | `attack_success_neutral` | the same after the neutral change |
/// | `robustness` | share of verdicts that stay the same ([`robustness_rate`]; CALM) |
/// | `robustness_neutral` | the same under the neutral change: the ceiling |
/// | `unparsed_share` | share of texts without a verdict; above one half nothing else is reported |
#[derive(Debug, Clone, PartialEq)]
pub struct PerturbationReport {
    /// The pairs to which the change applies.
    pub pairs: Vec<PerturbedVerdicts>,
    /// What becomes of texts without a verdict.
    pub unparsed: Unparsed,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

impl PerturbationReport {
    /// What the change of this name did. Statistics that the pairs do not define are [`Statistic::Undefined`](super::Statistic::Undefined),
    /// all of them where the change applies to none.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for a pair whose orders are not as many before and after.
    pub fn finding(&self, name: &str) -> Result<BiasFinding, Error> {
        for pair in &self.pairs {
            for (argument, found) in [("after", pair.after.len()), ("neutral", pair.neutral.len())] {
                crate::input::check_lengths(argument, found, "before", pair.before.len())?;
            }
        }
        type Column = fn(&PerturbedVerdicts) -> &[Option<Preference>];
        let column = |of: Column| {
            move |rows: &[&PerturbedVerdicts]| -> Vec<Option<Preference>> {
                rows.iter().flat_map(|pair| of(pair).iter().copied()).collect()
            }
        };
        let before = column(|pair| &pair.before);
        let after = column(|pair| &pair.after);
        let neutral = column(|pair| &pair.neutral);
        let difference = |one: Vec<Option<Preference>>, other: Vec<Option<Preference>>| {
            let credit = |verdict: Option<Preference>| verdict.map_or(0.5, Preference::credit);
            let mut gains = Vec::with_capacity(one.len());
            for (index, (one, other)) in one.into_iter().zip(other).enumerate() {
                let settled = self.unparsed.settle([one, other], "verdicts", index)?;
                gains.extend(settled.map(|[one, other]| credit(one) - credit(other)));
            }
            if gains.is_empty() {
                return Err(Error::Undefined { statistic: "gain", reason: "no pair has both verdicts" });
            }
            Ok(gains.iter().sum::<f64>() / gains.len() as f64)
        };
        let success = |before: Vec<_>, after: Vec<_>| attack_success(&before, &after, self.unparsed)?.rate.estimate();
        let same = |before: Vec<_>, after: Vec<_>| robustness_rate(&before, &after, self.unparsed)?.same.estimate();
        let statistics: [(&'static str, &Of<'_, PerturbedVerdicts>); 6] = [
            ("excess", &|rows| difference(after(rows), neutral(rows))),
            ("gain", &|rows| difference(after(rows), before(rows))),
            ("attack_success", &|rows| success(before(rows), after(rows))),
            ("attack_success_neutral", &|rows| success(before(rows), neutral(rows))),
            ("robustness", &|rows| same(before(rows), after(rows))),
            ("robustness_neutral", &|rows| same(before(rows), neutral(rows))),
        ];
        let rows: Vec<&PerturbedVerdicts> = self.pairs.iter().collect();
        let questions = rows.iter().map(|pair| pair.question.as_str()).collect();
        let texts = |pair: &&PerturbedVerdicts| [&pair.before[..], &pair.after, &pair.neutral].concat();
        let unparsed: Vec<f64> = rows.iter().map(|pair| unparsed_share(&texts(pair))).collect();
        let words = Words {
            above: "changed responses",
            below: "unchanged responses",
            gain: ("gain", "points of win rate, beyond what a neutral change does"),
        };
        Ok(finding(
            name,
            words,
            &rows,
            questions,
            &unparsed,
            "the change applies to no response",
            &statistics,
            self.bootstrap,
        ))
    }
}
