//! Where labels are read, as LAGER reads them: at the end of the prompt, from some layers.

use burn::tensor::{Tensor, TensorData, activation};
use judge_core::request::TokenId;
use judge_core::{Layer, Lens};
use serde::Serialize;

use crate::Error;
use crate::train::check::Limits;
use crate::train::error::TrainError;
use crate::train::pass::Reads;

/// Which layers the logits of labels come from. What is trained is what `LagerJudge` reads with the variant
/// `WeightedExpected`, or `LastExpected` where the last layer alone has a weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReadFrom {
    /// The layers, each with its weight: their logits are multiplied by it and added up. Empty, the default: the
    /// last layer with weight 1.
    pub layers: Vec<(Layer, f64)>,
    /// Whether the weights are learnt too, by default not. They are then the softmax of numbers of which each begins as
    /// its weight's logarithm, as in LAGER, so the weights must be positive. [`Trainer::layer_weights`] has them.
    ///
    /// [`Trainer::layer_weights`]: crate::train::Trainer::layer_weights
    pub learns_weights: bool,
    /// How states of inner layers meet the head.
    pub lens: Lens,
}

impl ReadFrom {
    /// Whether the layers are the model's and their weights finite, and positive where they are learnt.
    pub(super) fn check(&self, limits: Limits) -> Result<(), TrainError> {
        let learns = self.learns_weights;
        let is_wrong = |&&(layer, weight): &&(Layer, f64)| {
            layer.0 > limits.n_layers || !weight.is_finite() || (learns && weight <= 0.0)
        };
        if learns && self.layers.len() < 2 {
            let found = format!("{} with weights that are learnt", self.layers.len());
            return Err(TrainError::setting("layers", found, "at least 2"));
        }
        match self.layers.iter().find(is_wrong) {
            None => Ok(()),
            Some((layer, weight)) => {
                let which = if learns { "positive" } else { "finite" };
                let expected = format!("layers 0 to {} with {which} weights", limits.n_layers);
                Err(TrainError::setting("layers", format!("{layer} with weight {weight}"), expected))
            }
        }
    }

    /// The numbers whose softmax is the weights, before the first step; `None` where they are not learnt.
    pub(in crate::train) fn first_weights(&self) -> Option<Vec<f32>> {
        self.learns_weights.then(|| self.layers.iter().map(|(_, weight)| weight.ln() as f32).collect())
    }

    /// The layers that are read besides the last.
    pub(in crate::train) fn layers(&self) -> Vec<Layer> {
        self.layers.iter().map(|&(layer, _)| layer).collect()
    }

    /// The logits of labels at each place, `[places, labels]`.
    pub(in crate::train) fn logits(&self, reads: &Reads, labels: &[TokenId]) -> Result<Tensor<2>, Error> {
        let last = [(Layer(usize::MAX), 1.0)];
        let layers = if self.layers.is_empty() { &last[..] } else { &self.layers };
        let learnt = reads.layer_weights().map(|numbers| activation::softmax(numbers, 0)); // [layers, 1]
        let weighted = reads.label_logits(labels, layers.iter().map(|&(layer, _)| layer), self.lens)?;
        let terms = weighted.into_iter().zip(layers).enumerate().map(|(at, (logits, &(_, weight)))| match &learnt {
            Some(learnt) => logits * learnt.clone().narrow(0, at, 1),
            None => logits.mul_scalar(weight),
        });
        terms.reduce(|sum, one| sum + one).ok_or(Error::NothingRead)
    }
}

/// A set of labels with values, and where they are read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Labels {
    /// The token of each label: at least two, each once.
    pub tokens: Vec<TokenId>,
    /// The value of each label, for its expected value. `[tokens.len()]`.
    pub values: Vec<f64>,
    /// Where their logits come from.
    pub from: ReadFrom,
}

impl Labels {
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
        if let Some(token) = repeated(&self.tokens) {
            let found = format!("token {token} twice");
            return Err(TrainError::setting("labels.tokens", found, "a token of its own for each label"));
        }
        if self.values.len() != n || self.values.iter().any(|value| !value.is_finite()) {
            let expected = format!("a finite number for each of the {n} labels");
            return Err(TrainError::setting("labels.values", format!("{:?}", self.values), expected));
        }
        self.from.check(limits)
    }

    /// Logarithms of the labels' probabilities at each place, `[places, labels]`.
    pub(super) fn log_probs(&self, reads: &Reads) -> Result<Tensor<2>, Error> {
        Ok(activation::log_softmax(self.from.logits(reads, &self.tokens)?, 1))
    }

    /// The expected value at each place, `[places]`, from log-probabilities `[places, labels]`.
    pub(super) fn expected(&self, log_probs: Tensor<2>) -> Tensor<1> {
        let values: Vec<f32> = self.values.iter().map(|&value| value as f32).collect();
        let values = Tensor::<1>::from_data(TensorData::from(values.as_slice()), &log_probs.device());
        (log_probs.exp() * values.unsqueeze()).sum_dim(1).squeeze_dim::<1>(1)
    }
}

/// The first token that is in a list twice.
pub(super) fn repeated(tokens: &[TokenId]) -> Option<TokenId> {
    tokens.iter().enumerate().find(|(at, token)| tokens[..*at].contains(token)).map(|(_, &token)| token)
}
