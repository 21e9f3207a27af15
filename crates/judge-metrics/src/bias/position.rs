//! Position bias: does the answer that is shown first win for that reason?
//!
//! With both presentation orders at hand, a pair whose two verdicts differ shows the effect by itself, whatever the
//! answers are worth; [`order_effect`] counts such flips and their direction. With one order alone there is only
//! [`first_shown`], which means something where the order was drawn at random.

use crate::agreement::{McNemar, McNemarTest, mcnemar};
use crate::distribution::binomial_two_sided;
use crate::input::check_count;
use crate::preference::{Preference, TwoOrder, Unparsed};
use crate::{Error, Proportion};

/// How a judge's verdicts change when the two answers are exchanged: position bias.
///
/// Score a verdict +1 if the answer shown first wins, −1 if the one shown second does, 0 for a tie. The two orders of a
/// pair add up to 0 where they agree about the answers, to more in a flip towards the first place (primacy), to less in
/// a flip towards the second (recency). A verdict for the first place in one order and a tie in the other is therefore
/// a primacy flip.
///
/// `n = consistent + primacy + recency + undirected`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OrderEffect {
    /// Pairs counted.
    pub n: usize,
    /// Pairs on which the orders agree.
    pub consistent: usize,
    /// Pairs that flip towards the answer shown first.
    pub primacy: usize,
    /// Pairs that flip towards the answer shown second.
    pub recency: usize,
    /// Of the primacy flips, those in which the answer shown first wins both times (MT-bench's "biased toward first").
    pub always_first: usize,
    /// Of the recency flips, those in which the answer shown second wins both times.
    pub always_second: usize,
    /// Pairs that disagree because a verdict is unparsed, under [`Unparsed::Wrong`] or [`Unparsed::OwnLabel`] alone.
    pub undirected: usize,
    /// Pairs with an unparsed verdict, whatever became of them.
    pub unparsed: usize,
}

impl OrderEffect {
    /// Position consistency (Shi et al., 2024), consistency (Auto-J, JudgeLM, MT-bench): the share of pairs on which
    /// the orders agree.
    pub fn consistency(&self) -> Proportion {
        self.of(self.consistent)
    }

    /// JudgeLM's "bias toward the 1st": the share of pairs that flip towards the answer shown first.
    pub fn prefer_before(&self) -> Proportion {
        self.of(self.primacy)
    }

    /// JudgeLM's "bias toward the 2nd".
    pub fn prefer_after(&self) -> Proportion {
        self.of(self.recency)
    }

    /// Preference fairness (Shi et al., 2024, section 3): in [−1, 1], 0 is fair, −1 always primacy, +1 always recency.
    ///
    /// The paper weighs each count of flips with its share of the flips, `recency · recency/flips − primacy ·
    /// primacy/flips`, and divides by the largest value that n pairs allow, which is n. The first step is the same as
    /// `recency − primacy`, so this is (recency − primacy) / n. The authors' program counts pairs with an unparsed
    /// verdict in n but not in the consistency: take [`Unparsed::Wrong`] for its fairness and [`Unparsed::Dropped`] for
    /// its consistency.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if no pair was counted.
    pub fn preference_fairness(&self) -> Result<f64, Error> {
        Ok(self.prefer_after().estimate()? - self.prefer_before().estimate()?)
    }

    /// McNemar's test that flips towards either place are equally likely, on the pairs decided both times:
    /// `always_first` against `always_second`. Pass `primacy` and `recency` to [`mcnemar`] to have flips from and to a
    /// tie take part.
    ///
    /// # Errors
    ///
    /// Those of [`mcnemar`].
    pub fn mcnemar(&self, test: McNemarTest) -> Result<McNemar, Error> {
        mcnemar(self.always_first, self.always_second, test)
    }

    fn of(&self, count: usize) -> Proportion {
        Proportion { count, n: self.n }
    }
}

/// Counts how verdicts change when the two answers are exchanged.
///
/// An unparsed verdict has no direction: it is a tie under [`Unparsed::Tie`], leaves its pair out under
/// [`Unparsed::Dropped`], and makes it `undirected` under the rest, but for two unparsed verdicts under
/// [`Unparsed::OwnLabel`], which agree.
///
/// # Errors
///
/// [`Error::TooFewItems`] for no pair, [`Error::Unparsed`] under [`Unparsed::Refused`].
///
/// ```
/// use judge_metrics::agreement::McNemarTest;
/// use judge_metrics::bias::position::order_effect;
/// use judge_metrics::preference::{Preference::*, TwoOrder, Unparsed};
///
/// // A judge that likes the first place: of ten pairs it contradicts itself on seven, six times in favour of it.
/// let shown = [[First, First]; 6].into_iter().chain([[Second, Second]]).chain([[First, Second]; 3]);
/// let verdicts: Vec<_> = shown.map(|shown| TwoOrder::from_shown(shown.map(Some))).collect();
/// let effect = order_effect(&verdicts, Unparsed::Refused)?;
/// assert_eq!(effect.consistency().estimate()?, 0.3);
/// assert_eq!(effect.preference_fairness()?, -0.5);
/// assert!((effect.mcnemar(McNemarTest::Exact)?.p_value - 0.125).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn order_effect(verdicts: &[TwoOrder], unparsed: Unparsed) -> Result<OrderEffect, Error> {
    check_count(1, verdicts.len())?;
    let mut effect = OrderEffect::default();
    for (index, &pair) in verdicts.iter().enumerate() {
        effect.unparsed += usize::from(!pair.is_parsed());
        let Some(pair) = pair.settled(unparsed, index)? else { continue };
        effect.n += 1;
        match pair.shown().map(|verdict| verdict.map(place)) {
            [Some(original), Some(exchanged)] => match original + exchanged {
                0 => effect.consistent += 1,
                sum @ 1.. => {
                    effect.primacy += 1;
                    effect.always_first += usize::from(sum == 2);
                }
                sum => {
                    effect.recency += 1;
                    effect.always_second += usize::from(sum == -2);
                }
            },
            [None, None] if unparsed == Unparsed::OwnLabel => effect.consistent += 1,
            _ => effect.undirected += 1,
        }
    }
    Ok(effect)
}

/// +1 for the answer shown first, −1 for the one shown second.
fn place(shown: Preference) -> i32 {
    match shown {
        Preference::First => 1,
        Preference::Second => -1,
        Preference::Tie => 0,
    }
}

/// How often the answer that was shown first wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FirstShown {
    /// Verdicts for the answer shown first.
    pub first: usize,
    /// Verdicts for the answer shown second.
    pub second: usize,
    /// Ties.
    pub ties: usize,
    /// Verdicts that could not be parsed; they take part in no rate.
    pub unparsed: usize,
}

impl FirstShown {
    /// The share of decisive verdicts that favour the answer shown first;
    /// [`clopper_pearson`](Proportion::clopper_pearson) is the interval that goes with [`p_value`](Self::p_value).
    pub fn rate(&self) -> Proportion {
        Proportion { count: self.first, n: self.first + self.second }
    }

    /// Two-sided exact binomial p-value of a rate of ½ (`scipy.stats.binomtest`), in (0, 1].
    ///
    /// It takes the verdicts as independent draws whose order was random. The two orders of one pair are not
    /// independent: a judge who looks at the answers alone favours the first place exactly once in each decided pair,
    /// so that on both orders together this test hardly ever rejects. [`OrderEffect::mcnemar`] is the test for them.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if no verdict is decisive.
    pub fn p_value(&self) -> Result<f64, Error> {
        let decisive = self.first + self.second;
        if decisive == 0 {
            return Err(Error::Undefined { statistic: "binomial test", reason: "no verdict is decisive" });
        }
        Ok(binomial_two_sided(self.first as u64, decisive as u64, 0.5))
    }
}

/// Counts verdicts by place: `shown[i]` is about places on the page, `First` being the answer shown first, *not* mapped
/// back to the items. [`TwoOrder::shown`] has both orders of a pair so.
///
/// # Errors
///
/// [`Error::TooFewItems`] for no verdict.
pub fn first_shown(shown: &[Option<Preference>]) -> Result<FirstShown, Error> {
    check_count(1, shown.len())?;
    let mut counts = FirstShown::default();
    for verdict in shown {
        *match verdict {
            Some(Preference::First) => &mut counts.first,
            Some(Preference::Second) => &mut counts.second,
            Some(Preference::Tie) => &mut counts.ties,
            None => &mut counts.unparsed,
        } += 1;
    }
    Ok(counts)
}
