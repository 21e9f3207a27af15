//! The transformers that a probe can be saved with: a closed set, because a file must be able to name each.
//!
//! Transformers outside the set, such as one of a user's own, can stand in a [`Pipeline`](crate::Pipeline) and be evaluated; they cannot
//! be kept in a probe. What the tensors of each are called in a file is `saved_probe::stages`'.

use crate::{
    Error, FittedBlocks, FittedFeatureFamily, FittedPca, FittedStandardScaler, FittedTransformer, Matrix, Precision,
};

/// A transformer that a [`FittedProbe`](crate::FittedProbe) can keep: what stands before the classifier of a pipeline, and what a
/// [`LayerSelection`](crate::LayerSelection) chooses for the layers.
///
/// Nothing is learnt here: each variant holds what was fitted. All of them take `[n_rows, n_features_in]` to `[n_rows, n_features_out]`,
/// row by row, so that the image of a row does not depend on the rows beside it.
///
/// ```
/// use judge_probe::{FittedStandardScaler, FittedTransformer, Matrix, ProbeStage};
///
/// let stage = ProbeStage::from(FittedStandardScaler::from_parts(vec![1.0], vec![2.0])?);
/// assert_eq!(stage.transform(&Matrix::new(vec![5.0], 1)?)?.values(), [2.0]);
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeStage {
    /// Features brought to one scale.
    ///
    /// (x − mean) / scale, the number of features unchanged.
    Scaler(FittedStandardScaler),
    /// Their place along principal components.
    ///
    /// From `n_features` to `n_components`.
    Pca(FittedPca),
    /// Each signal's features by its family, side by side.
    ///
    /// A family for states, for instance, and another for attention entropies.
    Blocks(FittedBlocks<FittedFeatureFamily>),
}

impl ProbeStage {
    /// Whether every row is its own image: states as they are.
    ///
    /// Such a stage is left out of a probe, which saves a copy of the features for every prediction. A scaler of means 0 and scales 1 is
    /// not looked for.
    pub(crate) fn is_identity(&self) -> bool {
        let state = |family: &FittedFeatureFamily| matches!(family, FittedFeatureFamily::State { .. });
        matches!(self, Self::Blocks(blocks) if blocks.blocks().iter().all(state))
    }

    /// The image of features that have this precision. A scaler keeps to it, see [`Precision`]; the others compute in double precision.
    ///
    /// The features must have been rounded to the precision already. Means and scales are used as they are: whether they are rounded is
    /// for whoever makes the scaler.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a scaled value leaves the range of the precision, which for half
    /// precision ends at 65504.
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

    /// The precision of the image of features that have this one: a scaler keeps to it, the others compute in double precision.
    pub(crate) fn precision_out(&self, precision: Precision) -> Precision {
        match self {
            Self::Scaler(_) => precision,
            Self::Pca(_) | Self::Blocks(_) => Precision::F64,
        }
    }

    fn own(&self) -> &dyn FittedTransformer {
        match self {
            Self::Scaler(scaler) => scaler,
            Self::Pca(pca) => pca,
            Self::Blocks(blocks) => blocks,
        }
    }
}

/// In double precision. A probe transforms by `transform_in`, which is the same where its precision is double.
impl FittedTransformer for ProbeStage {
    fn n_features_in(&self) -> usize {
        self.own().n_features_in()
    }

    fn n_features_out(&self) -> usize {
        self.own().n_features_out()
    }

    fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.own().transform(features)
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
    /// Copies the components of each block. The result transforms to the same bits.
    fn from(blocks: FittedBlocks<FittedPca>) -> Self {
        let families: Vec<_> = blocks.blocks().iter().cloned().map(FittedFeatureFamily::Pca).collect();
        Self::Blocks(families.into())
    }
}
