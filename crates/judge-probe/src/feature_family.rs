use serde::{Deserialize, Serialize};

use crate::{Error, FittedTransformer, Matrix, Transformer};

/// What a pooled state contributes as features. It learns nothing, but knows the states' size once fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureFamily {
    /// The state as it is, `[n_rows, d_model]`.
    #[default]
    State,
    /// Three numbers of each state, `[n_rows, 3]`: its Euclidean norm, the variance of its coordinates (dividing by their number),
    /// and the entropy in nats of the softmax of its coordinates, which are clipped to ±50 for it.
    Statistics,
}

/// A [`FeatureFamily`] of states of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FittedFeatureFamily {
    family: FeatureFamily,
    n_features: usize,
}

impl Transformer for FeatureFamily {
    type Fitted = FittedFeatureFamily;

    fn fit(&self, features: &Matrix) -> Result<FittedFeatureFamily, Error> {
        Ok(FittedFeatureFamily { family: *self, n_features: features.n_features() })
    }
}

impl FittedTransformer for FittedFeatureFamily {
    fn n_features_in(&self) -> usize {
        self.n_features
    }

    fn n_features_out(&self) -> usize {
        match self.family {
            FeatureFamily::State => self.n_features,
            FeatureFamily::Statistics => 3,
        }
    }

    fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        features.check_features(self.n_features)?;
        match self.family {
            FeatureFamily::State => Ok(features.clone()),
            FeatureFamily::Statistics => Matrix::new(features.rows().flat_map(statistics).collect(), 3),
        }
    }
}

/// Norm, variance, entropy.
fn statistics(state: &[f64]) -> [f64; 3] {
    // Scaled first: squares of large coordinates would overflow, and of small ones vanish.
    let largest = state.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let norm =
        if largest == 0.0 { 0.0 } else { largest * state.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt() };
    let n = state.len() as f64;
    let mean = state.iter().map(|x| x / n).sum::<f64>();
    let variance = state.iter().map(|x| (x - mean).powi(2) / n).sum();

    let clipped = || state.iter().map(|x| x.clamp(-50.0, 50.0));
    let highest = clipped().fold(f64::NEG_INFINITY, f64::max);
    // ln Σ exp(x − highest) − Σ p (x − highest), which has no logarithm of a vanished probability.
    let (total, weighted) = clipped().map(|x| x - highest).fold((0.0, 0.0), |(total, weighted), x| {
        let weight = f64::exp(x);
        (total + weight, weighted + weight * x)
    });
    [norm, variance, f64::ln(total) - weighted / total]
}
