//! Principal components of centred features by a singular value decomposition.
//!
//! The decomposition is `products`', the signs are fixed here. A fit costs O(n_rows n_features m) for the lesser m of the
//! two sides. Whitening and randomised solvers are absent.

use crate::estimators::linear_functions::linear_functions;
use crate::estimators::parameters::{check_count, check_each};
use crate::matrices::products::{check_squares, right_singular_vectors};
use crate::{Error, FittedTransformer, Matrix, Transformer};

/// Principal component analysis, as `sklearn.decomposition.PCA` with `svd_solver="full"` and without whitening; signs are
/// those of release 1.5 and later.
///
/// ```
/// use judge_probe::{FittedTransformer, Matrix, Pca, Transformer};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0, 1.0], [3.0, 5.0], [6.0, 9.0]])?;
/// let pca = Pca { n_components: 1 }.fit(&features)?;
/// assert_eq!(pca.components().n_rows(), 1);
/// assert!((pca.components().values()[1] - 0.8).abs() < 1e-12);
/// assert!((pca.transform(&features)?.values()[2] - 5.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pca {
    /// How many directions to keep: at least 1, and at most the lesser number of rows and of features.
    pub n_components: usize,
}

/// The directions that a [`Pca`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedPca {
    mean: Vec<f64>,
    /// `[n_components, n_features]`.
    components: Matrix,
    /// What the mean comes to along each component, negated.
    /// With them a transform is one product, w·x + offset, and needs no centred copy of the rows.
    offsets: Vec<f64>,
    explained_variance: Vec<f64>,
    explained_variance_ratio: Vec<f64>,
}

impl Transformer for Pca {
    type Fitted = FittedPca;

    /// Finds all components, whatever `n_components`, because the shares of the variance need its total.
    /// By a singular value decomposition of the centred features.
    ///
    /// # Errors
    ///
    /// [`Error::ComponentCount`], also for a single row, which has no variance; [`Error::Overflow`]; [`Error::NoDecomposition`].
    fn fit(&self, features: &Matrix) -> Result<FittedPca, Error> {
        let (n_rows, n_features) = (features.n_rows(), features.n_features());
        let most = if n_rows > 1 { n_rows.min(n_features) } else { 0 };
        if !(1..=most).contains(&self.n_components) {
            return Err(Error::ComponentCount { n_components: self.n_components, most });
        }
        check_squares(features)?;
        let mean = features.means();
        let centred = features.rows().flat_map(|row| row.iter().zip(&mean).map(|(value, mean)| value - mean));
        let (values, mut components) = right_singular_vectors(&Matrix::new(centred.collect(), n_features)?)?;
        components.truncate(self.n_components * n_features);
        components.chunks_exact_mut(n_features).for_each(orient);
        let components = Matrix::new(components, n_features)?;
        let total: f64 = values.iter().map(|value| value * value).sum();
        let variances = values.iter().take(self.n_components).map(|value| value * value);
        let variance = variances.clone().map(|square| square / (n_rows - 1) as f64).collect();
        // Equal rows have no variance to share.
        let ratio = variances.map(|square| if total > 0.0 { square / total } else { 0.0 }).collect();
        FittedPca::from_parts(mean, components, variance, ratio)
    }
}

/// Either sign would do: the entry greatest in size, the first of equals, is made positive.
/// This is scikit-learn's `svd_flip` with `u_based_decision=False`.
fn orient(component: &mut [f64]) {
    let greater = |best: f64, value: &f64| if value.abs() > best.abs() { *value } else { best };
    if component.iter().fold(0.0, greater) < 0.0 {
        component.iter_mut().for_each(|value| *value = -*value);
    }
}

impl FittedPca {
    /// Components from what was saved of them: means `[n_features]`, components `[n_components, n_features]`, and the variance along
    /// each, absolute and as a share. That components are orthonormal is not checked.
    ///
    /// # Errors
    ///
    /// [`Error::ParameterCount`] for means or variances of another number; [`Error::InvalidParameter`] for a mean that is not finite or a
    /// variance that is not finite and at least 0; [`Error::NonFiniteFeature`] where the mean's place along a component overflows.
    pub fn from_parts(
        mean: Vec<f64>,
        components: Matrix,
        explained_variance: Vec<f64>,
        explained_variance_ratio: Vec<f64>,
    ) -> Result<Self, Error> {
        let (n_components, n_features) = (components.n_rows(), components.n_features());
        let (variance, ratio) = ("explained variance", "share of the variance");
        for (name, values, expected) in [
            ("mean", &mean, n_features),
            (variance, &explained_variance, n_components),
            (ratio, &explained_variance_ratio, n_components),
        ] {
            check_count(name, expected, values.len())?;
            check_each(name, values, |value| value.is_finite() && (name == "mean" || value >= 0.0))?;
        }
        let along = linear_functions(&Matrix::new(mean.clone(), n_features)?, &components, &vec![0.0; n_components])?;
        let offsets = along.values().iter().map(|along| -along).collect();
        Ok(Self { mean, components, offsets, explained_variance, explained_variance_ratio })
    }

    /// The mean of each feature, `[n_features]`.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Orthonormal directions, `[n_components, n_features]`, by falling variance; in each the entry greatest in size is positive.
    pub fn components(&self) -> &Matrix {
        &self.components
    }

    /// The variance along each component, over n_rows − 1.
    pub fn explained_variance(&self) -> &[f64] {
        &self.explained_variance
    }

    /// The share of each component in the variance of all features, from 0 to 1; 0 where there is none to share.
    pub fn explained_variance_ratio(&self) -> &[f64] {
        &self.explained_variance_ratio
    }
}

impl FittedTransformer for FittedPca {
    fn n_features_in(&self) -> usize {
        self.components.n_features()
    }

    fn n_features_out(&self) -> usize {
        self.components.n_rows()
    }

    /// Each row's place along the components, from the mean.
    fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        linear_functions(features, &self.components, &self.offsets)
    }
}
