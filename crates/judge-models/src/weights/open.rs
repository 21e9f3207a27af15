//! The choice of a reader for the weights of a model folder.
//!
//! `checked::store` calls [`open`] for decoders and [`open_encoder`] for encoders. `folder.rs` has
//! looked before whether there are safetensors or one GGUF file; safetensors win where both are
//! there. What leaves is a [`Store`] whose names are those of the description. Its headers are
//! checked, its numbers not read. Whether it has the right tensors is for `checked.rs` to find.
//!
//! ```text
//!  a .gguf file              ──► Gguf
//!  no quantization_config    ──► Checkpoint, renamed, idle tensors dropped, stacks cut into parts
//!  quantization_config       ──► the same Checkpoint inside Quantised
//! ```

use judge_arch::{EncoderSpec, StackSpec};
use judge_weights::Store;
use judge_weights::names::unwrapped;
use judge_weights::quantised::{self, Quantised};
use judge_weights::safetensors::Checkpoint;

use super::OwnNames;
use super::gguf::{Gguf, HeadCounts};
use crate::folder::{Folder, file};
use crate::{Error, WeightsError};

/// The weights of a decoder's folder, whichever way they are stored.
///
/// - `own`: what the model calls stored tensors.
/// - `heads`: what a GGUF file needs to undo the converter's order of rows.
/// - `stacks`: tensors that a file may have in the place of several of the model's.
/// - `idle`: beginnings of names of tensors that a file may have though the model takes none of
///   them. They are dropped.
///
/// A GGUF file says itself how its tensors are stored, so `quantization_config` is not read beside
/// one.
///
/// # Errors
/// Those of the files. `WeightsError::Unsupported` for a method of quantisation that is not read, and
/// for one that cannot hold stacks in a family whose experts are only ever stored in stacks.
pub(crate) fn open<'a>(
    folder: &Folder,
    own: &OwnNames,
    heads: HeadCounts,
    stacks: impl Iterator<Item = &'a StackSpec>,
    idle: impl Iterator<Item = String>,
) -> Result<Box<dyn Store>, Error> {
    if let Some(file) = folder.gguf() {
        let mut gguf = Gguf::new(file.clone(), heads)?;
        gguf.forget(idle);
        return Ok(Box::new(gguf));
    }
    let method = quantised::method(folder.config(), folder.file(file::CONFIG))?;
    let stacks: Vec<_> = stacks.collect();
    if method.as_ref().is_some_and(|method| !method.has_stacks) && stacks.iter().any(|stack| stack.is_only_form) {
        return Err(WeightsError::unsupported(
            folder.file(file::CONFIG),
            "quantization_config.quant_method",
            folder.config()["quantization_config"]["quant_method"].to_string(),
            "f32, f16 and bf16, and mxfp4 in gpt_oss, where experts are one tensor",
        )
        .into());
    }
    let mut stored = checkpoint(folder)?;
    stored.rename(|name| own.own(name))?;
    stored.forget(idle);
    Ok(match method {
        None => {
            stored.unstack(stacks)?;
            Box::new(stored)
        }
        Some(method) => Box::new(Quantised::new(stored, method, stacks)?),
    })
}

/// The weights of an encoder's folder, by the names that `spec` has for them; tensors that are not looked at, such as a head,
/// are left out, and those that are `brought` from elsewhere. Encoders are read from files of plain numbers and from GGUF files.
///
/// # Errors
/// Those of the files, `WeightsError::Unsupported` for a quantised folder, `WeightsError::Gguf` for a file of another model, and
/// `WeightsError::Tensor` if two tensors get one name.
pub(crate) fn open_encoder(folder: &Folder, spec: &EncoderSpec, brought: &[String]) -> Result<Box<dyn Store>, Error> {
    let own = |name: &str| spec.own_name(name).filter(|own| !brought.contains(own));
    if let Some(file) = folder.gguf() {
        let mut gguf = Gguf::new(file.clone(), HeadCounts::of_encoder(spec))?;
        gguf.check_encoder(spec)?;
        gguf.keep(|name| own(name).is_some());
        return Ok(Box::new(gguf));
    }
    if quantised::method(folder.config(), folder.file(file::CONFIG))?.is_some() {
        let (found, supported) = ("a quantised encoder", "plain numbers and GGUF files, for this model_type");
        return Err(
            WeightsError::unsupported(folder.file(file::CONFIG), "quantization_config", found, supported).into()
        );
    }
    let mut stored = checkpoint(folder)?;
    stored.rename(|name| own(&unwrapped(name)))?;
    Ok(Box::new(stored))
}

/// The tensors of a folder without a GGUF file: those of `model.safetensors`, or else every shard that
/// `model.safetensors.index.json` names, or else `pytorch_model.bin` or its shards. All headers are checked.
pub(crate) fn checkpoint(folder: &Folder) -> Result<Checkpoint, Error> {
    for (single, index) in [(file::WEIGHTS, file::WEIGHTS_INDEX), (file::PICKLE, file::PICKLE_INDEX)] {
        if folder.has(single) {
            return Ok(Checkpoint::of_file(folder.file(single))?);
        }
        if folder.has(index) {
            return Ok(Checkpoint::of_index(folder.file(index))?);
        }
    }
    // `Folder::open` has found one of them.
    Ok(Checkpoint::of_index(folder.file(file::WEIGHTS_INDEX))?)
}
