use crate::Error;
use crate::prediction::distributions::{check_distribution, check_distributions};
use crate::sum::sum;

/// Kullback–Leibler divergence of `p` from `q` in nats, Σ p ln(p/q), as `scipy.stats.entropy(p, q)`.
///
/// `p`, `q`: probabilities of the same labels. Both are divided by their sums, which must be within 1e-6 of 1. At least 0, and 0
/// only where they are equal. A label with p = 0 adds nothing. For the mean over items with an interval, hand the
/// items' divergences to [`sample_mean`](crate::means::sample_mean).
///
/// # Errors
///
/// [`Error::Undefined`] where q = 0 < p, where it would be infinite: smooth `q` first, with [`smoothed`], if that is
/// what you mean. [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], [`Error::OutOfRange`],
/// [`Error::NotADistribution`].
///
/// ```
/// use judge_metrics::prediction::{kl_divergence, smoothed};
///
/// let (human, judge) = ([0.5, 0.5, 0.0], [0.25, 0.5, 0.25]);
/// assert!((kl_divergence(&human, &judge)? - 0.5 * 2f64.ln()).abs() < 1e-15);
/// assert!(kl_divergence(&judge, &human).is_err());
/// assert!((kl_divergence(&judge, &smoothed(&human, 0.01)?)? - 0.646_139_0).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn kl_divergence(p: &[f64], q: &[f64]) -> Result<f64, Error> {
    check_distributions(p, q)?;
    if p.iter().zip(q).any(|(&p, &q)| q == 0.0 && p > 0.0) {
        return Err(Error::Undefined { statistic: "KL divergence", reason: "q is 0 where p is not" });
    }
    Ok(relative_entropy(&normalized(p), &normalized(q)))
}

/// `p` with `pseudo` added to every label and divided by the new sum: additive (Lidstone) smoothing.
///
/// `pseudo` ≥ 0 is in probability, not in counts: 0.01 on five labels takes about 5 % of the mass to spread it evenly.
///
/// # Errors
///
/// [`Error::OutOfRange`] for a `pseudo` below 0 or not finite, and those of a distribution, as in [`kl_divergence`].
pub fn smoothed(p: &[f64], pseudo: f64) -> Result<Vec<f64>, Error> {
    check_distribution("p", p)?;
    if !(0.0..=f64::MAX / p.len() as f64 / 2.0).contains(&pseudo) {
        return Err(Error::OutOfRange { argument: "pseudo", index: None, value: pseudo, low: 0.0, high: f64::MAX });
    }
    Ok(normalized(&p.iter().map(|p| p + pseudo).collect::<Vec<_>>()))
}

/// Jensen–Shannon divergence in nats: the mean divergence of either distribution from their average.
///
/// In [0, ln 2], symmetric, and defined whatever the zeros; the square of `scipy.spatial.distance.jensenshannon`. Input
/// and errors as for [`kl_divergence`], but for [`Error::Undefined`].
///
/// ```
/// let apart = judge_metrics::prediction::jensen_shannon_divergence(&[1.0, 0.0], &[0.0, 1.0])?;
/// assert!((apart - 2f64.ln()).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "jensenshannon")]
pub fn jensen_shannon_divergence(p: &[f64], q: &[f64]) -> Result<f64, Error> {
    check_distributions(p, q)?;
    let (p, q) = (normalized(p), normalized(q));
    let middle: Vec<f64> = p.iter().zip(&q).map(|(p, q)| p.midpoint(*q)).collect();
    Ok(relative_entropy(&p, &middle).midpoint(relative_entropy(&q, &middle)).min(std::f64::consts::LN_2))
}

/// Total variation distance, ½ Σ |p − q|: the largest difference of probability that any set of labels can have. In [0,
/// 1].
///
/// Input and errors as for [`jensen_shannon_divergence`].
pub fn total_variation(p: &[f64], q: &[f64]) -> Result<f64, Error> {
    check_distributions(p, q)?;
    let gaps: Vec<f64> = normalized(p).iter().zip(normalized(q)).map(|(p, q)| (p - q).abs()).collect();
    Ok((sum(&gaps) / 2.0).min(1.0))
}

/// A distribution whose sum is 1 but for rounding.
pub(crate) fn normalized(p: &[f64]) -> Vec<f64> {
    let total = sum(p);
    p.iter().map(|p| p / total).collect()
}

/// Σ p ln(p/q) by terms p ln(p/q) − p + q, none of them negative, so that nearly equal distributions keep their digits.
/// q > 0 where p > 0.
fn relative_entropy(p: &[f64], q: &[f64]) -> f64 {
    let terms: Vec<f64> = p.iter().zip(q).map(|(&p, &q)| divergence_term(p, q)).collect();
    sum(&terms)
}

fn divergence_term(p: f64, q: f64) -> f64 {
    if p == 0.0 {
        return q;
    }
    let excess = (q - p) / p;
    // Near equality through ln(1 + u), which the difference leaves exact; far from it by logarithms, which cannot
    // overflow.
    let term = if excess.abs() < 0.5 { p * (excess - excess.ln_1p()) } else { p * (p.ln() - q.ln()) - p + q };
    term.max(0.0)
}
