//! Features brought to mean 0 and deviation 1. A feature that does not vary but for rounding is only centred: the bound is scikit-learn's,
//! so the same features are left alone.

use crate::estimators::parameters::{check_count, check_each};
use crate::matrices::matrix::check_overflow;
use crate::{Error, FittedTransformer, Matrix, Transformer};

/// Brings every feature to mean 0 and variance 1, as `sklearn.preprocessing.StandardScaler` does.
///
/// Fit it to training rows alone, which a [`Pipeline`](crate::Pipeline) sees to: means of test rows would leak into
/// training.
///
/// ```
/// use judge_probe::{Matrix, StandardScaler};
///
/// let features = Matrix::from_rows([[1.0, 7.0], [5.0, 7.0]])?;
/// let scaler = StandardScaler::default().fit(&features)?;
/// // The second feature does not vary: it is centred, and divided by 1.
/// assert_eq!((scaler.mean(), scaler.scale()), (&[3.0, 7.0][..], &[2.0, 1.0][..]));
/// assert_eq!(scaler.transform(&features)?.values(), [-1.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandardScaler {
    /// Subtract the mean.
    pub with_mean: bool,
    /// Divide by the standard deviation.
    pub with_std: bool,
}

impl Default for StandardScaler {
    /// Both.
    fn default() -> Self {
        Self { with_mean: true, with_std: true }
    }
}

/// A fitted [`StandardScaler`]: means and scales of the features.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedStandardScaler {
    mean: Vec<f64>,
    /// `[n_features]`, all finite and above 0, so that a transform never divides by 0.
    scale: Vec<f64>,
}

impl StandardScaler {
    /// Learns means and scales from `[n_rows, n_features]`.
    ///
    /// The variance divides by n_rows. A feature that is constant but for rounding, one with variance at most
    /// n ε variance + (n ε mean)² for machine precision ε, keeps its scale: it is divided by 1.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] where a sum over a feature leaves the range of double precision.
    pub fn fit(&self, features: &Matrix) -> Result<FittedStandardScaler, Error> {
        let n = features.n_rows() as f64;
        let n_features = features.n_features();
        let mean = features.means();
        check_overflow(&mean)?;
        // The deviations' own sum corrects for the rounding of the mean (Chan, Golub and LeVeque, 1983).
        let (mut squares, mut sums) = (vec![0.0; n_features], vec![0.0; n_features]);
        for row in features.rows() {
            for (feature, (value, mean)) in row.iter().zip(&mean).enumerate() {
                let deviation = value - mean;
                sums[feature] += deviation;
                squares[feature] += deviation * deviation;
            }
        }
        let variances: Vec<f64> =
            squares.iter().zip(&sums).map(|(squares, sum)| (squares - sum * sum / n) / n).collect();
        check_overflow(&variances)?;
        let scale = |(variance, mean): (&f64, &f64)| {
            let rounding = n * f64::EPSILON * variance + (n * mean * f64::EPSILON).powi(2);
            if *variance <= rounding { 1.0 } else { variance.sqrt() }
        };
        let scale = variances.iter().zip(&mean).map(scale).collect();
        Ok(FittedStandardScaler {
            mean: if self.with_mean { mean } else { vec![0.0; n_features] },
            scale: if self.with_std { scale } else { vec![1.0; n_features] },
        })
    }
}

impl FittedStandardScaler {
    /// A scaler from what it subtracts from each feature and what it divides by.
    ///
    /// # Errors
    ///
    /// [`Error::ParameterCount`] for another number of scales than of means; [`Error::InvalidParameter`] for a mean that is not finite or a
    /// scale that is not finite and above 0.
    pub fn from_parts(mean: Vec<f64>, scale: Vec<f64>) -> Result<Self, Error> {
        check_count("scales", mean.len(), scale.len())?;
        check_each("mean", &mean, f64::is_finite)?;
        check_each("scale", &scale, |scale| scale.is_finite() && scale > 0.0)?;
        Ok(Self { mean, scale })
    }

    /// What is subtracted from each feature: its mean, or 0 without `with_mean`.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// What each feature is divided by: its standard deviation, or 1 where that is 0 and without `with_std`.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// (features − mean) / scale, of the shape given.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a result overflows.
    pub fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        features.check_features(self.mean.len())?;
        let mut scaled = Vec::with_capacity(features.values().len());
        for row in features.rows() {
            let of_features = self.mean.iter().zip(&self.scale);
            scaled.extend(row.iter().zip(of_features).map(|(value, (mean, scale))| (value - mean) / scale));
        }
        Matrix::new(scaled, self.mean.len())
    }
}

impl Transformer for StandardScaler {
    type Fitted = FittedStandardScaler;

    fn fit(&self, features: &Matrix) -> Result<FittedStandardScaler, Error> {
        self.fit(features)
    }
}

impl FittedTransformer for FittedStandardScaler {
    fn n_features_in(&self) -> usize {
        self.mean.len()
    }

    fn n_features_out(&self) -> usize {
        self.mean.len()
    }

    fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.transform(features)
    }
}
