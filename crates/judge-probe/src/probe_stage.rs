//! The transformers that a probe can be saved with: a closed set, because a file must be able to name each.

use crate::{
    Error, FittedBlocks, FittedFeatureFamily, FittedPca, FittedStandardScaler, FittedTransformer, Matrix, Precision,
};

/// A transformer that a [`FittedProbe`](crate::FittedProbe) can keep: what stands before the classifier of a pipeline, and what a
/// [`LayerSelection`](crate::LayerSelection) chooses for the layers.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeStage {
    /// Features brought to one scale.
    Scaler(FittedStandardScaler),
    /// Their place along principal components.
    Pca(FittedPca),
    /// Each signal's features by its family, side by side.
    Blocks(FittedBlocks<FittedFeatureFamily>),
}

impl ProbeStage {
    /// Whether every row is its own image: states as they are.
    pub(crate) fn is_identity(&self) -> bool {
        let state = |family: &FittedFeatureFamily| matches!(family, FittedFeatureFamily::State { .. });
        matches!(self, Self::Blocks(blocks) if blocks.blocks().iter().all(state))
    }

    /// The image of features that have this precision. A scaler keeps to it, see [`Precision`]; the others compute in double precision.
    pub(crate) fn transform_in(&self, features: &Matrix, precision: Precision) -> Result<Matrix, Error> {
        let Self::Scaler(scaler) = self else { return self.transform(features) };
        features.check_features(self.n_features_in())?;
        let round = |value| precision.round(value);
        let scale = |row: &[f64]| -> Vec<f64> {
            let parameters = scaler.mean().iter().zip(scaler.scale());
            row.iter().zip(parameters).map(|(value, (mean, scale))| round(round(value - mean) / scale)).collect()
        };
        Matrix::new(features.rows().flat_map(scale).collect(), features.n_features())
    }
}

/// In double precision. A probe transforms by [`transform_in`](ProbeStage::transform_in), which is the same where its precision is double.
impl FittedTransformer for ProbeStage {
    fn n_features_in(&self) -> usize {
        match self {
            Self::Scaler(scaler) => scaler.n_features_in(),
            Self::Pca(pca) => pca.n_features_in(),
            Self::Blocks(blocks) => blocks.n_features_in(),
        }
    }

    fn n_features_out(&self) -> usize {
        match self {
            Self::Scaler(scaler) => scaler.n_features_out(),
            Self::Pca(pca) => pca.n_features_out(),
            Self::Blocks(blocks) => blocks.n_features_out(),
        }
    }

    fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        match self {
            Self::Scaler(scaler) => scaler.transform(features),
            Self::Pca(pca) => pca.transform(features),
            Self::Blocks(blocks) => blocks.transform(features),
        }
    }
}

impl From<FittedStandardScaler> for ProbeStage {
    fn from(scaler: FittedStandardScaler) -> Self {
        Self::Scaler(scaler)
    }
}

impl From<FittedPca> for ProbeStage {
    fn from(pca: FittedPca) -> Self {
        Self::Pca(pca)
    }
}

impl From<FittedFeatureFamily> for ProbeStage {
    /// A single block.
    fn from(family: FittedFeatureFamily) -> Self {
        Self::Blocks(FittedBlocks::from(vec![family]))
    }
}

impl From<FittedBlocks<FittedFeatureFamily>> for ProbeStage {
    fn from(blocks: FittedBlocks<FittedFeatureFamily>) -> Self {
        Self::Blocks(blocks)
    }
}

impl From<FittedBlocks<FittedPca>> for ProbeStage {
    fn from(blocks: FittedBlocks<FittedPca>) -> Self {
        let families: Vec<_> = blocks.blocks().iter().cloned().map(FittedFeatureFamily::Pca).collect();
        Self::Blocks(families.into())
    }
}
