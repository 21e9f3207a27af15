//! A transformer for each of several runs of neighbouring features, so that layers side by side keep their own PCA or summary. Blocks lie
//! side by side without gaps and cover the row; the images do too, in the same order.
//!
//! Blocks know widths and order, not layers: which signal a block holds is the caller's to remember.

use crate::{Error, FittedTransformer, Matrix, Transformer};

/// Transforms neighbouring features block by block and puts the images side by side, as `sklearn.compose.ColumnTransformer` does for
/// ranges of columns: what several layers contribute to one probe is transformed layer by layer.
///
/// The image is `[n_rows, n_features_out]` with the sum of the blocks' widths. Each transformer sees its own columns alone, so a PCA of
/// each layer costs less than one of all together and keeps large layers from crowding out small ones.
///
/// ```
/// use judge_probe::{Block, Blocks, FittedTransformer, Matrix, StandardScaler, Transformer};
///
/// let features = Matrix::from_rows([[0.0, 10.0, 5.0], [2.0, 30.0, 7.0]])?;
/// let block = |n_features| Block { n_features, transformer: StandardScaler::default() };
/// let scaled = Blocks { blocks: vec![block(1), block(2)] }.fit(&features)?.transform(&features)?;
/// assert_eq!(scaled.values(), [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]);
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[doc(alias = "ColumnTransformer")]
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks<T> {
    /// The blocks, which together cover all features in order.
    pub blocks: Vec<Block<T>>,
}

/// Features that are transformed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<T> {
    /// How many there are.
    ///
    /// At least 1: a block without features has no matrix.
    pub n_features: usize,
    /// What becomes of them.
    pub transformer: T,
}

/// Fitted [`Blocks`].
///
/// Their widths are those of the fitted transformers and are not stored besides.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedBlocks<F> {
    /// In the order of the features.
    blocks: Vec<F>,
}

impl<F> FittedBlocks<F> {
    /// The transformer of each block.
    pub fn blocks(&self) -> &[F] {
        &self.blocks
    }
}

impl<F> From<Vec<F>> for FittedBlocks<F> {
    /// Blocks that have been fitted one by one, in the order of their features.
    fn from(blocks: Vec<F>) -> Self {
        Self { blocks }
    }
}

impl<T: Transformer> Transformer for Blocks<T> {
    type Fitted = FittedBlocks<T::Fitted>;

    /// Besides the errors of the transformers, [`Error::FeatureCount`] where the blocks do not cover the features.
    fn fit(&self, features: &Matrix) -> Result<Self::Fitted, Error> {
        let widths: Vec<usize> = self.blocks.iter().map(|block| block.n_features).collect();
        let parts = columns(features, &widths)?;
        let fitted = self.blocks.iter().zip(parts).map(|(block, part)| block.transformer.fit(&part));
        Ok(FittedBlocks { blocks: fitted.collect::<Result<_, Error>>()? })
    }
}

impl<F: FittedTransformer> FittedTransformer for FittedBlocks<F> {
    /// Saturates, since widths may come from a file; no matrix has so many columns.
    fn n_features_in(&self) -> usize {
        self.blocks.iter().map(F::n_features_in).fold(0, usize::saturating_add)
    }

    fn n_features_out(&self) -> usize {
        self.blocks.iter().map(F::n_features_out).fold(0, usize::saturating_add)
    }

    fn transform(&self, features: &Matrix) -> Result<Matrix, Error> {
        let widths: Vec<usize> = self.blocks.iter().map(F::n_features_in).collect();
        let parts = columns(features, &widths)?;
        let images = self.blocks.iter().zip(parts).map(|(block, part)| block.transform(&part));
        Matrix::beside(&images.collect::<Result<Vec<_>, Error>>()?)
    }
}

/// Cuts features into blocks of these widths, which must cover them.
///
/// Every block is copied, `[n_rows, width]`; a single one is cloned whole.
///
/// # Errors
///
/// [`Error::FeatureCount`] with the sum of the widths; [`Error::Empty`] for a width of 0 among several.
fn columns(features: &Matrix, widths: &[usize]) -> Result<Vec<Matrix>, Error> {
    let expected = widths.iter().fold(0_usize, |sum, &width| sum.saturating_add(width));
    features.check_features(expected)?;
    if let [_] = widths {
        return Ok(vec![features.clone()]);
    }
    let mut start = 0;
    let cut = |&width: &usize| {
        let block = start..start + width;
        start += width;
        Matrix::new(features.rows().flat_map(|row| &row[block.clone()]).copied().collect(), width)
    };
    widths.iter().map(cut).collect()
}
