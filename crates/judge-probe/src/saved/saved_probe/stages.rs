//! Transformers in the file: how the description names them, and their tensors.
//!
//! This is the mapping between [`ProbeStage`] and the file, both ways, and nothing else: an identifier in the description for each kind,
//! and the names of its tensors. These strings and enum names are the format. To rename one breaks files that exist; readers refuse those
//! that they do not know.
//!
//! Tensors of stage i begin with `stages.i.`, those of its block j with `stages.i.j.`. Version 1 had no prefix, for its only scaler.

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::tensors::{Numbers, matrix, vector};
use crate::{Error, FittedBlocks, FittedFeatureFamily, FittedPca, FittedStandardScaler, ProbeStage};

/// One transformer, without its tensors.
///
/// In JSON `"scaler"`, `"pca"`, or `{"blocks": [...]}`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// Tensors `mean` and `scale`, `[n_features]`.
    Scaler,
    Pca,
    /// In the order of the features. Only blocks of PCA have tensors.
    Blocks(Vec<Block>),
}

/// One block, with the width of its signal where no tensor says it.
///
/// In JSON `{"state": 16}`, `{"statistics": 16}`, `{"summary": 12}`, or `"pca"`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Block {
    /// Features as they are.
    State(usize),
    /// Norm, variance and entropy of so many coordinates.
    Statistics(usize),
    /// Mean, deviation and maximum of so many numbers.
    Summary(usize),
    Pca,
}

/// Names of a scaler's tensors, without prefix; their order is that of `read`.
const SCALER: [&str; 2] = ["mean", "scale"];
/// Names of a PCA's tensors, without prefix; their order is that of `read_pca`.
const PCA: [&str; 4] = ["components", "explained_variance", "explained_variance_ratio", "mean"];

/// What the names of a stage's tensors begin with.
pub(super) fn prefix(stage: usize) -> String {
    format!("stages.{stage}.")
}

/// Blocks count from 0 within their stage, whether or not those before have tensors.
fn block_prefix(prefix: &str, block: usize) -> String {
    format!("{prefix}{block}.")
}

impl Stage {
    /// The description of a stage that is to be written.
    pub(super) fn of(stage: &ProbeStage) -> Self {
        let block = |family: &FittedFeatureFamily| match *family {
            FittedFeatureFamily::State { d_model } => Block::State(d_model),
            FittedFeatureFamily::Statistics { d_model } => Block::Statistics(d_model),
            FittedFeatureFamily::Summary { width } => Block::Summary(width),
            FittedFeatureFamily::Pca(_) => Block::Pca,
        };
        match stage {
            ProbeStage::Scaler(_) => Self::Scaler,
            ProbeStage::Pca(_) => Self::Pca,
            ProbeStage::Blocks(blocks) => Self::Blocks(blocks.blocks().iter().map(block).collect()),
        }
    }

    /// The names of its tensors.
    ///
    /// A file must have each of these and may have no others. Their number is bounded by the length of the description.
    pub(super) fn names(&self, prefix: &str) -> Vec<String> {
        let of_pca = |prefix: &str| PCA.map(|part| format!("{prefix}{part}"));
        match self {
            Self::Scaler => SCALER.map(|part| format!("{prefix}{part}")).to_vec(),
            Self::Pca => of_pca(prefix).to_vec(),
            Self::Blocks(blocks) => {
                let learnt = blocks.iter().enumerate().filter(|(_, block)| matches!(block, Block::Pca));
                learnt.flat_map(|(block, _)| of_pca(&block_prefix(prefix, block))).collect()
            }
        }
    }

    /// The stage, of which the tensors named are in the file.
    ///
    /// Whether a stage fits the one before it is checked by [`FittedProbe::new`](crate::FittedProbe::new).
    ///
    /// # Errors
    ///
    /// Those of the tensors, [`Error::ParameterCount`] and [`Error::InvalidParameter`] for a scaler, and those of
    /// [`FittedPca::from_parts`].
    pub(super) fn read(&self, file: &SafeTensors<'_>, prefix: &str) -> Result<ProbeStage, Error> {
        match self {
            Self::Scaler => {
                let [mean, scale] = SCALER.map(|part| vector(file, &format!("{prefix}{part}"), None));
                Ok(FittedStandardScaler::from_parts(mean?, scale?)?.into())
            }
            Self::Pca => Ok(read_pca(file, prefix)?.into()),
            Self::Blocks(blocks) => {
                let block = |(index, block): (usize, &Block)| {
                    Ok(match *block {
                        Block::State(d_model) => FittedFeatureFamily::State { d_model },
                        Block::Statistics(d_model) => FittedFeatureFamily::Statistics { d_model },
                        Block::Summary(width) => FittedFeatureFamily::Summary { width },
                        Block::Pca => FittedFeatureFamily::Pca(read_pca(file, &block_prefix(prefix, index))?),
                    })
                };
                let blocks = blocks.iter().enumerate().map(block).collect::<Result<Vec<_>, Error>>()?;
                Ok(FittedBlocks::from(blocks).into())
            }
        }
    }
}

/// The tensors of a stage.
///
/// The counterpart of `read`: the same names, in any order.
pub(super) fn tensors(stage: &ProbeStage, prefix: &str) -> Vec<Numbers> {
    match stage {
        ProbeStage::Scaler(scaler) => vec![
            Numbers::vector(format!("{prefix}mean"), scaler.mean()),
            Numbers::vector(format!("{prefix}scale"), scaler.scale()),
        ],
        ProbeStage::Pca(pca) => of_pca(pca, prefix),
        ProbeStage::Blocks(blocks) => {
            let of_block = |(index, family): (usize, &FittedFeatureFamily)| match family {
                FittedFeatureFamily::Pca(pca) => of_pca(pca, &block_prefix(prefix, index)),
                _ => Vec::new(),
            };
            blocks.blocks().iter().enumerate().flat_map(of_block).collect()
        }
    }
}

/// What a PCA is made of, each part a tensor. The offsets of its components are not kept: they follow from the rest.
///
/// Shapes: `components` `[n_components, n_features]`, `mean` `[n_features]`, both others `[n_components]`.
fn of_pca(pca: &FittedPca, prefix: &str) -> Vec<Numbers> {
    vec![
        Numbers::matrix(format!("{prefix}components"), pca.components()),
        Numbers::vector(format!("{prefix}explained_variance"), pca.explained_variance()),
        Numbers::vector(format!("{prefix}explained_variance_ratio"), pca.explained_variance_ratio()),
        Numbers::vector(format!("{prefix}mean"), pca.mean()),
    ]
}

/// The number of components is that of the matrix's rows; the lists must be as long.
///
/// The mean must be as long as a component.
fn read_pca(file: &SafeTensors<'_>, prefix: &str) -> Result<FittedPca, Error> {
    let [components, variance, ratio, mean] = PCA.map(|part| format!("{prefix}{part}"));
    let components = matrix(file, &components)?;
    let n_components = Some(components.n_rows());
    let (variance, ratio) = (vector(file, &variance, n_components)?, vector(file, &ratio, n_components)?);
    let mean = vector(file, &mean, Some(components.n_features()))?;
    FittedPca::from_parts(mean, components, variance, ratio)
}
