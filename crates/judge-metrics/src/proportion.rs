//! A count out of a number, and the intervals of shares and of their differences.

use std::iter::Sum;

use crate::distribution::{beta_quantile, normal_two_sided_quantile};
use crate::input::{check_level, check_range};
use crate::{Error, Interval};

/// A share, with the counts it is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Proportion {
    /// How many.
    pub count: usize,
    /// Of how many, at least `count`.
    pub n: usize,
}

impl Proportion {
    /// The share of `true`.
    #[must_use]
    pub fn of(counts: &[bool]) -> Self {
        Self { count: counts.iter().filter(|&&counts| counts).count(), n: counts.len() }
    }

    /// The share, in [0, 1].
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] for a share of nothing, [`Error::OutOfRange`] for more than there are.
    pub fn estimate(&self) -> Result<f64, Error> {
        check_range("count", None, self.count as f64, [0.0, self.n as f64])?;
        if self.n == 0 {
            return Err(Error::Undefined { statistic: "proportion", reason: "no item to take a share of" });
        }
        Ok(self.count as f64 / self.n as f64)
    }

    /// Wilson's score interval (1927; `statsmodels.stats.proportion.proportion_confint(method="wilson")`), within [0,
    /// 1]. It takes the items as independent.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`], and those of [`estimate`](Self::estimate).
    #[doc(alias = "proportion_confint")]
    pub fn wilson(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        let p = self.estimate()?;
        let n = self.n as f64;
        let z = normal_two_sided_quantile(level);
        let squared = z * z / n;
        let centre = p + squared / 2.0;
        let margin = wilson_margin(p, n, z);
        // Where none or all count, an end is 0 or 1 exactly, but for rounding.
        let low = if self.count == 0 { 0.0 } else { (centre - margin) / (1.0 + squared) };
        let high = if self.count == self.n { 1.0 } else { (centre + margin) / (1.0 + squared) };
        Ok(Interval { low, high, level })
    }

    /// The exact interval of Clopper and Pearson (1934; `scipy.stats.binomtest(count, n).proportion_ci(level)`), within
    /// [0, 1]: it covers at least `level` always, and so more than it mostly. It takes the items as independent.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`], and those of [`estimate`](Self::estimate).
    #[doc(alias = "proportion_confint")]
    pub fn clopper_pearson(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        self.estimate()?;
        let (count, rest) = (self.count as f64, self.n as f64 - self.count as f64);
        let tail = (1.0 - level) / 2.0;
        let low = if self.count == 0 { 0.0 } else { beta_quantile(count, rest + 1.0, tail) };
        let high = if self.count == self.n { 1.0 } else { beta_quantile(count + 1.0, rest, 1.0 - tail) };
        Ok(Interval { low, high, level })
    }

    /// Newcombe's hybrid score interval of the difference of two shares, first − second, within [-1, 1] (1998, method 10).
    ///
    /// `correlation` in [-1, 1] is that of the two indicators where both shares are of the same items, corrected for continuity; 0 where
    /// they are of different ones (`statsmodels.stats.proportion.confint_proportions_2indep(method="newcomb")`).
    pub(crate) fn newcombe(shares: [Self; 2], correlation: f64, level: f64) -> Result<Interval, Error> {
        let [(p, of_p), (q, of_q)] =
            [(shares[0].estimate()?, shares[0].wilson(level)?), (shares[1].estimate()?, shares[1].wilson(level)?)];
        let side = |x: f64, y: f64| (x * x - 2.0 * correlation * x * y + y * y).max(0.0).sqrt();
        let difference = p - q;
        Ok(Interval {
            low: difference - side(p - of_p.low, of_q.high - q),
            high: difference + side(of_p.high - p, q - of_q.low),
            level,
        })
    }

    /// The interval of a share corrected for misclassification, within [0, 1] (Lang and Reiczigel, 2014, *Preventive Veterinary Medicine*
    /// 113); `rates` are sensitivity and specificity. It is Wald's after adding z² judged items, half of them yes, and two labelled ones of
    /// either kind, one of them wrong, with a shift for their skew.
    pub(crate) fn lang_reiczigel(judged: Self, rates: [Self; 2], level: f64) -> Result<Interval, Error> {
        let z = normal_two_sided_quantile(level);
        let more = |share: Self, added: f64| -> (f64, f64) {
            let n = share.n as f64 + added;
            ((share.count as f64 + added / 2.0) / n, n)
        };
        let [(p, n), (sensitivity, n_yes), (specificity, n_no)] =
            [more(judged, z * z), more(rates[0], 2.0), more(rates[1], 2.0)];
        let informedness = sensitivity + specificity - 1.0;
        if informedness <= 0.0 {
            let reason = "the judge's error rates are known too badly to tell its verdicts from chance";
            return Err(Error::Undefined { statistic: "the interval of a corrected share", reason });
        }
        let share = (p + specificity - 1.0) / informedness;
        let (of_yes, of_no) = (sensitivity * (1.0 - sensitivity) / n_yes, specificity * (1.0 - specificity) / n_no);
        let shift = 2.0 * z * z * (share * of_yes - (1.0 - share) * of_no);
        let variance = p * (1.0 - p) / n + share * share * of_yes + (1.0 - share).powi(2) * of_no;
        let half = z * variance.sqrt() / informedness;
        let end = |end: f64| end.clamp(0.0, 1.0);
        Ok(Interval { low: end(share + shift - half), high: end(share + shift + half), level })
    }

    pub(crate) fn add(&mut self, counts: bool) {
        self.count += usize::from(counts);
        self.n += 1;
    }
}

/// Half of the width of Wilson's interval of a share of `n` items, whether or not a whole number of them makes it; `z` is the normal
/// quantile.
pub(crate) fn wilson_half_width(share: f64, n: f64, z: f64) -> f64 {
    wilson_margin(share, n, z) / (1.0 + z * z / n)
}

/// The same times 1 + z²/n, which divides the centre too.
fn wilson_margin(share: f64, n: f64, z: f64) -> f64 {
    z * (share * (1.0 - share) / n + z * z / n / (4.0 * n)).sqrt()
}

/// Pooled: counts are added up.
impl Sum for Proportion {
    fn sum<I: Iterator<Item = Self>>(shares: I) -> Self {
        shares.fold(Self::default(), |pooled, share| Self { count: pooled.count + share.count, n: pooled.n + share.n })
    }
}
