//! What a model can be asked for: label logits, pooled states, attention entropies, log-probabilities, text.

use serde::{Deserialize, Serialize};

use crate::{Layer, Lens, Prompt};

/// Index of a vocabulary entry.
pub type TokenId = u32;

/// One prompt and everything one pass over it should bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The text.
    pub prompt: Prompt,
    /// What to read.
    pub want: Want,
}

/// Everything that one pass over a prompt should bring; an empty `Want` brings the prompt's length only.
///
/// Write it as `Want { labels: …, ..Want::default() }`: fields may be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Want {
    /// Score-token logits: one entry for each set of labels, lens or position; none twice.
    pub labels: Vec<LabelRead>,
    /// Pooled states; each pair at most once.
    pub pooled: Vec<(Layer, Pooling)>,
    /// Layers of whose block the entropy of each attention head is wanted, ascending, none twice. `Layer(k)` is block `k`; the
    /// embeddings, `Layer(0)`, have no attention. See [`HeadEntropies`](crate::reading::HeadEntropies).
    pub attention_entropy: Vec<Layer>,
    /// Whether the log-probability of each of the prompt's own tokens is wanted, given those before it.
    pub prompt_log_probs: bool,
    /// Texts whose log-probability behind the prompt is wanted, each on its own; none empty. A label of several tokens is scored so.
    pub continuations: Vec<String>,
    /// Text to generate after the prompt.
    pub generate: Option<Generation>,
    /// States at the tokens of that text, reduced as it is written; each pair at most once. They need [`generate`](Self::generate).
    pub reply: Vec<(Layer, ReplyPooling)>,
}

impl Want {
    /// What brings these signals, each at least once, and nothing else. Signals of a reply need a text that is written, which is not
    /// among them.
    pub fn of_signals(signals: &[(Layer, Signal)]) -> Self {
        Self::default().with_signals(signals)
    }

    /// The same, and these signals.
    #[must_use]
    pub fn with_signals(mut self, signals: &[(Layer, Signal)]) -> Self {
        for &(layer, signal) in signals {
            match signal {
                Signal::AttentionEntropy => self.attention_entropy.push(layer),
                Signal::State(pooling) => push_new(&mut self.pooled, (layer, pooling)),
                Signal::Reply(pooling) => push_new(&mut self.reply, (layer, pooling)),
            }
        }
        self.attention_entropy.sort_unstable();
        self.attention_entropy.dedup();
        self
    }

    /// Whether only text is asked for, which a model that cannot be read from the inside can bring too.
    pub fn is_text_only(&self) -> bool {
        self.labels.is_empty()
            && self.pooled.is_empty()
            && self.attention_entropy.is_empty()
            && !self.prompt_log_probs
            && self.continuations.is_empty()
            && self.reply.is_empty()
    }

    /// Whether the distribution over the whole vocabulary is needed at some position, so that all blocks must be run.
    pub fn needs_all_blocks(&self) -> bool {
        let mass = self.labels.iter().any(|read| read.label_mass);
        self.generate.is_some() || self.prompt_log_probs || !self.continuations.is_empty() || mass
    }

    /// All layers that are named, in no order, some perhaps more than once. Blocks above the highest need not be run unless
    /// [`needs_all_blocks`](Self::needs_all_blocks).
    pub fn layers(&self) -> impl Iterator<Item = Layer> {
        let labels = self.labels.iter().flat_map(|read| read.layers.iter().copied());
        let pooled = self.pooled.iter().map(|&(layer, _)| layer);
        let reply = self.reply.iter().map(|&(layer, _)| layer);
        labels.chain(pooled).chain(self.attention_entropy.iter().copied()).chain(reply)
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, one: T) {
    if !list.contains(&one) {
        list.push(one);
    }
}

/// A row of numbers that a layer has to say of a whole prompt, or of the text that is written behind it.
///
/// In files it is one word: `first`, `last`, `mean`, `min`, `max`, `attention_entropy`, `reply_last`, `reply_mean` or `thought_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The attention entropy of each head of the block below the layer, `[n_heads]`; see [`HeadEntropies`](crate::reading::HeadEntropies).
    AttentionEntropy,
    /// The pooled state, `[d_model]`.
    #[serde(untagged)]
    State(Pooling),
    /// The state of the text that is written, `[d_model]`.
    #[serde(untagged)]
    Reply(ReplyPooling),
}

impl Signal {
    /// The name used in files, e.g. `mean`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AttentionEntropy => "attention_entropy",
            Self::State(pooling) => pooling.as_str(),
            Self::Reply(pooling) => pooling.as_str(),
        }
    }

    /// Whether it is of a text that is written, which a prompt alone does not have.
    pub fn is_of_reply(self) -> bool {
        matches!(self, Self::Reply(_))
    }
}

/// Which logits to read, of which layers, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelRead {
    /// Vocabulary ids of the labels, in the order of the scale. Shape `[n_scores]`.
    pub tokens: Vec<TokenId>,
    /// Layers to read, ascending, none twice.
    pub layers: Vec<Layer>,
    /// How states meet the head.
    pub lens: Lens,
    /// Where to read.
    pub at: ReadAt,
    /// Whether the share of the model's next-token probability that lies on the labels is wanted too; see
    /// [`LabelStep::label_mass`](crate::reading::LabelStep::label_mass).
    #[serde(default)]
    pub label_mass: bool,
}

impl LabelRead {
    /// Whether two reads differ in layers alone, so that one read of all their layers answers both.
    pub(crate) fn same_place(&self, other: &Self) -> bool {
        self.tokens == other.tokens && self.lens == other.lens && self.at == other.at
    }
}

/// The positions at which label logits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAt {
    /// At the prompt's last token, which predicts the first new one. Needs no generation.
    PromptEnd,
    /// At every generation step whose token is one of the labels. The states are those that predicted it.
    LabelSteps,
    /// At every generation step.
    EveryStep,
}

/// How states of many positions become one; every token fed counts, BOS and template included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The state of the prompt's first token. An encoder gathers there what it makes of the whole text (`[CLS]`); in a
    /// decoder that token sees nothing but itself.
    First,
    /// The state of the prompt's last token.
    Last,
    /// The mean over the prompt's tokens.
    Mean,
    /// The smallest value of each coordinate.
    Min,
    /// The largest value of each coordinate.
    Max,
}

crate::names! { Pooling {
    First: "first",
    Last: "last",
    Mean: "mean",
    Min: "min",
    Max: "max",
}}

/// How states at the tokens of a text that is written become one.
///
/// They are the states that the model has at these tokens while it writes: those that say what comes behind each. All tokens
/// of the text count, those of a stop text too, but not an end token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReplyPooling {
    /// The state of the last token.
    #[serde(rename = "reply_last")]
    Last,
    /// The mean over the tokens.
    #[serde(rename = "reply_mean")]
    Mean,
    /// The state of the token that completes the last `</think>`. A text without one has none; nor has one of a model whose tokenizer
    /// takes `</think>` for a control token, which is no part of a text.
    #[serde(rename = "thought_end")]
    ThoughtEnd,
}

crate::names! { ReplyPooling {
    Last: "reply_last",
    Mean: "reply_mean",
    ThoughtEnd: "thought_end",
}}

impl ReplyPooling {
    /// What ends a thought in a text.
    pub const END_OF_THOUGHT: &str = "</think>";
}

/// How new text is made.
///
/// Write it as `Generation { max_new_tokens: 20, ..Generation::default() }`: fields may be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// Upper bound on new tokens; at least 1.
    pub max_new_tokens: usize,
    /// How each token is chosen.
    pub sampling: Sampling,
    /// Texts that end the writing as soon as one is written; none empty. The text is cut before the first that occurs in it.
    #[serde(default)]
    pub stop: Vec<String>,
    /// How many of the likeliest alternatives of each new token are wanted with their log-probabilities, see
    /// [`Generated::alternatives`](crate::reading::Generated::alternatives);
    /// 0 for none.
    ///
    /// This is for services, which show no logits. A [`Backbone`](crate::Backbone) need not bring it, and `judge-models` refuses it for a
    /// local model as [`BackboneError::Unsupported`](crate::model::BackboneError::Unsupported): there a
    /// [`LabelRead`] at [`ReadAt::EveryStep`] brings every label exactly, where a list of alternatives may lack some.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub top_log_probs: u8,
}

/// Settings in files from before there was this field are those without it.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl Default for Generation {
    /// Greedy, at most 256 new tokens, no stop text, no alternatives.
    fn default() -> Self {
        Self { max_new_tokens: 256, sampling: Sampling::Greedy, stop: Vec::new(), top_log_probs: 0 }
    }
}

impl Generation {
    /// The same generation as the `stream`-th of several samples. Greedy writing has no second sample and stays as it is.
    #[must_use]
    pub fn with_stream(mut self, new: u64) -> Self {
        if let Sampling::Random { stream, .. } = &mut self.sampling {
            *stream = new;
        }
        self
    }
}

/// How a token is chosen from the logits of the last layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sampling {
    /// The largest logit; ties go to the smaller id.
    Greedy,
    /// Drawn at random. The draw depends on `seed`, `stream` and the step alone, never on batch mates or time.
    Random {
        /// Divides the logits; above 0.
        temperature: f64,
        /// Only the k largest logits take part, if given.
        top_k: Option<usize>,
        /// Only the smallest set of most likely tokens whose mass reaches `top_p` takes part, if given.
        top_p: Option<f64>,
        /// The run's seed.
        seed: u64,
        /// Tells requests of one run apart; two requests that share it and the prompt draw the same text.
        stream: u64,
    },
}
