use crate::correlation::fisher::{check_correlation, fisher_interval, is_perfect};
use crate::correlation::pearson;
use crate::distribution::{normal_tail, normal_two_sided_quantile, student_t_tail};
use crate::input::{check_count, check_level};
use crate::{Error, Interval};

/// Two correlations that share a variable, measured on the same items: which of two judges agrees better with people.
///
/// Variable 1 are the people, 2 and 3 the judges. Between the judges there is a correlation too, and it decides how much of the
/// difference is chance: two judges that agree with each other differ reliably even by little.
///
/// A correlation counts as ±1 from 1 − r² < 10⁻¹² on, since that of equal columns may come out short of 1 by rounding.
///
/// Each method is one published procedure, named; all suppose normal samples and large n in some measure, Williams' t least. For
/// rank correlations and coarse scores a paired [`Bootstrap`](crate::resampling::Bootstrap) of the difference supposes less.
///
/// ```
/// use judge_metrics::correlation::DependentCorrelations;
///
/// let human = [3.0, 5.0, 1.0, 2.0, 4.0, 2.0, 4.0, 3.0];
/// let lager = [3.1, 4.7, 1.2, 2.8, 4.9, 2.0, 3.6, 1.9];
/// let prompted = [4.0, 5.0, 3.0, 2.0, 4.0, 4.0, 5.0, 2.0];
/// let judges = DependentCorrelations::of_columns(&human, &lager, &prompted)?;
/// let test = judges.williams()?;
/// assert!(test.statistic > 0.0 && test.p_value > 0.05);
/// let difference = judges.zou_interval(0.95)?;
/// assert!(difference.low < 0.0 && difference.high > 0.0);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DependentCorrelations {
    r12: f64,
    r13: f64,
    r23: f64,
    n: usize,
}

/// A test of the hypothesis that two dependent correlations are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DifferenceTest {
    /// Positive where the first judge's correlation is higher.
    pub statistic: f64,
    /// Degrees of freedom of Student's t, or `None` where the statistic is standard normal.
    pub dof: Option<usize>,
    /// Two-sided p-value, in [0, 1].
    pub p_value: f64,
}

impl DependentCorrelations {
    /// From the correlations `r12` and `r13` of the two judges with people, the correlation `r23` between the judges, and the number `n` ≥
    /// 4 of items.
    ///
    /// # Errors
    ///
    /// [`Error::NotACorrelation`], [`Error::TooFewItems`]; [`Error::NotPositiveSemidefinite`] where no three columns have these
    /// correlations, by more than 10⁻¹² in the determinant.
    pub fn new(r12: f64, r13: f64, r23: f64, n: usize) -> Result<Self, Error> {
        [r12, r13, r23].into_iter().try_for_each(check_correlation)?;
        check_count(4, n)?;
        let correlations = Self { r12, r13, r23, n };
        let determinant = correlations.determinant();
        if determinant < -1e-12 {
            return Err(Error::NotPositiveSemidefinite { determinant });
        }
        Ok(correlations)
    }

    /// From the Pearson correlations of three columns of n ≥ 4 finite numbers, one entry per item in each.
    ///
    /// # Errors
    ///
    /// Those of [`pearson`](super::pearson), where `x` and `y` are the two columns of a pair in the order of the arguments here, and of
    /// [`new`](Self::new).
    pub fn of_columns(people: &[f64], first: &[f64], second: &[f64]) -> Result<Self, Error> {
        let r = |x, y| pearson(x, y).map(|r| r.estimate);
        Self::new(r(people, first)?, r(people, second)?, r(first, second)?, people.len())
    }

    /// r12 − r13.
    pub fn difference(&self) -> f64 {
        self.r12 - self.r13
    }

    /// Williams' t with n − 3 degrees of freedom (Williams, 1959; Steiger, 1980, equation 7): the usual choice.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where the two judges are the same up to sign and scale, or all three correlations are extreme.
    pub fn williams(&self) -> Result<DifferenceTest, Error> {
        let Self { r12, r13, r23, n } = *self;
        let (n, mean) = (n as f64, f64::midpoint(r12, r13));
        let noise = 2.0 * (n - 1.0) / (n - 3.0) * self.determinant().max(0.0) + mean * mean * (1.0 - r23).powi(3);
        let statistic = self.difference() * ((n - 1.0) * (1.0 + r23) / noise).sqrt();
        // Of judges that are the same up to sign and scale the noise is what rounding leaves.
        if is_perfect(r23) || !statistic.is_finite() {
            return Err(undefined("Williams' t", "the three columns leave no noise"));
        }
        let dof = self.n - 3;
        Ok(DifferenceTest { statistic, dof: Some(dof), p_value: student_t_tail(statistic, dof as f64) })
    }

    /// Steiger's Z (1980, equation 14): the difference of Fisher's z, the covariance taken at the mean of the two correlations.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where r12 or r13 is ±1 or the judges are the same up to scale.
    pub fn steiger(&self) -> Result<DifferenceTest, Error> {
        let mean = f64::midpoint(self.r12, self.r13);
        self.of_fisher_z("Steiger's Z", 2.0 - 2.0 * covariance(mean, mean, self.r23))
    }

    /// Dunn and Clark's z (1969): the difference of Fisher's z, the covariance taken at the two correlations themselves.
    ///
    /// # Errors
    ///
    /// Those of [`steiger`](Self::steiger).
    pub fn dunn_clark(&self) -> Result<DifferenceTest, Error> {
        self.of_fisher_z("Dunn and Clark's z", 2.0 - 2.0 * covariance(self.r12, self.r13, self.r23))
    }

    /// Meng, Rosenthal and Rubin's z (1992, equation 1).
    ///
    /// # Errors
    ///
    /// Those of [`steiger`](Self::steiger).
    pub fn meng(&self) -> Result<DifferenceTest, Error> {
        self.of_fisher_z("Meng's z", self.meng_variance())
    }

    /// Meng, Rosenthal and Rubin's interval (1992, equation 4) of the difference atanh r12 − atanh r13, on Fisher's scale.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`], and those of [`steiger`](Self::steiger).
    pub fn meng_interval(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        self.meng()?;
        let difference = self.r12.atanh() - self.r13.atanh();
        let half = normal_two_sided_quantile(level) * (self.meng_variance() / (self.n - 3) as f64).sqrt();
        Ok(Interval { low: difference - half, high: difference + half, level })
    }

    /// Zou's interval (2007) of the difference r12 − r13 itself, put together from the two Fisher intervals.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`], and those of [`steiger`](Self::steiger).
    pub fn zou_interval(&self, level: f64) -> Result<Interval, Error> {
        let Self { r12, r13, r23, n } = *self;
        check_level(level)?;
        self.check_fisher_z("Zou's interval")?;
        let (first, second) = (fisher_interval(r12, n, level)?, fisher_interval(r13, n, level)?);
        let covariance = covariance(r12, r13, r23);
        // Rounding may leave less than nothing of a difference of equals.
        let reach = |a: f64, b: f64| (a * a + b * b - 2.0 * covariance * a * b).max(0.0).sqrt();
        let difference = self.difference();
        Ok(Interval {
            low: difference - reach(r12 - first.low, second.high - r13),
            high: difference + reach(first.high - r12, r13 - second.low),
            level,
        })
    }

    /// Of the matrix of the three correlations.
    fn determinant(&self) -> f64 {
        let Self { r12, r13, r23, .. } = *self;
        // In this form a triple of equal columns gives exactly 0.
        (1.0 - r12 * r12) * (1.0 - r13 * r13) - (r23 - r12 * r13).powi(2)
    }

    /// (n − 3) times the variance that Meng, Rosenthal and Rubin give the difference of Fisher's z.
    fn meng_variance(&self) -> f64 {
        let square = f64::midpoint(self.r12 * self.r12, self.r13 * self.r13);
        let f = ((1.0 - self.r23) / (2.0 * (1.0 - square))).min(1.0);
        2.0 * (1.0 - self.r23) * (1.0 - f * square) / (1.0 - square)
    }

    /// That both correlations with people have a Fisher z, and that the judges are not the same up to scale: their difference would then be
    /// rounding.
    fn check_fisher_z(&self, statistic: &'static str) -> Result<(), Error> {
        if is_perfect(self.r12) || is_perfect(self.r13) {
            return Err(undefined(statistic, "a correlation of 1 or -1 has no Fisher z"));
        }
        if is_perfect(self.r23) && self.r23 > 0.0 {
            return Err(undefined(statistic, "the two judges are the same up to scale, which leaves no noise"));
        }
        Ok(())
    }

    /// `variance` is (n − 3) times that of the difference of Fisher's z.
    fn of_fisher_z(&self, statistic: &'static str, variance: f64) -> Result<DifferenceTest, Error> {
        self.check_fisher_z(statistic)?;
        let z = (self.r12.atanh() - self.r13.atanh()) * ((self.n - 3) as f64 / variance).sqrt();
        if !z.is_finite() {
            return Err(undefined(statistic, "the three columns leave no noise"));
        }
        Ok(DifferenceTest { statistic: z, dof: None, p_value: normal_tail(z) })
    }
}

/// Asymptotic covariance of Fisher's z of two correlations `a` and `b` that share a variable, times n, where the other two variables
/// correlate by `between` (Dunn and Clark, 1969; Steiger, 1980, equation 3).
fn covariance(a: f64, b: f64, between: f64) -> f64 {
    let (aa, bb) = (a * a, b * b);
    (between * (1.0 - aa - bb) - a * b / 2.0 * (1.0 - aa - bb - between * between)) / ((1.0 - aa) * (1.0 - bb))
}

fn undefined(statistic: &'static str, reason: &'static str) -> Error {
    Error::Undefined { statistic, reason }
}
