//! The weights of a folder and of adapters over them, checked against the folder's description before any of them is read.

use std::path::PathBuf;
use std::sync::Arc;

use crate::arch::Architecture;
use crate::folder::Folder;
use crate::weights::{self, Adapted, Adapter, HeadCounts, Store};
use crate::{Dtype, Error};

/// Every tensor that the description names is there, in its shape, and no other; adapters change nothing else.
pub(crate) struct CheckedWeights {
    pub(crate) base: Box<dyn Store>,
    pub(crate) adapters: Vec<Adapter>,
    /// The one asked for, or else the one that the base is nearest to.
    pub(crate) dtype: Dtype,
}

/// The weights of a folder by the names that `spec` has for them, not looked at yet.
///
/// # Errors
/// Those of the files, and [`Error::Unsupported`] for a form that is not read.
pub(crate) fn store(folder: &Folder, spec: &Architecture) -> Result<Box<dyn Store>, Error> {
    match spec {
        Architecture::Decoder(spec) => {
            weights::open(folder, spec.is_tower, HeadCounts::of(spec), spec.stacks(), spec.idle_tensors())
        }
        Architecture::Encoder(spec) => weights::open_renamed(folder, &|name| spec.own_name(name)),
    }
}

impl CheckedWeights {
    /// Opens the files of a folder and of adapters. Where a file leaves out rows of the vocabulary, so does the description from then on.
    ///
    /// # Errors
    /// Those of the files, [`Error::TensorNames`] and [`Error::Tensor`] for a base that is not what `spec` describes, and [`Error::Adapter`].
    pub(crate) fn open(
        folder: &Folder,
        spec: &mut Architecture,
        dtype: Option<Dtype>,
        adapters: &[PathBuf],
    ) -> Result<Self, Error> {
        let base = store(folder, spec)?;
        if let Architecture::Decoder(spec) = spec
            && let Some(rows) = base.vocabulary(&spec.embedding).filter(|rows| (1..spec.d_vocab).contains(rows))
        {
            tracing::info!(
                rows,
                d_vocab = spec.d_vocab,
                "the file leaves out rows of the vocabulary that no token has"
            );
            Arc::make_mut(spec).d_vocab = rows;
        }
        if dtype.is_none() && base.stored_dtype() == Dtype::Bf16 && base.has_f16() {
            tracing::warn!(
                folder = %folder.path().display(),
                "the checkpoint is f16: its weights are rounded to bf16, which has three bits less; dtype f32 keeps them"
            );
        }
        let tensors = spec.tensors();
        base.check(&tensors)?;
        let mut adapters = adapters.iter().map(|path| Adapter::open(path)).collect::<Result<Vec<_>, _>>()?;
        if let Architecture::Encoder(spec) = &*spec {
            adapters.iter_mut().for_each(|adapter| adapter.rename(|name| spec.own_name(name)));
        }
        adapters.iter().try_for_each(|adapter| adapter.check(&tensors))?;
        let dtype = dtype.unwrap_or_else(|| base.stored_dtype());
        Ok(Self { base, adapters, dtype })
    }

    /// The base's tensors with the adapters merged.
    pub(crate) fn merged(&mut self) -> Adapted<'_> {
        Adapted { base: &mut *self.base, adapters: &mut self.adapters }
    }
}
