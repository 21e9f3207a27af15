use crate::correlation::pairs::PairCounts;
use crate::correlation::ranks::doubled_ranks;
use crate::correlation::tree::BinaryIndexedTree;
use crate::distribution::normal_tail;
use crate::estimate::{Missing, Spread};
use crate::input::check_varying_pair;
use crate::{Error, Estimate, NullDistribution};

/// Somers' D of `y` given `x` in O(n log n), with the p-value of `scipy.stats.somersd(x, y)`.
///
/// `x`, `y`: n ≥ 2 finite numbers each; only their order counts. D(Y|X) = (C − D) / (N − T_x) with C concordant and D discordant
/// among N = n(n − 1)/2 pairs of rows and T_x those tied in `x`: of two items that `x` tells apart, by how much more often `y`
/// agrees than disagrees, a tie in `y` counting as neither. It is not symmetric; D(Y|X) · D(X|Y) = τ-b².
///
/// With binary people's labels as `x`, D(Y|X) = 2 AUROC − 1 of the judge's scores `y`.
///
/// The p-value is normal, with the standard error under independence that SciPy takes from the spread of the rows' own C − D
/// (Somers, 1980). A perfect order leaves no spread and the p-value is 0; where D is 0 it is 1. The standard error is that of Goodman and
/// Kruskal (1972; `ASE` of SAS's FREQ procedure), which supposes no independence, and the interval is normal on Fisher's scale. A perfect
/// order has neither.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Constant`] where all of `x` or all of `y` is
/// one value. (A constant `y` leaves D defined, as 0; but it says nothing, and SciPy too gives none.)
///
/// ```
/// use judge_metrics::correlation::somers_d;
///
/// let human = [0.0, 0.0, 0.0, 1.0, 1.0];
/// let judge = [0.1, 0.4, 0.2, 0.3, 0.9];
/// // Of six pairs of a bad and a good answer the judge orders five.
/// assert!((somers_d(&human, &judge)?.estimate - 4.0 / 6.0).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "somersd")]
pub fn somers_d(x: &[f64], y: &[f64]) -> Result<Estimate, Error> {
    check_varying_pair(x, y)?;

    let pairs = PairCounts::new(x, y);
    let surplus = pairs.concordant_minus_discordant();
    let n = x.len();
    let rows = row_pairs(x, y);
    let p_value = if surplus == 0.0 {
        1.0
    } else {
        // n Σ c² − (Σ c)² for the rows' own surpluses c, in whole numbers: where all are equal it is 0 and not nearly so.
        let squares: i128 = rows.iter().map(|row| i128::from(row.surplus) * i128::from(row.surplus)).sum();
        let spread = squares * n as i128 - (2.0 * surplus) as i128 * (2.0 * surplus) as i128;
        normal_tail(surplus / (spread as f64 / n as f64).sqrt())
    };
    let estimate = Estimate::new(STATISTIC, pairs.somers_d_given_x(), n)?.tested(p_value, NullDistribution::Normal);
    let residuals: f64 =
        rows.iter().map(|row| (row.surplus as f64 - estimate.estimate * row.untied as f64).powi(2)).sum();
    let untied = 2.0 * (pairs.total - pairs.x.pairs) as f64;
    let standard_error = 2.0 * residuals.sqrt() / untied;
    Ok(if standard_error > 0.0 {
        estimate.with_error(standard_error, Spread::FisherOfError)
    } else {
        estimate.without_error(Missing::Because(
            "every row agrees alike with the others, which does not show how much rows vary",
        ))
    })
}

const STATISTIC: &str = "Somers' D";

/// One row among the others.
struct RowPairs {
    /// How many others are concordant with it less how many are discordant.
    surplus: i64,
    /// How many others `x` tells from it.
    untied: i64,
}

/// Rows in the order of `x`.
fn row_pairs(x: &[f64], y: &[f64]) -> Vec<RowPairs> {
    let n = x.len();
    let mut rows: Vec<(i64, i64)> = doubled_ranks(x).into_iter().zip(doubled_ranks(y)).collect();
    rows.sort_unstable();

    // Rows of lower `x` by their `y`, as a binary indexed tree over the doubled ranks, which run from 2 to 2n.
    let mut below = BinaryIndexedTree::new(2 * n);
    let mut pairs = Vec::with_capacity(n);
    let mut before = 0;
    for group in rows.chunk_by(|a, b| a.0 == b.0) {
        let lower_less_higher = |tree: &BinaryIndexedTree, count: i64, y: i64| {
            tree.count_to(y as usize - 1) + tree.count_to(y as usize) - count
        };
        let untied = (n - group.len()) as i64;
        pairs.extend(group.iter().map(|&(_, y)| RowPairs { surplus: lower_less_higher(&below, before, y), untied }));
        group.iter().for_each(|&(_, y)| below.add(y as usize, 1));
        let from = before as usize;
        before += group.len() as i64;
        for (own, &(_, y)) in pairs[from..].iter_mut().zip(group) {
            // A doubled rank is n + 1 plus the number of rows lower in `y` less the number higher.
            let all = y - (n as i64 + 1);
            own.surplus -= all - lower_less_higher(&below, before, y);
        }
    }
    pairs
}
