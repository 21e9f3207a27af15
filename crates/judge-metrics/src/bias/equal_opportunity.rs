use crate::distribution::normal_tail;
use crate::estimate::{Missing, Spread};
use crate::{Error, Estimate, NullDistribution, Proportion};

/// How often a judge picks the answer that people prefer, where that is of the kind it may favour and where it is of the other: its own and
/// another's, the longer and the shorter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EqualOpportunity {
    /// Answers of the favoured kind picked, of the pairs in which people prefer them.
    pub favoured: Proportion,
    /// The others picked, of the pairs in which people prefer those.
    pub other: Proportion,
    /// Pairs with an unparsed verdict, whatever became of them.
    pub unparsed: usize,
}

impl EqualOpportunity {
    /// The bias, favoured − other, in [−1, 1]: 0 is fair.
    ///
    /// The interval is Newcombe's of the difference of two independent proportions (1998, method 10;
    /// `statsmodels.stats.proportion.confint_proportions_2indep(method="newcomb")`), the p-value that of the pooled two-proportion z test
    /// (`statsmodels.stats.proportion.proportions_ztest`), an approximation for large counts; there is none where all verdicts are the
    /// same.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if people never prefer an answer of the one kind or of the other.
    pub fn difference(&self) -> Result<Estimate, Error> {
        let difference = self.favoured.estimate()? - self.other.estimate()?;
        let shares = [self.favoured, self.other];
        let estimate = Estimate::new("equal opportunity", difference, self.favoured.n + self.other.n)?
            .with_interval(Spread::Newcombe(shares, 0.0));
        let pooled = shares.into_iter().sum::<Proportion>().estimate()?;
        Ok(if pooled == 0.0 || pooled == 1.0 {
            estimate.untested(Missing::Because("all verdicts are the same"))
        } else {
            let share = 1.0 / self.favoured.n as f64 + 1.0 / self.other.n as f64;
            let z = difference / (pooled * (1.0 - pooled) * share).sqrt();
            estimate.tested(normal_tail(z), NullDistribution::Normal)
        })
    }
}
