use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Layer, Lens, Pooling, Signal, TokenId};

/// The answer to one [`Request`](crate::Request).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// It was read.
    Read(Reading),
    /// This item could not be read; the run goes on.
    Unscored(Unscored),
}

/// What one pass over a prompt brought. It may hold more than was asked for when several judges share the pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Tokens of the prompt, control tokens included.
    pub prompt_tokens: usize,
    /// Label logits, if asked for.
    pub labels: Option<LabelLogits>,
    /// Pooled states, one per pair asked for.
    pub pooled: Vec<PooledState>,
    /// Attention entropies, one per layer asked for, ascending.
    #[serde(default)]
    pub attention_entropy: Vec<HeadEntropies>,
    /// New text, if asked for.
    pub generated: Option<Generated>,
}

/// Label logits of some layers at some steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelLogits {
    /// The labels' token ids, the order of the last axis. Shape `[n_scores]`.
    pub tokens: Vec<TokenId>,
    /// The layers, the order of the first axis of a step's table.
    pub layers: Vec<Layer>,
    /// How the states met the head.
    pub lens: Lens,
    /// One table per position read, in order. Empty if no step qualified.
    pub steps: Vec<LabelStep>,
}

/// The label logits at one position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelStep {
    /// Index of the generated token that this position predicts; 0 at the prompt's end.
    pub step: usize,
    /// That token, if one was generated.
    pub token: Option<TokenId>,
    /// Logits `[layers, n_scores]`, row-major: plain products with the head's rows, no soft-cap, no scale. Finite.
    pub logits: Vec<f32>,
}

/// One pooled state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PooledState {
    /// The layer.
    pub layer: Layer,
    /// The pooling.
    pub pooling: Pooling,
    /// Shape `[d_model]`. Finite.
    pub values: Vec<f32>,
}

/// How widely each head of a block spreads its attention.
///
/// Position `i` of a prompt spreads weights that add up to one over the positions it sees: those up to itself, within the block's
/// sliding window where there is one, by the softmax of the scaled and, where the model does so, soft-capped scores. The entropy of these
/// weights is `H_i = -Σ p ln p`, in nats: 0 if all lies on one position, `ln n` if it is the same on `n`. A head's value is the mean of
/// `H_i` over the prompt's tokens, control tokens included; new text has no part in it.
///
/// This is INSPECTOR's attention feature (arXiv 2601.22588), without the padding and the half precision of the published code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeadEntropies {
    /// The layer, which is the block's number counted from 1.
    pub layer: Layer,
    /// Shape `[n_heads]`; heads that share keys have an entropy each. From 0 to the logarithm of the prompt's tokens, within rounding.
    pub values: Vec<f32>,
}

/// Generated text and its tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// New token ids, without the end token. Shape `[n_new]`.
    pub tokens: Vec<TokenId>,
    /// Decoded text, control tokens left out.
    pub text: String,
    /// `text_ends[i]`: bytes of `text` that are complete once token `i` is known. Shape `[n_new]`, not decreasing.
    pub text_ends: Vec<usize>,
    /// Why it ended.
    pub finish: Finish,
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model wrote an end token.
    EndToken,
    /// `max_new_tokens` was reached.
    Length,
}

/// Why an item has no score. It is counted, kept and shown; no default stands in for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unscored {
    /// The kind of reason.
    pub reason: Reason,
    /// What was expected and found, for people.
    pub detail: String,
}

impl Unscored {
    /// A reason with its detail.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl fmt::Display for Unscored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.detail)
    }
}

/// The kinds of reason for which an item has no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The prompt has no text, or no token.
    EmptyPrompt,
    /// Prompt plus new tokens exceed the model's context.
    TooLong,
    /// No label was generated, or none after the marker.
    NoLabel,
    /// The marker was not generated.
    NoMarker,
    /// The chat template refused the messages.
    Template,
    /// A logit or state is NaN or infinite.
    NonFinite,
}

impl Reason {
    /// The name used in files, e.g. `too_long`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EmptyPrompt => "empty_prompt",
            Self::TooLong => "too_long",
            Self::NoLabel => "no_label",
            Self::NoMarker => "no_marker",
            Self::Template => "template",
            Self::NonFinite => "non_finite",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Reading {
    /// The pooled state of this layer and pooling, shape `[d_model]`; `None` if it was not asked for.
    pub fn pooled(&self, layer: Layer, pooling: Pooling) -> Option<&[f32]> {
        self.pooled.iter().find(|p| p.layer == layer && p.pooling == pooling).map(|p| p.values.as_slice())
    }

    /// The attention entropies of this layer's block, shape `[n_heads]`; `None` if they were not asked for.
    pub fn attention_entropy(&self, layer: Layer) -> Option<&[f32]> {
        self.attention_entropy.iter().find(|heads| heads.layer == layer).map(|heads| heads.values.as_slice())
    }

    /// What this layer has to say; `None` if it was not asked for.
    pub fn signal(&self, layer: Layer, signal: Signal) -> Option<&[f32]> {
        match signal {
            Signal::State(pooling) => self.pooled(layer, pooling),
            Signal::AttentionEntropy => self.attention_entropy(layer),
        }
    }
}

impl LabelLogits {
    /// The logits `[n_scores]` of one layer in one of [`steps`](Self::steps); `None` if that layer was not read.
    pub fn row<'a>(&self, step: &'a LabelStep, layer: Layer) -> Option<&'a [f32]> {
        let row = self.layers.iter().position(|&l| l == layer)?;
        let n_scores = self.tokens.len();
        step.logits.get(row * n_scores..(row + 1) * n_scores)
    }
}
