//! Where a label is read, as LAGER reads it: at the end of the prompt, from some layers.

use burn::tensor::{Tensor, TensorData, activation};
use judge_core::request::TokenId;
use judge_core::{Layer, Lens};
use serde::Serialize;

use crate::train::check::Limits;
use crate::train::error::TrainError;
use crate::train::pass::Reads;

/// A set of labels, and where their logits come from. What is trained is what `LagerJudge` reads with the
/// variant `WeightedExpected`, or `LastExpected` where the last layer alone has a weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Labels {
    /// The token of each label: at least two, each once.
    pub tokens: Vec<TokenId>,
    /// The value of each label, for its expected value. `[tokens.len()]`.
    pub values: Vec<f64>,
    /// The layers, each with its weight: their logits are multiplied by it and added up. Empty: the last layer
    /// with weight 1.
    pub layers: Vec<(Layer, f64)>,
    /// How states of inner layers meet the head.
    pub lens: Lens,
}

impl Labels {
    /// Labels that are read at the last layer.
    #[must_use]
    pub fn last(tokens: Vec<TokenId>, values: Vec<f64>) -> Self {
        Self { tokens, values, layers: Vec::new(), lens: Lens::Raw }
    }

    /// Whether they are in range and fit the model.
    pub(super) fn check(&self, limits: Limits) -> Result<(), TrainError> {
        let n = self.tokens.len();
        if n < 2 {
            return Err(TrainError::setting("labels.tokens", format!("{n} labels"), "at least 2"));
        }
        if let Some(token) = self.tokens.iter().find(|&&token| token as usize >= limits.d_vocab) {
            let expected = format!("a token below the vocabulary's {}", limits.d_vocab);
            return Err(TrainError::setting("labels.tokens", token, expected));
        }
        if let Some((at, token)) = self.tokens.iter().enumerate().find(|(at, token)| self.tokens[..*at].contains(token))
        {
            let found = format!("token {token} again as label {at}");
            return Err(TrainError::setting("labels.tokens", found, "a token of its own for each label"));
        }
        if self.values.len() != n || self.values.iter().any(|value| !value.is_finite()) {
            let expected = format!("a finite number for each of the {n} labels");
            return Err(TrainError::setting("labels.values", format!("{:?}", self.values), expected));
        }
        for &(layer, weight) in &self.layers {
            if layer.0 > limits.n_layers || !weight.is_finite() {
                let expected = format!("layers 0 to {} with finite weights", limits.n_layers);
                return Err(TrainError::setting("labels.layers", format!("{layer} with weight {weight}"), expected));
            }
        }
        Ok(())
    }

    /// The layers that are read.
    pub(super) fn layers(&self) -> Vec<Layer> {
        self.layers.iter().map(|&(layer, _)| layer).collect()
    }

    /// Logarithms of the labels' probabilities at each place, `[places, labels]`.
    pub(super) fn log_probs(&self, reads: &Reads) -> Tensor<2> {
        let last = [(Layer(usize::MAX), 1.0)];
        let layers = if self.layers.is_empty() { &last[..] } else { &self.layers };
        activation::log_softmax(reads.label_logits(&self.tokens, layers, self.lens), 1)
    }

    /// The expected value at each place, `[places]`, from log-probabilities `[places, labels]`.
    pub(super) fn expected(&self, log_probs: Tensor<2>) -> Tensor<1> {
        let values: Vec<f32> = self.values.iter().map(|&value| value as f32).collect();
        let values = Tensor::<1>::from_data(TensorData::from(values.as_slice()), &log_probs.device());
        (log_probs.exp() * values.unsqueeze()).sum_dim(1).squeeze_dim::<1>(1)
    }
}
