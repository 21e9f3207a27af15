//! Layer weights that are learned with the model: where they begin, and the file that they go to.

use std::path::Path;

use anyhow::{Result, ensure};
use judge_core::ModelInfo;
use judge_core::fit::{Alpha, LayerWeightFit};
use judge_core::lager::{Condition, LagerSettings, LayerWeights, TableOrigin};
use judge_models::train::ReadFrom;
use judge_models::{Dtype, LoadOptions, Model};

use super::cli::Method;
use super::prompt::AtEnd;

/// Where a loss reads labels: the last layer, or all with weights that it learns.
///
/// # Errors
/// If the weights to begin with are for another model, other layers or another lens.
pub(super) fn read_from(asked: &AtEnd, info: &ModelInfo) -> Result<ReadFrom> {
    let Some(layers) = &asked.layers else { return Ok(ReadFrom::default()) };
    let of = layers.states.layers(info.n_layers);
    let weights = match &layers.weights {
        None => vec![1.0 / of.len() as f64; of.len()],
        Some(first) => {
            first.check(&origin(asked, layers, info), layers.states)?;
            ensure!(
                first.weights().iter().all(|&weight| weight > 0.0),
                "--weights: a layer has weight 0, which nothing can be learned from; `judge fit` without --layer fits all"
            );
            first.weights().to_vec()
        }
    };
    Ok(ReadFrom { layers: of.into_iter().zip(weights).collect(), learns_weights: true, lens: layers.lens })
}

fn origin(asked: &AtEnd, layers: &LagerSettings, info: &ModelInfo) -> TableOrigin {
    TableOrigin::new(info, layers.lens, asked.scale.clone(), asked.template.id(), Condition::PromptEnd)
}

/// What weights say of the model that was written to `output`: an adapter of the base in `folder`, or a model. It is not loaded.
///
/// # Errors
/// If its fingerprint cannot be read.
pub(super) fn tuned(base: &ModelInfo, folder: &Path, output: &Path, method: Method) -> Result<ModelInfo> {
    let own = output.file_name().unwrap_or(output.as_os_str()).to_string_lossy();
    let (name, folder, adapters) = match method {
        Method::Lora => (format!("{}+{own}", base.name), folder, vec![output.to_owned()]),
        Method::Full => (own.into_owned(), output, Vec::new()),
    };
    let mut info = base.clone();
    info.fingerprint = Model::fingerprint_of(folder, &LoadOptions { adapters, ..LoadOptions::default() })?;
    (info.name, info.dtype) = (name, Dtype::F32.to_string());
    Ok(info)
}

/// Saves the weights, the softmax of `theta`, as those of the tuned model, learned from so many items with this share of the cross-entropy.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn save(
    path: &Path,
    theta: &[f32],
    asked: &AtEnd,
    (tuned, items, cross_entropy): (&ModelInfo, usize, f64),
) -> Result<()> {
    let Some(layers) = &asked.layers else { return Ok(()) };
    let theta = theta.iter().map(|&x| f64::from(x)).collect();
    let settings =
        LayerWeightFit { alpha: Alpha::Fixed(cross_entropy), states: layers.states, ..LayerWeightFit::paper() };
    let weights = LayerWeights::learned(theta, items, origin(asked, layers, tuned), settings)?;
    Ok(judge_data::save(path, &weights)?)
}
