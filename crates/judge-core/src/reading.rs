//! What a model answers to a [`Request`](crate::Request): readings, and the reasons why there is none.

mod parts;

use serde::{Deserialize, Serialize};

use crate::{
    Layer, Lens,
    request::{Pooling, ReadAt, ReplyPooling, TokenId},
};

/// The answer to one [`Request`](crate::Request).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // nearly all are readings; a box for each would cost more than it saves
pub enum Outcome {
    /// It was read.
    Read(Reading),
    /// This item could not be read; the run goes on.
    Unscored(Unscored),
}

/// What one pass over a prompt brought: what the request asked for, in its order, and nothing else.
///
/// Where several judges share a pass, the [`Runner`](crate::Runner) cuts a reading for each of them out of what it
/// brought: a judge sees what a pass of its own would have brought, to the bit, and never what another wanted.
///
/// Made with [`Reading::default`] and filled in field by field: fields may be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Reading {
    /// Tokens of the prompt, control tokens included; `None` if the model does not say.
    pub prompt_tokens: Option<usize>,
    /// Tokens that the prompt lost because it was too long, where it [may be cut](crate::Prompt::with_truncation).
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_tokens: usize,
    /// Label logits, one entry per [`LabelRead`](crate::request::LabelRead) asked for.
    pub labels: Vec<LabelLogits>,
    /// Pooled states, one per pair asked for.
    pub pooled: Vec<PooledState>,
    /// Attention entropies, one per layer asked for, ascending.
    pub attention_entropy: Vec<HeadEntropies>,
    /// Log-probabilities of the prompt's own tokens but the first, which nothing is before, if asked for.
    pub prompt_log_probs: Option<TokenLogProbs>,
    /// Log-probabilities of each continuation asked for.
    pub continuations: Vec<ContinuationLogProbs>,
    /// New text, if asked for.
    pub generated: Option<Generated>,
    /// States of that text, one per pair asked for; but none of a text without tokens, and no end of a thought that there is not.
    pub reply: Vec<ReplyState>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Natural logarithms of the probabilities of tokens, each given all tokens before it, at the last layer over the whole vocabulary, with
/// the family's soft-cap and scale.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenLogProbs {
    /// The tokens. Shape `[n]`.
    pub tokens: Vec<TokenId>,
    /// `ln p`, each at most 0 and finite. Shape `[n]`.
    pub log_probs: Vec<f32>,
}

impl TokenLogProbs {
    /// The logarithm of the probability of all tokens together, in nats; 0 for none.
    pub fn sum(&self) -> f64 {
        self.log_probs.iter().map(|&p| f64::from(p)).sum()
    }

    /// The mean log-probability of a token, in nats; `None` for no token.
    pub fn mean(&self) -> Option<f64> {
        let n = self.log_probs.len();
        (n > 0).then(|| self.sum() / n as f64)
    }

    /// The perplexity, `exp` of the mean negative log-probability; `None` for no token.
    pub fn perplexity(&self) -> Option<f64> {
        self.mean().map(|mean| (-mean).exp())
    }
}

/// The log-probabilities of a text behind a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContinuationLogProbs {
    /// The text asked for.
    pub text: String,
    /// Its tokens.
    pub tokens: TokenLogProbs,
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
    /// Where they were read.
    pub at: ReadAt,
    /// One table per position read, in order. Empty if no step qualified.
    pub steps: Vec<LabelStep>,
}

/// The label logits at one position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelStep {
    /// Index of the generated token that this position predicts; 0 at the prompt's end.
    pub step: usize,
    /// That token; `None` at the prompt's end, whether or not text is written behind it.
    pub token: Option<TokenId>,
    /// Logits `[layers, n_scores]`, row-major: plain products with the head's rows, no soft-cap, no scale. Finite.
    pub logits: Vec<f32>,
    /// The share of the model's next-token probability that lies on the labels, from 0 to 1, if asked for: the sum of
    /// the labels' entries in the softmax of the last layer over the whole vocabulary, with the family's soft-cap and
    /// scale. Where it is small, the model was about to write something else than a label.
    #[serde(default)]
    pub label_mass: Option<f32>,
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

/// One state of a text that was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyState {
    /// The layer.
    pub layer: Layer,
    /// Which of its states.
    pub pooling: ReplyPooling,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// Decoded text, control tokens left out, cut before the first stop text.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// New token ids, without the end token. Shape `[n_new]`; empty if the model does not show them.
    pub tokens: Vec<TokenId>,
    /// `text_ends[i]`: bytes of `text` that are complete once token `i` is known. Shape that of `tokens`, not decreasing.
    pub text_ends: Vec<usize>,
    /// Number of new tokens; `None` if the model does not say.
    pub n_tokens: Option<usize>,
    /// The tokens of `text` in order, each with what else was likely in its place, if
    /// [`Generation::top_log_probs`](crate::request::Generation::top_log_probs) asked for it. Empty if the model
    /// does not show it, or shows tokens that are not those of `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<TokenAlternatives>,
}

/// A generated token and the likeliest tokens in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenAlternatives {
    /// Where the token begins in the text, in bytes.
    pub start: usize,
    /// Where it ends, in bytes.
    pub end: usize,
    /// Tokens as text, each with its log-probability (at most 0, finite); the written token is one of them, and none appears twice.
    /// Tokens that are no text by themselves are left out.
    pub top: Vec<(String, f32)>,
}

impl Generated {
    /// A text of which nothing but itself and its end is known, as a service gives it.
    pub fn text_only(text: impl Into<String>, finish: Finish) -> Self {
        let (tokens, text_ends, alternatives) = (Vec::new(), Vec::new(), Vec::new());
        Self { text: text.into(), finish, tokens, text_ends, n_tokens: None, alternatives }
    }
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The model wrote an end token.
    EndToken,
    /// `max_new_tokens` was reached.
    Length,
    /// A stop text was written.
    StopText,
}

/// Why an item has no score. It is counted, kept and shown; no default stands in for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}: {detail}")]
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
    /// A logit, a state, or a number of the score is NaN or infinite.
    NonFinite,
    /// A field that the template uses is absent or null.
    Missing,
    /// The text holds no verdict.
    Unparsed,
    /// The text holds a verdict outside the scale, or a question has more options than the model has labels.
    OffScale,
    /// A service declined to answer.
    Refused,
    /// A service gave no answer that can be read, or none at all, in all attempts.
    NoAnswer,
    /// The process that scored it died of it, more than once.
    WorkerDied,
    /// The tokenizer fails on the text, or makes a token of it that the model has no embedding for.
    Tokenizer,
    /// A text that was to be written once more came out otherwise.
    OtherText,
}

crate::names! { Reason {
    EmptyPrompt: "empty_prompt",
    TooLong: "too_long",
    NoLabel: "no_label",
    NoMarker: "no_marker",
    Template: "template",
    NonFinite: "non_finite",
    Missing: "missing",
    Unparsed: "unparsed",
    OffScale: "off_scale",
    Refused: "refused",
    NoAnswer: "no_answer",
    WorkerDied: "worker_died",
    Tokenizer: "tokenizer",
    OtherText: "other_text",
}}

impl Reason {
    /// What it means, for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::EmptyPrompt => "the prompt has no text",
            Self::TooLong => "prompt and new tokens exceed the model's context",
            Self::NoLabel => "no label was generated (after the marker, where one is used)",
            Self::NoMarker => {
                "the marker (`Score:`) was not generated, or no thought ended whose end a probe is trained on"
            }
            Self::Template => "the chat template rejected the messages",
            Self::NonFinite => "a logit, a state or a score is NaN or infinite",
            Self::Missing => "a field that is judged or that the template uses is absent, null, or not text",
            Self::Unparsed => "the text contains no verdict",
            Self::OffScale => {
                "the text contains a verdict outside the scale, or there are more options than labels of a single token"
            }
            Self::Refused => "a service declined to answer",
            Self::NoAnswer => {
                "no attempt at a service gave a readable answer; the detail has its message ([labels](labels.md))"
            }
            Self::WorkerDied => "the process that scored it crashed on it, twice ([clusters](clusters.md))",
            Self::Tokenizer => "the tokenizer fails on the text, or gives a token that the model has no embedding for",
            Self::OtherText => "a judge that was to write the text of its verdict again wrote another one",
        }
    }
}

impl Outcome {
    /// The reading.
    ///
    /// # Errors
    /// Why there is none, which a judge passes on with `?`.
    pub fn reading(&self) -> Result<&Reading, Unscored> {
        match self {
            Self::Read(reading) => Ok(reading),
            Self::Unscored(unscored) => Err(unscored.clone()),
        }
    }
}
