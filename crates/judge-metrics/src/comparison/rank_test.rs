//! Could a rank correlation be chance? Up to 500 rows by permutation, beyond by the large-sample tests that SciPy prints.
//!
//! The large-sample p-values of few rows are wrong by any factor: of three rows in perfect order Student's t and Somers' normal give 0,
//! where one order in six, turned round one in three, is as extreme. SciPy's documentation asks for a permutation test below 500
//! observations. Up to nine rows all orders are looked at; with more, random ones are.

use super::statistic::PValue;
use crate::Error;
use crate::correlation::{KendallTest, average_ranks, kendall_tau_b, spearman};
use crate::resampling::PermutationTest;
use crate::{Estimate, NullDistribution};

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
        self.pairing(&x, &y, |x, y| Ok(x.iter().zip(y).map(|(x, y)| x * y).sum()))
    }

    /// Of the number of concordant pairs less that of discordant ones, and so of tau-b, tau-c and Somers' D; `None` where the columns
    /// define none.
    pub(super) fn concordance(&self, x: &[f64], y: &[f64]) -> Option<PValue> {
        let tau: Estimate = kendall_tau_b(x, y, KendallTest::Auto).ok()?;
        let p = tau.p_value().ok()?;
        if tau.null_distribution() == Some(NullDistribution::Permutation) {
            return Some(PValue::of_rows(p, "exact"));
        }
        if x.len() > FEW {
            return Some(PValue::of_rows(p, "normal"));
        }
        if x.len() > EXACT {
            return self.pairing(x, y, |x, y| Ok(kendall_tau_b(x, y, KendallTest::Asymptotic)?.estimate));
        }
        // Of few rows the order of every pair is looked up: y becomes the numbers of its rows.
        let n = x.len();
        let orders = |values: &[f64]| -> Vec<f64> {
            let order = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
            values.iter().flat_map(|&a| values.iter().map(move |&b| order(a, b))).collect()
        };
        let (of_x, of_y) = (orders(x), orders(y));
        let rows: Vec<f64> = (0..n).map(|row| row as f64).collect();
        self.pairing(&rows, &rows, |_, drawn| {
            let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
            Ok(pairs.map(|(i, j)| of_x[i * n + j] * of_y[drawn[i] as usize * n + drawn[j] as usize]).sum())
        })
    }

    fn pairing(
        &self,
        x: &[f64],
        y: &[f64],
        statistic: impl Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    ) -> Option<PValue> {
        let drawn = PermutationTest::default().permutations;
        let all = if x.len() <= EXACT { (1..=x.len()).product() } else { drawn };
        let test = PermutationTest { permutations: all, seed: self.seed, ..PermutationTest::default() };
        let found = test.pairing(x, y, statistic).ok()?;
        Some(PValue::of_rows(found.p_value, if found.exact { "permutation, exact" } else { "permutation" }))
    }
}
