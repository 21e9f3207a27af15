//! The weights of a folder and of adapters over them, checked against the folder's description
//! before any is read.
//!
//! `model.rs`, `merge.rs` and tests open folders here, so there is one order of checks:
//!
//! ```text
//!  1  open the files            headers only, by names that the description has
//!  2  vocabulary of GGUF files  lowers d_vocab of the description
//!  3  names, then shapes        all missing and all unused names in one error
//!  4  adapters                  every change must be of a tensor that the description names
//!  5  dtype                     as asked for, or that of the base
//! ```
//!
//! This module does not read numbers (`weights/`) and does not look at `config.json` (`arch/`).
//!
//! Numbers are checked as they are taken, so a NaN in the last tensor is found when loading is
//! nearly done. Adapters are checked after the base, so an error about the base is never blamed on
//! an adapter.

use std::path::PathBuf;
use std::sync::Arc;

use crate::arch::Architecture;
use crate::folder::Folder;
use crate::weights::{self, Adapted, Adapter, HeadCounts, Store};
use crate::{Dtype, Error};

/// A folder's weights that agree with its description: every tensor that it names is there in its
/// shape, and no other but redundant ones. Adapters change tensors of the description only; the
/// shapes of their tensors are checked when they are taken.
pub(crate) struct CheckedWeights {
    /// The folder's own tensors, none taken yet.
    pub(crate) base: Box<dyn Store>,
    /// The adapters, in the order in which they are merged.
    pub(crate) adapters: Vec<Adapter>,
    /// The dtype that weights are rounded to: the one asked for, or else [`Store::stored_dtype`].
    pub(crate) dtype: Dtype,
}

/// The weights of a folder by the names that `spec` has for them. Only headers have been read;
/// names and shapes are not compared with `spec` yet.
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
    /// Opens the files of a folder and of adapters and checks both against `spec`.
    ///
    /// `spec` is changed in one case: a GGUF file may leave out the last rows of the embedding,
    /// which no token has, and then `d_vocab` becomes the number of rows that are there. Without a
    /// `dtype` a checkpoint that is f16 becomes bf16, which is warned of.
    ///
    /// # Errors
    /// Those of the files, [`Error::TensorNames`] and [`Error::Tensor`] for a base that is not what
    /// `spec` describes, and [`Error::Adapter`] for an adapter that is not read or changes other
    /// tensors.
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

    /// The base's tensors with the adapters merged as they are taken. It borrows both, so the
    /// caller uses [`Store::finish`] of `base` when it is done.
    pub(crate) fn merged(&mut self) -> Adapted<'_> {
        Adapted { base: &mut *self.base, adapters: &mut self.adapters }
    }
}
