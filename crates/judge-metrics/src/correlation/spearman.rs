use crate::correlation::RankVariance;
use crate::correlation::ranks::doubled_ranks;
use crate::distribution::correlation_tail;
use crate::estimate::Spread;
use crate::input::check_varying_pair;
use crate::{Error, Estimate, NullDistribution};

/// Spearman's rank correlation, Pearson's of the average ranks, with the p-value of `scipy.stats.spearmanr`.
///
/// `x`, `y`: n ≥ 2 finite numbers each; only their order counts. Ties share the average of the ranks they span. The interval
/// is [Bonett and Wright's](super::spearman_interval), which says how well it covers. The p-value is that of Student's t with n − 2 degrees
/// of freedom, an approximation: with fewer than about 10 pairs read it as a rough guide. With n = 2 the coefficient is 1 or -1 whatever
/// the data and the p-value 1, where SciPy, left without a degree of freedom, has none.
///
/// The sums run over whole numbers and are exact, so a perfect order gives exactly 1 and p-value 0.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Constant`] where all of `x` or all of
/// `y` is one value.
///
/// ```
/// let rho = judge_metrics::correlation::spearman(&[1.0, 2.0, 3.0, 4.0], &[10.0, 300.0, 20.0, 4000.0])?;
/// assert!((rho.estimate - 0.8).abs() < 1e-15 && (rho.p_value()? - 0.2).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "spearmanr")]
pub fn spearman(x: &[f64], y: &[f64]) -> Result<Estimate, Error> {
    check_varying_pair(x, y)?;

    let (x, y) = (centred_ranks(x), centred_ranks(y));
    let n = x.len();
    let (xx, yy) = (dot(&x, &x), dot(&y, &y));
    // One root of the product, not two roots: it is exact where both sides are equal.
    let rho = (dot(&x, &y) / (xx * yy).sqrt()).clamp(-1.0, 1.0);
    let p_value = if n == 2 { 1.0 } else { correlation_tail(rho, (n - 2) as f64) };
    let interval = Spread::Fisher { n, scale: RankVariance::BonettWright.scale(rho), lost: 3 };
    Ok(Estimate::new("Spearman's correlation", rho, n)?
        .with_interval(interval)
        .tested(p_value, NullDistribution::StudentT))
}

/// Twice the average ranks less twice their mean, (n + 1)/2: whole numbers of magnitude below n.
fn centred_ranks(values: &[f64]) -> Vec<i64> {
    let centre = values.len() as i64 + 1;
    doubled_ranks(values).into_iter().map(|rank| rank - centre).collect()
}

/// Exact up to the last conversion.
fn dot(x: &[i64], y: &[i64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| i128::from(x * y)).sum::<i128>() as f64
}
