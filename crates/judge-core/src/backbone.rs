use std::error::Error as StdError;
use std::ops::ControlFlow;

use crate::{ModelInfo, Outcome, Prompt, Request};

/// Index of a vocabulary entry.
pub type TokenId = u32;

/// A frozen language model that can be read from the inside.
///
/// Plain host data crosses this seam: text in, small `f32` tables out. The reduction (a state times the
/// head's rows, a state pooled over positions) happens inside the backbone, so that a reading costs a few
/// hundred bytes, whatever the vocabulary. There is no tensor in the signature and no backend parameter:
/// device and dtype are run-time values, and `dyn Backbone` is all a judge ever sees.
///
pub trait Backbone: Send + Sync {
    /// The model behind it.
    fn info(&self) -> &ModelInfo;

    /// The vocabulary entry whose bytes are exactly those of `label`.
    ///
    /// # Errors
    /// [`BackboneError::Label`] if there is none; the error shows how the label is split.
    fn token(&self, label: &str) -> Result<TokenId, BackboneError>;

    /// How `label` is tokenised right after `prompt`, beside how the two are tokenised apart. Where they
    /// differ, a reading at the prompt's end looks at a token that the tokenizer would not have put there.
    ///
    /// # Errors
    /// What the template or the tokenizer says.
    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError>;

    /// Answers each request exactly once, in any order, as soon as it is known: `sink(index, outcome)` with the
    /// request's index in `requests`. [`ControlFlow::Break`] cancels: the sink is not called again and the
    /// result is `Ok`. An outcome never depends on the other requests, on their order, or on how the work
    /// was cut up.
    ///
    /// # Errors
    /// Only for what ends the run (a request that names a layer or token the model does not have, a device
    /// that failed). What is one item's fault is its [`Outcome::Unscored`].
    fn run(
        &self,
        requests: &[Request],
        sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
    ) -> Result<(), BackboneError>;
}

/// A label's tokenisation in context; see [`Backbone::label_in_context`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelInContext {
    /// The last pieces of the prompt and the pieces of the label, tokenised apart.
    pub apart: Vec<String>,
    /// The last pieces of prompt and label tokenised together.
    pub together: Vec<String>,
    /// Whether both ways give the same tokens.
    pub agrees: bool,
}

/// What ends a run of a [`Backbone`].
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
    /// A request names a layer that the model does not have.
    #[error("request {request}: {layer} does not exist, the model has layers 0 to {n_layers}")]
    Layer {
        /// Index of the request.
        request: usize,
        /// The layer asked for.
        layer: crate::Layer,
        /// The model's last layer.
        n_layers: usize,
    },
    /// A request names a token that the vocabulary does not have.
    #[error("request {request}: token {token} does not exist, the head has {d_vocab} rows")]
    Token {
        /// Index of the request.
        request: usize,
        /// The token asked for.
        token: TokenId,
        /// Rows of the head.
        d_vocab: usize,
    },
    /// A request contradicts itself, e.g. steps are to be read but nothing is to be generated.
    #[error("request {request}: {problem}")]
    Request {
        /// Index of the request.
        request: usize,
        /// What is wrong with it.
        problem: RequestProblem,
    },
    /// The model itself failed.
    #[error("the model failed: {0}")]
    Model(#[source] Box<dyn StdError + Send + Sync>),
}

/// How a request contradicts itself.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestProblem {
    /// Steps are to be read, but nothing is to be generated.
    #[error("it reads generation steps but generates nothing")]
    StepsWithoutGeneration,
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
