//! Could a rank correlation or a kappa be chance? Up to 500 rows by permutation, beyond by the large-sample tests that SciPy and
//! statsmodels print.
//!
//! The large-sample p-values of few rows are wrong by any factor: of three rows in perfect order Student's t and Somers' normal give 0,
//! where one order in six, turned round one in three, is as extreme. SciPy's documentation asks for a permutation test below 500
//! observations. Up to nine rows all orders are looked at; with more, random ones are. Kendall's exact distribution is known without ties,
//! and taken wherever it can be computed.

use super::statistic::PValue;
use crate::Error;
use crate::agreement::Measurement;
use crate::correlation::{KendallTest, average_ranks, kendall_tau_b, spearman};
use crate::means::largest;
use crate::resampling::{PermutationResult, PermutationTest};

/// Up to this many rows the p-value is that of permutations.
const FEW: usize = 500;
/// Of these rows all orders are looked at, 362,880 of nine.
const EXACT: usize = 9;

/// The tests, with the seed of the permutations.
pub(super) struct RankTests {
    pub(super) seed: u64,
}

impl RankTests {
    /// Of Spearman's correlation; `None` where the columns define none.
    pub(super) fn spearman(&self, x: &[f64], y: &[f64]) -> Option<PValue> {
        let rho = spearman(x, y).ok()?;
        if x.len() > FEW {
            return Some(PValue::of_rows(rho.p_value().ok()?, "Student t"));
        }
        // Whole multiples of a quarter, and their sums exact: equal sums are equal, whatever their order.
        let centre = (x.len() as f64 + 1.0) / 2.0;
        let centred = |values: &[f64]| Some(average_ranks(values).ok()?.iter().map(|rank| rank - centre).collect());
        let [x, y]: [Vec<f64>; 2] = [centred(x)?, centred(y)?];
        self.pairing(&x, &y, 0.0, |x, y| Ok(x.iter().zip(y).map(|(x, y)| x * y).sum()))
    }

    /// Of the number of concordant pairs less that of discordant ones, and so of tau-b, tau-c and Somers' D; `None` where the columns
    /// define none.
    pub(super) fn concordance(&self, x: &[f64], y: &[f64]) -> Option<PValue> {
        // With ties, or of too many rows, there is no exact test.
        if let Ok(tau) = kendall_tau_b(x, y, KendallTest::Exact) {
            return Some(PValue::of_rows(tau.p_value().ok()?, "exact"));
        }
        if x.len() > FEW {
            let tau = kendall_tau_b(x, y, KendallTest::Asymptotic).ok()?;
            return Some(PValue::of_rows(tau.p_value().ok()?, "normal"));
        }
        if x.len() > EXACT {
            return self.pairing(x, y, 0.0, |x, y| Ok(kendall_tau_b(x, y, KendallTest::Asymptotic)?.estimate));
        }
        // Of few rows the order of every pair is looked up: y becomes the numbers of its rows.
        let n = x.len();
        let orders = |values: &[f64]| -> Vec<f64> {
            let order = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
            values.iter().flat_map(|&a| values.iter().map(move |&b| order(a, b))).collect()
        };
        let (of_x, of_y) = (orders(x), orders(y));
        let rows: Vec<f64> = (0..n).map(|row| row as f64).collect();
        self.pairing(&rows, &rows, 0.0, |_, drawn| {
            let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
            Ok(pairs.map(|(i, j)| of_x[i * n + j] * of_y[drawn[i] as usize * n + drawn[j] as usize]).sum())
        })
    }

    /// Of a kappa, from the places of both columns' labels among `k` and the weights of agreement, row-major, with what rounding leaves of
    /// them; `None` for many rows.
    pub(super) fn kappa(
        &self,
        k: usize,
        (weights, rounding): (&[f64], f64),
        truth: &[usize],
        judged: &[usize],
    ) -> Option<PValue> {
        if truth.len() > FEW {
            return None;
        }
        // With these columns kappa rises with the sum of the weights, whatever the order.
        let column = |places: &[usize]| places.iter().map(|&place| place as f64).collect::<Vec<_>>();
        let rounding = truth.len() as f64 * rounding;
        self.pairing(&column(truth), &column(judged), rounding, |truth, judged| {
            Ok(truth.iter().zip(judged).map(|(&i, &j)| weights[i as usize * k + j as usize]).sum())
        })
    }

    /// Of Krippendorff's alpha, and of Fleiss' kappa, which is nominal: each rater's ratings in any order over the units that he rated.
    /// `None` for many units, or where one has fewer than two ratings.
    pub(super) fn alpha<R: AsRef<[Option<f64>]>>(&self, ratings: &[R], measurement: Measurement) -> Option<PValue> {
        let alone = |unit: &R| unit.as_ref().iter().flatten().count() < 2;
        if ratings.len() > FEW || ratings.iter().any(alone) {
            return None;
        }
        let all: Vec<f64> = ratings.iter().flat_map(|unit| unit.as_ref()).flatten().copied().collect();
        let rounding = match measurement {
            Measurement::Interval => all.len() as f64 * range(&all).powi(2) * rounding_of(&all),
            _ => 0.0,
        };
        let worth = if measurement == Measurement::Ordinal { average_ranks(&all).ok()? } else { all };
        let mut worth = worth.into_iter();
        let (n, k) = (ratings.len(), ratings.first()?.as_ref().len());
        // Of each rater: the units that he rated, and what he gave.
        let mut given: Vec<(Vec<usize>, Vec<f64>)> = vec![(Vec::new(), Vec::new()); k];
        for (unit, of_unit) in ratings.iter().enumerate() {
            for (rater, rating) in given.iter_mut().zip(of_unit.as_ref()) {
                if rating.is_some() {
                    rater.0.push(unit);
                    rater.1.push(worth.next()?);
                }
            }
        }
        let lengths: Vec<usize> = given.iter().map(|(units, _)| units.len()).collect();
        let all = lengths.iter().skip(1).flat_map(|&n| 1..=n).try_fold(1, usize::checked_mul);
        let distance = |a: f64, b: f64| match measurement {
            Measurement::Nominal => f64::from(u8::from(a != b)),
            _ => (a - b).powi(2),
        };
        // With these columns alpha falls as the ratings of one unit differ, whatever the order.
        let found = self.with_all(all, rounding).columns(&lengths, |orders| {
            let (mut units, mut counts, mut differences) = (vec![0.0; n * k], vec![0; n], vec![0.0; n]);
            for ((of_rater, worth), order) in given.iter().zip(orders) {
                for (&unit, &entry) in of_rater.iter().zip(order) {
                    let before = &units[unit * k..unit * k + counts[unit]];
                    differences[unit] += before.iter().map(|&other| distance(other, worth[entry])).sum::<f64>();
                    units[unit * k + counts[unit]] = worth[entry];
                    counts[unit] += 1;
                }
            }
            Ok(-differences.iter().zip(&counts).map(|(sum, &count)| sum / (count - 1) as f64).sum::<f64>())
        });
        Some(in_words(&found.ok()?))
    }

    fn pairing(
        &self,
        x: &[f64],
        y: &[f64],
        rounding: f64,
        statistic: impl Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    ) -> Option<PValue> {
        let all = (1..=x.len()).try_fold(1, usize::checked_mul);
        Some(in_words(&self.with_all(all, rounding).pairing(x, y, statistic).ok()?))
    }

    /// Looks at all orders, where there are no more than [`EXACT`] rows have.
    fn with_all(&self, orders: Option<usize>, rounding: f64) -> PermutationTest {
        let test = PermutationTest { seed: self.seed, rounding, ..PermutationTest::default() };
        let few = orders.filter(|&orders| orders <= (1..=EXACT).product());
        PermutationTest { permutations: few.unwrap_or(test.permutations), ..test }
    }
}

/// How far rounding may part equal coefficients on a scale that ends at 1.
pub(super) const ROUNDING: f64 = 1e-13;

/// The same of coefficients that are made of differences of `numbers`, which keep few digits where all numbers are far from 0: 80.3 − 80.2
/// is not 80.2 − 80.1. Differences of whole numbers are exact.
pub(super) fn rounding_of(numbers: &[f64]) -> f64 {
    let range = range(numbers);
    let is_exact = range <= 0.0 || numbers.iter().all(|number| number.fract() == 0.0);
    if is_exact { ROUNDING } else { ROUNDING * (largest(numbers) / range).max(1.0) }
}

/// The largest of some numbers less the smallest.
fn range(numbers: &[f64]) -> f64 {
    let ends = numbers.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &x| [low.min(x), high.max(x)]);
    ends[1] - ends[0]
}

/// The p-value and how it was found; where no order drawn is as extreme as the one seen, it is the least that so many can say.
pub(super) fn in_words(found: &PermutationResult) -> PValue {
    let least = 2.0 / (found.permutations + 1) as f64;
    match found {
        PermutationResult { exact: true, .. } => PValue::of_rows(found.p_value, "permutation, exact"),
        _ if found.p_value <= least => {
            PValue { is_bound: true, ..PValue::of_rows(found.p_value, "permutation, at most") }
        }
        _ => PValue::of_rows(found.p_value, "permutation"),
    }
}
