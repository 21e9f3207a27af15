//! Many tests at once: p-values adjusted so that a level holds for all of them together.

use crate::Error;
use crate::input::{check_each_in, check_finite};

/// Which error rate is controlled when several hypotheses are tested, and under which dependence.
///
/// An adjusted p-value is the smallest level at which its hypothesis is rejected among all of them, so a hypothesis is rejected at a level
/// if its adjusted p-value is no larger. Equal to `statsmodels.stats.multitest.multipletests` (0.15) with `holm`, `fdr_bh` and `fdr_by`.
#[doc(alias = "multipletests")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Adjustment {
    /// The probability of a single wrong rejection, whatever the dependence (Holm, 1979): the step-down form of Bonferroni's, and never
    /// weaker.
    Holm,
    /// The expected share of wrong rejections among all, for tests that are independent or positively dependent (Benjamini and Hochberg,
    /// 1995).
    BenjaminiHochberg,
    /// The same whatever the dependence (Benjamini and Yekutieli, 2001): larger by the factor 1 + 1/2 + … + 1/m.
    BenjaminiYekutieli,
}

impl Adjustment {
    /// The adjusted p-values of m tests, in their order, each in [0, 1]. Of no test, none. Equal p-values stay equal.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`], and [`Error::OutOfRange`] for what is no probability.
    ///
    /// ```
    /// use judge_metrics::multiplicity::Adjustment;
    ///
    /// let p_values = [0.01, 0.04, 0.03];
    /// assert_eq!(Adjustment::Holm.adjust(&p_values)?, [0.03, 0.06, 0.06]);
    /// assert_eq!(Adjustment::BenjaminiHochberg.adjust(&p_values)?, [0.03, 0.04, 0.04]);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn adjust(self, p_values: &[f64]) -> Result<Vec<f64>, Error> {
        check_finite("p_values", p_values)?;
        check_each_in("p_values", p_values, [0.0, 1.0])?;
        let m = p_values.len();
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
        let mut adjusted = vec![0.0; m];
        match self {
            Self::Holm => {
                // From the smallest on: none is rejected before a smaller one.
                let mut largest: f64 = 0.0;
                for (place, &test) in order.iter().enumerate() {
                    largest = largest.max(p_values[test] * (m - place) as f64);
                    adjusted[test] = largest.min(1.0);
                }
            }
            Self::BenjaminiHochberg | Self::BenjaminiYekutieli => {
                let factor = match self {
                    Self::BenjaminiYekutieli => (1..=m).map(|i| 1.0 / i as f64).sum(),
                    _ => 1.0,
                };
                // From the largest on: whatever is larger and rejected takes a smaller one with it.
                let mut smallest: f64 = 1.0;
                for (place, &test) in order.iter().enumerate().rev() {
                    smallest = smallest.min(p_values[test] * m as f64 / (place + 1) as f64 * factor);
                    adjusted[test] = smallest;
                }
            }
        }
        Ok(adjusted)
    }
}
