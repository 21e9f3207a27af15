use std::error::Error as StdError;

use crate::{
    Layer, Unscored, Want,
    request::{Generation, ReadAt, Sampling, TokenId},
};

/// What ends a run of a [`TextModel`](crate::TextModel).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackboneError {
    /// No vocabulary entry is exactly this label.
    #[error("label {label:?} is not one vocabulary entry; the tokenizer splits it into {pieces:?}")]
    Label {
        /// The label asked for.
        label: String,
        /// How the tokenizer splits it.
        pieces: Vec<String>,
    },
    /// No label can be read: the model has no logits over a vocabulary, as an encoder has none.
    #[error("label {label:?} cannot be read, since this model does not support {what}")]
    NoLogits {
        /// The label asked for.
        label: String,
        /// What the model cannot bring, and why.
        what: &'static str,
    },
    /// A request names a layer that the model does not have.
    #[error("request {request}: {layer} does not exist, the model has layers 0 to {n_layers}")]
    Layer {
        /// Number of the request.
        request: usize,
        /// The layer asked for.
        layer: Layer,
        /// The model's last layer.
        n_layers: usize,
    },
    /// A request names a token that the vocabulary does not have.
    #[error("request {request}: token {token} does not exist, the head has {d_vocab} rows")]
    Token {
        /// Number of the request.
        request: usize,
        /// The token asked for.
        token: TokenId,
        /// Rows of the head.
        d_vocab: usize,
    },
    /// A request contradicts itself, e.g. steps are to be read but nothing is to be generated.
    #[error("request {request}: {problem}")]
    Request {
        /// Number of the request.
        request: usize,
        /// What is wrong with it.
        problem: RequestProblem,
    },
    /// A request asks for what this model does not support, e.g. label logits of a model that only writes text.
    #[error("request {request}: this model does not support {what}")]
    Unsupported {
        /// Number of the request.
        request: usize,
        /// What is asked for, e.g. `label logits`.
        what: &'static str,
    },
    /// One of several copies of a model ([`Replicas`](crate::model::Replicas)) panicked.
    #[error("copy {copy} of the model panicked: {message}")]
    CopyPanicked {
        /// Which one, the first being 0.
        copy: usize,
        /// What the panic said.
        message: String,
    },
    /// A prompt whose tokens were asked for has none, or the chat template refuses it.
    /// An item with this prompt is unscored with this reason.
    #[error("the prompt cannot be read: {0}")]
    Prompt(Unscored),
    /// The model itself failed.
    #[error("the model failed: {0}")]
    Model(#[source] Box<dyn StdError + Send + Sync>),
    /// The model itself failed at one request, e.g. a service that takes no more of them.
    #[error("request {request}: the model failed: {source}")]
    Failed {
        /// Number of the request.
        request: usize,
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl BackboneError {
    /// Number of the request that the error names, in the order in which requests were taken; `None` if it names none.
    #[must_use]
    pub fn request(&self) -> Option<usize> {
        match self {
            Self::Layer { request, .. }
            | Self::Token { request, .. }
            | Self::Request { request, .. }
            | Self::Unsupported { request, .. }
            | Self::Failed { request, .. } => Some(*request),
            Self::Label { .. }
            | Self::NoLogits { .. }
            | Self::CopyPanicked { .. }
            | Self::Prompt(_)
            | Self::Model(_) => None,
        }
    }

    /// The same error with the number that its request has in a longer run, if it names one.
    pub(crate) fn renumbered(mut self, numbers: &[usize]) -> Self {
        if let Self::Layer { request, .. }
        | Self::Token { request, .. }
        | Self::Request { request, .. }
        | Self::Unsupported { request, .. }
        | Self::Failed { request, .. } = &mut self
            && let Some(&number) = numbers.get(*request)
        {
            *request = number;
        }
        self
    }
}

/// How a request contradicts itself.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestProblem {
    /// Steps are to be read, but nothing is to be generated.
    #[error("it reads generation steps but generates nothing")]
    StepsWithoutGeneration,
    /// States of a text are to be read, but nothing is to be generated.
    #[error("it reads states of a reply but generates nothing")]
    ReplyWithoutGeneration,
    /// A text that has no character: a stop text or a continuation.
    #[error("a {0} is empty")]
    EmptyText(&'static str),
    /// The same labels are read twice with one lens at one position.
    #[error("it reads the same labels twice, with the same lens at the same position")]
    LabelsTwice,
    /// No label or no layer.
    #[error("it reads labels but names no {0}")]
    NothingToRead(&'static str),
    /// Layers not ascending, or one twice.
    #[error("its layers are not strictly ascending")]
    LayerOrder,
    /// The attention of the embeddings.
    #[error("it asks for the attention entropy of layer 0, the embeddings, which attend to nothing")]
    NoAttention,
    /// `max_new_tokens` is 0.
    #[error("it generates 0 tokens")]
    NoNewTokens,
    /// A sampling setting is out of its range.
    #[error("sampling setting {setting} is {found}, expected {expected}")]
    Sampling {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// The range.
        expected: &'static str,
    },
}

impl Want {
    /// Says what no model can bring, whichever it is: layers that do not ascend, the attention entropy of layer 0, label reads without
    /// labels or layers or with the same labels twice, what needs a text where none is written, empty continuations, and what
    /// [`Generation::check`] refuses. Whether it has the layers and tokens, each model checks for itself.
    ///
    /// # Errors
    /// The first [`RequestProblem`].
    pub fn check(&self) -> Result<(), RequestProblem> {
        let ascending = |layers: &[Layer]| layers.is_sorted_by(|a, b| a < b);
        if !ascending(&self.attention_entropy) {
            return Err(RequestProblem::LayerOrder);
        }
        if self.attention_entropy.contains(&Layer(0)) {
            return Err(RequestProblem::NoAttention);
        }
        for (place, read) in self.labels.iter().enumerate() {
            if read.tokens.is_empty() {
                return Err(RequestProblem::NothingToRead("label"));
            }
            if read.layers.is_empty() {
                return Err(RequestProblem::NothingToRead("layer"));
            }
            if !ascending(&read.layers) {
                return Err(RequestProblem::LayerOrder);
            }
            if read.at != ReadAt::PromptEnd && self.generate.is_none() {
                return Err(RequestProblem::StepsWithoutGeneration);
            }
            if self.labels[..place].iter().any(|before| before.same_place(read)) {
                return Err(RequestProblem::LabelsTwice);
            }
        }
        if !self.reply.is_empty() && self.generate.is_none() {
            return Err(RequestProblem::ReplyWithoutGeneration);
        }
        if self.continuations.iter().any(String::is_empty) {
            return Err(RequestProblem::EmptyText("continuation"));
        }
        self.generate.as_ref().map_or(Ok(()), Generation::check)
    }
}

impl Generation {
    /// Says what cannot be written: a text of no tokens, one up to an empty stop text, and what [`Sampling::check`] refuses.
    ///
    /// # Errors
    /// The first [`RequestProblem`].
    pub fn check(&self) -> Result<(), RequestProblem> {
        if self.max_new_tokens == 0 {
            return Err(RequestProblem::NoNewTokens);
        }
        if self.stop.iter().any(String::is_empty) {
            return Err(RequestProblem::EmptyText("stop text"));
        }
        self.sampling.check()
    }
}

impl Sampling {
    /// Says what is out of range: a temperature that is not finite and above 0, a `top_k` of 0, a `top_p` outside (0, 1].
    /// Greedy writing has nothing to check.
    ///
    /// # Errors
    /// [`RequestProblem::Sampling`] with the first such setting.
    pub fn check(&self) -> Result<(), RequestProblem> {
        let Self::Random { temperature, top_k, top_p, .. } = *self else { return Ok(()) };
        let problem = |setting, found, expected| Err(RequestProblem::Sampling { setting, found, expected });
        if !(temperature.is_finite() && temperature > 0.0) {
            return problem("temperature", temperature, "a finite number above 0");
        }
        if top_k == Some(0) {
            return problem("top_k", 0.0, "at least 1");
        }
        match top_p {
            Some(p) if !(p > 0.0 && p <= 1.0) => problem("top_p", p, "above 0, at most 1"),
            _ => Ok(()),
        }
    }
}
