//! A model's reward head, made of the tensors that its description names.
//!
//! `model.rs` asks for it when the engine has taken its tensors. Heads stay on the host in f32, whatever the dtype of
//! the weights: they are a few rows, and `RewardHead` computes in f64.

use judge_core::reward::{HeadStep, RewardHead};

use crate::arch::{Architecture, EncoderHeadSpec, HeadLinear, HeadStepSpec};
use crate::weights::Tensors;
use crate::{Dtype, Error};

/// The head of labels that `spec` describes, if it does.
///
/// # Errors
/// Those of reading the tensors, and [`Error::Head`].
pub(crate) fn take(spec: &Architecture, tensors: &mut dyn Tensors) -> Result<Option<RewardHead>, Error> {
    let d_model = spec.dimensions().d_model;
    match spec {
        Architecture::Decoder(spec) => {
            let Some(head) = spec.labels() else { return Ok(None) };
            let weights = tensors.take(&head.name, &[head.labels.len(), d_model], Dtype::F32)?;
            let head = RewardHead::new(head.labels.clone(), weights, d_model);
            head.map(Some).map_err(|source| Error::Head { source })
        }
        Architecture::Encoder(spec) => spec.head.as_ref().map(|head| of_encoder(head, d_model, tensors)).transpose(),
    }
}

/// An encoder's head, step by step.
fn of_encoder(spec: &EncoderHeadSpec, d_model: usize, tensors: &mut dyn Tensors) -> Result<RewardHead, Error> {
    let mut steps = Vec::with_capacity(spec.steps.len());
    let (weights, bias) = linear(&spec.out, [spec.labels.len(), d_model], tensors)?;
    for step in &spec.steps {
        steps.push(match step {
            HeadStepSpec::Linear(map) => {
                let (weights, bias) = linear(map, [d_model, d_model], tensors)?;
                HeadStep::Linear { weights, bias }
            }
            HeadStepSpec::Norm(norm, eps) => {
                let weights = tensors.take(&norm.name, &[norm.len], Dtype::F32)?;
                HeadStep::Norm { weights, bias: optional(norm.bias.clone(), norm.len, tensors)?, eps: *eps }
            }
            HeadStepSpec::Activation(function) => HeadStep::Activation(*function),
        });
    }
    let head =
        RewardHead::new(spec.labels.clone(), weights, d_model).and_then(|head| head.with_steps(spec.pooling, steps));
    let head = if bias.is_empty() { head } else { head.and_then(|head| head.with_bias(bias)) };
    head.map_err(|source| Error::Head { source })
}

/// The matrix and the bias of a linear map; the bias is empty where there is none.
fn linear(map: &HeadLinear, shape: [usize; 2], tensors: &mut dyn Tensors) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let weights = tensors.take(&map.weight(), &shape, Dtype::F32)?;
    Ok((weights, optional(map.bias(), shape[0], tensors)?))
}

/// A vector, or an empty one where it has no name.
fn optional(name: Option<String>, len: usize, tensors: &mut dyn Tensors) -> Result<Vec<f32>, Error> {
    name.map_or(Ok(Vec::new()), |name| Ok(tensors.take(&name, &[len], Dtype::F32)?))
}
