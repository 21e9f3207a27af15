//! A model's reward head, made of the tensors that its description names.
//!
//! `model.rs` asks for it when the engine has taken its tensors. Heads stay on the host in f32, whatever the dtype of
//! the weights: they are a few rows, and `RewardHead` computes in f64.

use judge_arch::{Architecture, EncoderHeadSpec, HeadStepSpec, LabelsSpec, LinearSpec, ModelSpec, NormSpec};
use judge_core::Layer;
use judge_core::request::Pooling;
use judge_core::reward::{HeadStep, RewardHead};
use judge_kernels::functions::NormKind;

use crate::weights::Tensors;
use crate::{Dtype, Error};

/// The heads of labels that `spec` describes: those of inner layers from the lowest, then that of the last one; empty if it describes none.
///
/// # Errors
/// Those of reading the tensors, and [`Error::Head`].
pub(crate) fn take(spec: &Architecture, tensors: &mut dyn Tensors) -> Result<Vec<RewardHead>, Error> {
    match spec {
        Architecture::Decoder(spec) => spec.labels().map_or(Ok(Vec::new()), |head| of_decoder(head, spec, tensors)),
        Architecture::Encoder(spec) => {
            let head = spec.head.as_ref().map(|head| of_encoder(head, tensors));
            Ok(head.transpose()?.into_iter().collect())
        }
    }
}

/// A decoder's heads. Those of inner layers norm the state themselves.
fn of_decoder(spec: &LabelsSpec, model: &ModelSpec, tensors: &mut dyn Tensors) -> Result<Vec<RewardHead>, Error> {
    let d_model = model.d_model;
    let head = |name: &str, tensors: &mut dyn Tensors| {
        let weights = tensors.take(name, &[spec.labels.len(), d_model], Dtype::F32)?;
        RewardHead::new(spec.labels.clone(), weights, d_model).map_err(|source| Error::Head { source })
    };
    let mut heads = Vec::new();
    for (layer, name) in spec.inner.iter().flatten() {
        let step = norm(&model.norm, model.norm_kind, model.norm_eps, tensors)?;
        let inner = head(name, tensors)?.with_steps(Pooling::Last, vec![step]);
        heads.push(inner.map_err(|source| Error::Head { source })?.at_layer(Layer(*layer)));
    }
    heads.push(head(&spec.name, tensors)?);
    Ok(heads)
}

/// A norm as a step.
fn norm(spec: &NormSpec, kind: NormKind, eps: f64, tensors: &mut dyn Tensors) -> Result<HeadStep, Error> {
    let weights = tensors.take(&spec.name, &[spec.len], Dtype::F32)?;
    Ok(match kind {
        NormKind::RmsNorm => {
            HeadStep::RmsNorm { weights: weights.into_iter().map(|weight| spec.weight(weight)).collect(), eps }
        }
        NormKind::LayerNorm => HeadStep::Norm { weights, bias: optional(spec.bias.clone(), spec.len, tensors)?, eps },
    })
}

/// An encoder's head, step by step.
fn of_encoder(spec: &EncoderHeadSpec, tensors: &mut dyn Tensors) -> Result<RewardHead, Error> {
    let mut steps = Vec::with_capacity(spec.steps.len());
    let (weights, bias) = linear(&spec.out, tensors)?;
    for step in &spec.steps {
        steps.push(match step {
            HeadStepSpec::Linear(map) => {
                let (weights, bias) = linear(map, tensors)?;
                HeadStep::Linear { weights, bias }
            }
            HeadStepSpec::Norm(of, eps) => norm(of, NormKind::LayerNorm, *eps, tensors)?,
            HeadStepSpec::Activation(function) => HeadStep::Activation(*function),
        });
    }
    let head = RewardHead::new(spec.labels.clone(), weights, spec.out.d_in);
    let head = head.and_then(|head| head.with_steps(spec.pooling, steps));
    let head = if bias.is_empty() { head } else { head.and_then(|head| head.with_bias(bias)) };
    head.map_err(|source| Error::Head { source })
}

/// The matrix and the bias of a linear map; the bias is empty where there is none.
fn linear(map: &LinearSpec, tensors: &mut dyn Tensors) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let [mut weights, mut bias] = [Vec::new(), Vec::new()];
    for (name, shape) in map.tensors() {
        let of = if shape.len() == 2 { &mut weights } else { &mut bias };
        of.extend(tensors.take(&name, &shape, Dtype::F32)?);
    }
    Ok((weights, bias))
}

/// A vector, or an empty one where it has no name.
fn optional(name: Option<String>, len: usize, tensors: &mut dyn Tensors) -> Result<Vec<f32>, Error> {
    name.map_or(Ok(Vec::new()), |name| Ok(tensors.take(&name, &[len], Dtype::F32)?))
}
