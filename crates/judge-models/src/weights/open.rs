//! The weights of a model folder, in whichever form they are stored.

use super::gguf::{Gguf, HeadCounts};
use super::quantised::{self, Quantised};
use super::{Checkpoint, Store};
use crate::Error;
use crate::arch::StackSpec;
use crate::folder::{Folder, file};

/// The weights of a folder, whichever way they are stored; of a vision-language folder those of the text model inside. `idle` are
/// beginnings of names of tensors that a file may have though the model does not take them.
///
/// What `config.json` says of quantisation is not about a GGUF file, which says itself how it is stored.
///
/// # Errors
/// Those of the files, and [`Error::Unsupported`] for a kind of quantisation that is not read.
pub(crate) fn open<'a>(
    folder: &Folder,
    is_tower: bool,
    heads: HeadCounts,
    stacks: impl Iterator<Item = &'a StackSpec>,
    idle: impl Iterator<Item = String>,
) -> Result<Box<dyn Store>, Error> {
    if let Some(name) = folder.gguf() {
        return Ok(Box::new(Gguf::open(folder.file(name), heads)?));
    }
    let format = quantised::format(folder)?;
    let stacks: Vec<_> = stacks.collect();
    if format.as_ref().is_some_and(|format| !format.has_stacks()) && stacks.iter().any(|stack| stack.is_only_form) {
        return Err(Error::Unsupported {
            path: folder.file(file::CONFIG),
            field: "quantization_config.quant_method".to_owned(),
            found: folder.config()["quantization_config"]["quant_method"].to_string(),
            supported: "f32, f16 and bf16, and mxfp4 in gpt_oss, where experts are one tensor",
        });
    }
    let mut checkpoint = Checkpoint::open(folder)?;
    if is_tower {
        checkpoint.text_tower();
    }
    checkpoint.forget(idle);
    Ok(match format {
        None => {
            checkpoint.unstack(stacks)?;
            Box::new(checkpoint)
        }
        Some(format) => Box::new(Quantised::new(checkpoint, format, stacks)?),
    })
}

/// The weights of a folder whose tensors have other names in the model, given by `own`; those without one are not looked at. Such folders, encoders, are
/// safetensors that are not quantised.
///
/// # Errors
/// Those of the files, and [`Error::Unsupported`] for quantised ones.
pub(crate) fn open_renamed(folder: &Folder, own: &dyn Fn(&str) -> Option<String>) -> Result<Box<dyn Store>, Error> {
    let refused = |path, field: &str, found: &str| {
        Err(Error::Unsupported {
            path,
            field: field.to_owned(),
            found: found.to_owned(),
            supported: "safetensors that are not quantised, for this model_type",
        })
    };
    if let Some(name) = folder.gguf() {
        return refused(folder.file(name), "general.file_type", "GGUF");
    }
    if quantised::format(folder)?.is_some() {
        return refused(folder.file(file::CONFIG), "quantization_config", "a quantised encoder");
    }
    let mut checkpoint = Checkpoint::open(folder)?;
    checkpoint.rename(own)?;
    Ok(Box::new(checkpoint))
}
