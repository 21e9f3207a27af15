use super::KindWeights;
use crate::{
    Error, Layer, ModelInfo,
    reading::{LabelLogits, LabelStep},
};

/// How the label logits of layers become one score for each label.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Combined<'w> {
    /// Those of the last layer, with the model's final soft cap.
    Last,
    /// Those of one layer: plain products of its state with the head's rows.
    Layer(Layer),
    /// The sum of all layers by fitted weights; the plain products of the last one where only a temperature was fitted.
    Fitted(&'w KindWeights),
}

impl Combined<'_> {
    /// What the scores are divided by, where that was fitted.
    pub(crate) fn temperature(self) -> Option<f64> {
        match self {
            Self::Fitted(fitted) => Some(fitted.temperature),
            Self::Last | Self::Layer(_) => None,
        }
    }

    /// The scores of the labels at one step, before any temperature.
    ///
    /// # Errors
    /// [`Error::LayerNotRead`] for a reading without a layer that is needed.
    pub(crate) fn scores(self, labels: &LabelLogits, step: &LabelStep, model: &ModelInfo) -> Result<Vec<f64>, Error> {
        let row = |layer| {
            let row = labels.needed_row(step, layer)?;
            Ok::<_, Error>(row.iter().map(|&z| f64::from(z)).collect::<Vec<_>>())
        };
        let last = Layer(model.n_layers);
        match self {
            Self::Layer(layer) => row(layer),
            Self::Fitted(KindWeights { layers: Some(weights), .. }) => {
                let mut sum = vec![0.0; labels.tokens.len()];
                for (layer, weight) in weights.iter().enumerate() {
                    sum.iter_mut().zip(row(Layer(layer))?).for_each(|(sum, z)| *sum += weight * z);
                }
                Ok(sum)
            }
            Self::Fitted(KindWeights { layers: None, .. }) => row(last),
            Self::Last => {
                let capped = |z: f64| model.final_soft_cap.map_or(z, |cap| cap * libm::tanh(z / cap));
                Ok(row(last)?.into_iter().map(capped).collect())
            }
        }
    }
}
