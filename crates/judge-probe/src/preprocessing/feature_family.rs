//! How a signal becomes the features of a probe: as it is, or reduced in one of three ways. Choosing among them is `layer_selection`'s.
//!
//! All families but PCA are fixed functions of one row: they learn its width and nothing else, so they cannot leak labels or other rows
//! into a test.

use serde::{Deserialize, Serialize};

use crate::{Error, FittedPca, FittedTransformer, Matrix, Pca, Transformer};

/// What a [`Signal`](judge_core::request::Signal), a pooled state or the attention entropies of a block's heads, contributes as features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureFamily {
    /// The signal as it is, `[n_rows, d_model]` of states, `[n_rows, n_heads]` of entropies.
    #[default]
    State,
    /// Three numbers of each state, `[n_rows, 3]`: its Euclidean norm, the variance of its coordinates (dividing by their number),
    /// and the entropy in nats of the softmax of its coordinates, which are clipped to ±50 for it.
    Statistics,
    /// The state's place along its principal components, `[n_rows, n_components]`, as [`Pca`] learns them from the rows fitted to alone.
    Pca {
        /// How many; the paper's 50.
        n_components: usize,
    },
    /// Three numbers of each row, `[n_rows, 3]`: the mean of its numbers, their standard deviation (dividing the squares by their number),
    /// and the largest. It is what INSPECTOR's scan of layers takes of heads' entropies.
    Summary,
}

/// A [`FeatureFamily`] of signals of one size.
///
/// Transforming a row of another width is [`Error::FeatureCount`].
#[derive(Debug, Clone, PartialEq)]
pub enum FittedFeatureFamily {
    /// The state as it is.
    State {
        /// The states' size.
        d_model: usize,
    },
    /// Its statistics.
    Statistics {
        /// The states' size.
        d_model: usize,
    },
    /// Its place along these components.
    Pca(FittedPca),
    /// Mean, deviation and maximum.
    Summary {
        /// The signals' size.
        width: usize,
    },
}

impl Transformer for FeatureFamily {
    type Fitted = FittedFeatureFamily;

    /// # Errors
    ///
    /// Those of [`Pca`]; the others only learn the states' size.
    fn fit(&self, features: &Matrix) -> Result<FittedFeatureFamily, Error> {
        let d_model = features.n_features();
        Ok(match *self {
            Self::State => FittedFeatureFamily::State { d_model },
            Self::Statistics => FittedFeatureFamily::Statistics { d_model },
            Self::Pca { n_components } => FittedFeatureFamily::Pca(Pca { n_components }.fit(features)?),
            Self::Summary => FittedFeatureFamily::Summary { width: d_model },
        })
    }
}

impl FittedTransformer for FittedFeatureFamily {
    fn n_features_in(&self) -> usize {
        match self {
            Self::State { d_model } | Self::Statistics { d_model } => *d_model,
            Self::Pca(pca) => pca.n_features_in(),
            Self::Summary { width } => *width,
        }
    }

    /// 3 for both summaries, whatever the width.
    fn n_features_out(&self) -> usize {
        match self {
            Self::State { d_model } => *d_model,
            Self::Statistics { .. } | Self::Summary { .. } => 3,
            Self::Pca(pca) => pca.n_features_out(),
        }
    }

    /// `[n_rows, width]` to `[n_rows, n_features_out]`. Statistics of finite features whose variance or norm overflows are
    /// [`Error::NonFiniteFeature`].
    fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        features.check_features(self.n_features_in())?;
        match self {
            Self::State { .. } => Ok(features.clone()),
            Self::Statistics { .. } => Matrix::new(features.rows().flat_map(statistics).collect(), 3),
            Self::Pca(pca) => pca.transform(features),
            Self::Summary { .. } => Matrix::new(features.rows().flat_map(summary).collect(), 3),
        }
    }
}

/// Mean, standard deviation, maximum.
///
/// Of an attention entropy each number is in nats. The deviation is `numpy.std` with its default `ddof=0`.
fn summary(row: &[f64]) -> [f64; 3] {
    let (mean, variance) = mean_and_variance(row);
    [mean, variance.sqrt(), row.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
}

/// Mean Σ x/n and variance Σ (x − mean)²/n, in two passes; a single number has variance 0. Each term is divided before the sum, so that
/// the sum of large coordinates does not overflow where their mean is finite.
fn mean_and_variance(row: &[f64]) -> (f64, f64) {
    let n = row.len() as f64;
    let mean = row.iter().map(|x| x / n).sum::<f64>();
    (mean, row.iter().map(|x| (x - mean).powi(2) / n).sum())
}

/// Norm, variance, entropy.
///
/// ‖x‖₂; Var x = Σ (x − mean)²/n; and H = −Σ p ln p with p = softmax(clip(x, −50, 50)), from nearly 0 (one coordinate far above the rest)
/// to ln n (all equal).
///
/// With z = x − max and S = Σ exp z, H = ln S − Σ z exp z / S, which is how it is computed. S lies between 1 and n.
fn statistics(state: &[f64]) -> [f64; 3] {
    // Scaled first: squares of large coordinates would overflow, and of small ones vanish.
    let largest = state.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let norm =
        if largest == 0.0 { 0.0 } else { largest * state.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt() };
    let (_, variance) = mean_and_variance(state);

    let clipped = || state.iter().map(|x| x.clamp(-50.0, 50.0));
    let highest = clipped().fold(f64::NEG_INFINITY, f64::max);
    // ln Σ exp(x − highest) − Σ p (x − highest), which has no logarithm of a vanished probability.
    let (total, weighted) = clipped().map(|x| x - highest).fold((0.0, 0.0), |(total, weighted), x| {
        let weight = f64::exp(x);
        (total + weight, weighted + weight * x)
    });
    [norm, variance, f64::ln(total) - weighted / total]
}
