//! The value head that LLaMA-Factory saves in a file of its own: one number for a text, linear in its last state.
//!
//! It trains reward models as causal models with TRL's value head, and writes `value_head.safetensors` (or `.bin`) beside the
//! weights of the model or of the adapter. `checked.rs` opens it with the weights, `fingerprint.rs` hashes it,
//! `model.rs` makes it the model's reward head, and `merge.rs` copies it.
//!
//! ```text
//! v_head.summary.weight  [1, d_model]      v_head.summary.bias  [1]
//! reward = weight · state + bias           of the last token, whatever it is, behind the final norm
//! ```
//!
//! The model stays a causal one: its logits are read as ever.

use std::path::{Path, PathBuf};

use judge_arch::Architecture;
use judge_core::reward::RewardHead;

use crate::folder::{Folder, file};
use crate::weights::{Checkpoint, Store, Tensors};
use crate::{Dtype, Error, WeightsError};

/// Name of the matrix.
const WEIGHT: &str = "v_head.summary.weight";

/// Name of the bias.
const BIAS: &str = "v_head.summary.bias";

/// What its number is called. The file has no name for it.
const LABEL: &str = "value";

/// A value head whose names and shapes are right. Its numbers are not read yet.
pub(crate) struct ValueHead {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its tensors.
    pub(crate) tensors: Checkpoint,
}

impl ValueHead {
    /// The value head of a folder with adapters over it, if there is one: that of the last adapter which has one, or
    /// else the folder's.
    ///
    /// # Errors
    /// Those of the file, `WeightsError::TensorNames` and `WeightsError::Tensor` for other tensors than a head of this width has,
    /// and `WeightsError::Unsupported` beside a head of labels or an encoder.
    pub(crate) fn find(folder: &Folder, spec: &Architecture, adapters: &[PathBuf]) -> Result<Option<Self>, Error> {
        let folders = adapters.iter().rev().map(PathBuf::as_path).chain([folder.path()]);
        let names = [file::VALUE_HEAD, file::VALUE_HEAD_PICKLE];
        let mut paths = folders.flat_map(|folder: &Path| names.map(|name| folder.join(name)));
        let Some(path) = paths.find(|path| path.is_file()) else {
            return Ok(None);
        };
        let is_causal = matches!(spec, Architecture::Decoder(_)) && spec.labels().is_none();
        if !is_causal {
            let found = "a value head over a model with a head of labels, or over an encoder,";
            let supported = "one head, of a causal model: remove the file, if the other head is the one that counts";
            return Err(WeightsError::unsupported(path, "v_head", found, supported).into());
        }
        let tensors = Checkpoint::of_file(path.clone())?;
        let d_model = spec.dimensions().d_model;
        tensors.check(&[(WEIGHT.to_owned(), vec![1, d_model]), (BIAS.to_owned(), vec![1])])?;
        Ok(Some(Self { path, tensors }))
    }

    /// The head, in f32.
    ///
    /// # Errors
    /// `WeightsError::Tensor` for numbers that are not finite.
    pub(crate) fn take(&mut self, d_model: usize) -> Result<RewardHead, Error> {
        let weights = self.tensors.take(WEIGHT, &[1, d_model], Dtype::F32)?;
        let bias = self.tensors.take(BIAS, &[1], Dtype::F32)?;
        RewardHead::new(vec![LABEL.to_owned()], weights, d_model)
            .and_then(|head| head.with_bias(bias))
            .map_err(|source| Error::Head { source })
    }
}
