use crate::Error;
use crate::distribution::{binomial_two_sided, normal_tail};
use crate::groups::clusters;
use crate::input::check_lengths;

/// Which form of McNemar's test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum McNemarTest {
    /// Binomial: exact for any number of discordant pairs.
    Exact,
    /// Chi-squared with one degree of freedom, Edwards' continuity correction taken off.
    ChiSquared,
    /// Chi-squared with the correction: max(0, |b − c| − 1)² / (b + c).
    ChiSquaredCorrected,
}

/// A test of two paired proportions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct McNemar {
    /// The smaller of the two counts, or chi-squared.
    pub statistic: f64,
    /// Two-sided p-value, in [0, 1].
    pub p_value: f64,
}

/// McNemar's test that two kinds of discordant pairs, `b` and `c` of them, are equally likely: flips of a judge with
/// the order, or items that one of two judges alone gets right.
///
/// Equals `statsmodels.stats.contingency_tables.mcnemar`, but for the corrected form at b = c, where statsmodels lets
/// the correction overshoot to 1/(b + c) and this is 0 as in R's `mcnemar.test`.
///
/// # Errors
///
/// [`Error::Undefined`] for a chi-squared test without a discordant pair; the exact p-value is then 1.
pub fn mcnemar(b: usize, c: usize, test: McNemarTest) -> Result<McNemar, Error> {
    let discordant = b + c;
    if discordant == 0 && test == McNemarTest::Exact {
        return Ok(McNemar { statistic: 0.0, p_value: 1.0 });
    }
    if discordant == 0 {
        return Err(Error::Undefined { statistic: "McNemar's test", reason: "no pair is discordant" });
    }
    let chi_squared = |correction: f64| {
        let excess = (b.abs_diff(c) as f64 - correction).max(0.0);
        let statistic = excess * excess / discordant as f64;
        McNemar { statistic, p_value: normal_tail(statistic.sqrt()) }
    };
    Ok(match test {
        McNemarTest::Exact => {
            McNemar { statistic: b.min(c) as f64, p_value: binomial_two_sided(b as u64, discordant as u64, 0.5) }
        }
        McNemarTest::ChiSquared => chi_squared(0.0),
        McNemarTest::ChiSquaredCorrected => chi_squared(1.0),
    })
}

/// McNemar's test where items come in clusters, such as several answers to one question: is one of two judges right more often than the
/// other?
///
/// `first[i]` and `second[i]` say whether they are right about item i, `groups[i]` which cluster it belongs to. With d the number of items
/// in a cluster that the first alone has right less those that the second alone has, χ² = (Σ d)² / Σ d², one degree of freedom: the score
/// test with the variance of cluster sums under the hypothesis (Obuchowski, 1998; Yang, Sun and Hardin, 2010). Items of a cluster may
/// depend on each other in any way. With clusters of one item it is [`mcnemar`] as [`McNemarTest::ChiSquared`]. An approximation for a few
/// dozen clusters with a discordant item or more; with fewer take
/// [`PermutationTest::clustered`](crate::resampling::PermutationTest::clustered), which is exact.
///
/// # Errors
///
/// [`Error::LengthMismatch`]; [`Error::Undefined`] where both are right equally often in every cluster.
///
/// ```
/// use judge_metrics::agreement::clustered_mcnemar;
///
/// // Three questions of two answers: what is right about one answer is right about the other.
/// let first = [true, true, true, true, false, false];
/// let second = [false, false, true, true, false, false];
/// let test = clustered_mcnemar(&first, &second, &["a", "a", "b", "b", "c", "c"])?;
/// assert_eq!(test.statistic, 1.0, "one question, not two answers");
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn clustered_mcnemar<G: Ord>(first: &[bool], second: &[bool], groups: &[G]) -> Result<McNemar, Error> {
    check_lengths("second", second.len(), "first", first.len())?;
    check_lengths("groups", groups.len(), "first", first.len())?;
    let difference = |&row: &usize| f64::from(i8::from(first[row]) - i8::from(second[row]));
    let sums: Vec<f64> = clusters(groups).iter().map(|rows| rows.iter().map(difference).sum()).collect();
    let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
    if squares == 0.0 {
        let reason = "both are right equally often in every cluster";
        return Err(Error::Undefined { statistic: "McNemar's test of clusters", reason });
    }
    let statistic = sums.iter().sum::<f64>().powi(2) / squares;
    Ok(McNemar { statistic, p_value: normal_tail(statistic.sqrt()) })
}
