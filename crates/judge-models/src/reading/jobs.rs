//! Requests on their way through a model: the sequences that answer one, and what a pass over each
//! must bring.
//!
//! `groups` calls `Context::admit` for each request; engines read a `Job` to know what to compute
//! and what to keep; `driver` and `written` turn what was brought (`Brought`) into a `Part`. The
//! methods of `Job` are where both engines learn what is wanted, so that they cannot differ in it.
//!
//! A prompt `p` whose continuations have the tokens `x`, `y` and `a b`, `a c`, `a d e` makes three
//! jobs:
//!
//! ```text
//! number  ids     ends (log-probabilities behind the last position)   scored_from (of its own tokens)
//! 0       p       x, y                                                1 if the prompt's are wanted, else none
//! 1       p a     b, c                                                len(p): the token a
//! 2       p a d   e                                                   len(p): the tokens a, d
//! ```
//!
//! The last token of a continuation is never fed. Job 0 is left out if nothing is read of it.
//! Engines compute what jobs have in common once; nothing here depends on that.

use std::sync::LazyLock;

use judge_core::{
    Layer, Reading, Reason, Request, Unscored, Want,
    model::Dimensions,
    reading::{Generated, HeadEntropies, PooledState, ReplyState, TokenLogProbs},
    request::{Pooling, Signal, TokenId},
};
use judge_text::Typed;

use super::answers::Part;
use super::context::Context;
use super::finite::non_finite;
use super::labels::{Heads, States, Steps, is_read_at};
use super::next_token::NextToken;
use crate::{Error, TextError};

/// What is wanted of a sequence from which only continuations are read, besides their
/// log-probabilities.
static NOTHING: LazyLock<Want> = LazyLock::new(Want::default);

/// One sequence that the model is fed: a request's prompt, or its prompt and a continuation but for
/// its last token.
pub(crate) struct Job<'a> {
    /// The request's number among those that are answered together.
    pub(crate) index: usize,
    /// The job's number among those of the request.
    pub(crate) number: usize,
    /// What is read of the sequence itself: the request's want, or [`NOTHING`].
    pub(crate) want: &'a Want,
    /// The head's rows of all sets of labels that the requests name.
    pub(crate) heads: &'a Heads<'a>,
    /// The tokens, at least one, all in the vocabulary.
    pub(crate) ids: Vec<TokenId>,
    /// The type of each token, of an encoder's pair of texts; empty where all are 0.
    pub(crate) types: Vec<u32>,
    /// How many of the tokens are the prompt.
    pub(crate) prompt_len: usize,
    /// The log-probabilities of the tokens from this position on are wanted. At least 1, since
    /// nothing precedes the first token; at most the number of tokens.
    pub(crate) scored_from: Option<usize>,
    /// Tokens whose log-probability behind the last position is wanted.
    pub(crate) ends: Vec<End>,
}

/// The last token of a continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Number of the continuation in the request.
    pub(crate) continuation: usize,
    /// The token, which is not among the job's.
    pub(crate) token: TokenId,
}

/// A request as the model is fed it.
pub(crate) struct Admitted<'a> {
    /// Tokens of the prompt.
    pub(crate) prompt_tokens: usize,
    /// Tokens that it lost because it was too long.
    pub(crate) cut_tokens: usize,
    /// The sequences, by number. None if nothing is wanted but the prompt's length.
    pub(crate) jobs: Vec<Job<'a>>,
}

/// Log-probabilities that a job brought.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scores {
    /// Those of its own tokens from [`Job::scored_from`] on.
    pub(crate) own: Vec<f32>,
    /// Those of [`Job::ends`], in their order.
    pub(crate) ends: Vec<f32>,
}

impl Context {
    /// The sequences that answer a request.
    ///
    /// Continuations that differ in their last token alone are read at the end of one sequence;
    /// those of one token at the end of the prompt's own, which otherwise is left out if nothing
    /// else is read of it.
    ///
    /// # Errors
    /// [`Error::Prompt`] for a request that the model cannot be fed: its text has no tokens or one without an
    /// embedding, the tokenizer fails on it, the template refuses it, or prompt and new tokens or a continuation
    /// exceed the context. Those of a template that is absent or does not compile.
    pub(crate) fn admit<'a>(
        &self,
        index: usize,
        request: &'a Request,
        heads: &'a Heads<'a>,
    ) -> Result<Admitted<'a>, Error> {
        let want = &request.want;
        let Dimensions { d_vocab, max_len, n_layers, .. } = self.spec.dimensions();
        // Padding that is left out does not count, so nothing is known from bytes.
        let most = if self.spec.labels().is_some_and(|head| head.padding.is_some()) { usize::MAX } else { max_len };
        let Typed { ids, types, lengths, cut: cut_tokens } = self.fed(&request.prompt, most).map_err(of_text)?;
        let prompt = self.without_padding(ids);
        let continuations = self.codec.continuations(&request.prompt, &want.continuations).map_err(of_text)?;
        if let Some(&token) = prompt.iter().chain(continuations.iter().flatten()).find(|&&id| id as usize >= d_vocab) {
            let spelt = self.codec.spelt(token);
            let detail = format!("token {token} ({spelt:?}) has no embedding, the model has {d_vocab}");
            return Err(Unscored::new(Reason::Tokenizer, detail).into());
        }
        let new = want.generate.as_ref().map_or(0, |generation| generation.max_new_tokens);
        let longest = continuations.iter().map(Vec::len).max().unwrap_or(0);
        let prompt_len = prompt.len();
        for (behind, what) in [(new, "new ones"), (longest, "of a continuation")] {
            if prompt_len.saturating_add(behind) > max_len {
                let of_pair = lengths.map_or(String::new(), |[first, second]| {
                    let special = prompt_len.saturating_sub(first + second);
                    format!(" (a pair of texts of {first} and {second}, and {special} special ones)")
                });
                let behind = if behind > 0 { format!(" and {behind} {what}") } else { String::new() };
                let detail = format!("{prompt_len} prompt tokens{of_pair}{behind}, the context has {max_len}");
                return Err(Unscored::new(Reason::TooLong, detail).into());
            }
        }
        let job = |want: &'a Want, ids: Vec<TokenId>| {
            let (number, ends) = (0, Vec::new());
            Job { index, number, want, heads, ids, types: Vec::new(), prompt_len, scored_from: None, ends }
        };
        let mut jobs = vec![Job { scored_from: want.prompt_log_probs.then_some(1), types, ..job(want, prompt) }];
        for (continuation, tokens) in continuations.iter().enumerate() {
            let Some((&token, before)) = tokens.split_last() else { continue }; // each has a token
            let place = jobs.iter().position(|job| job.ids[prompt_len..] == *before).unwrap_or_else(|| {
                let ids = [&jobs[0].ids, before].concat();
                jobs.push(Job { scored_from: Some(prompt_len), ..job(&NOTHING, ids) });
                jobs.len() - 1
            });
            jobs[place].ends.push(End { continuation, token });
        }
        jobs.retain(|job| job.blocks(n_layers).is_some());
        jobs.iter_mut().enumerate().for_each(|(number, job)| job.number = number);
        Ok(Admitted { prompt_tokens: prompt_len, cut_tokens, jobs })
    }
}

/// The error of an item's text: a failure of the tokenizer is the item's own fault, since another text may do.
fn of_text(error: impl Into<Error>) -> Error {
    match error.into() {
        Error::Text(TextError::Tokenizer { source, .. }) => Unscored::new(Reason::Tokenizer, source.to_string()).into(),
        other => other,
    }
}

impl Context {
    /// The prompt as it is fed. For a model with a head of labels, which transformers reads at the
    /// last token that is not padding, the tokens behind that one are left out. A prompt of padding
    /// alone keeps its first.
    fn without_padding(&self, mut ids: Vec<TokenId>) -> Vec<TokenId> {
        if let Some(padding) = self.spec.labels().and_then(|head| head.padding) {
            let end = ids.iter().rposition(|&id| id != padding).unwrap_or(0) + 1;
            ids.truncate(end);
        }
        ids
    }
}

impl Job<'_> {
    /// Most tokens that may be written behind the prompt; 0 if none are wanted.
    pub(crate) fn new_tokens(&self) -> usize {
        self.want.generate.as_ref().map_or(0, |generation| generation.max_new_tokens)
    }

    /// Blocks that must be run: none above the highest layer that is wanted, all if a distribution
    /// over the vocabulary is; `None` if nothing is wanted of this sequence.
    ///
    /// The prompt's own sequence counts the request's continuations as wanted, wherever they are
    /// read: so both run the same blocks and can share a pass.
    pub(crate) fn blocks(&self, n_layers: usize) -> Option<usize> {
        let is_read = self.want.generate.is_some() || self.want.layers().next().is_some();
        let is_scored = self.scored_from.is_some() || !self.ends.is_empty();
        match is_scored || self.want.needs_all_blocks() {
            true => (is_read || is_scored).then_some(n_layers),
            false => self.want.layers().max().map(|layer| layer.0),
        }
    }

    /// Whether the logits over the whole vocabulary are needed at the last position of a pass,
    /// which predicts the token of `step`.
    pub(crate) fn needs_logits(&self, step: usize) -> bool {
        self.want.generate.is_some() || !self.next_tokens(step).is_empty()
    }

    /// Tokens whose log-probability behind the last position is needed at `step`, ascending, none
    /// twice: the ends of continuations (step 0 only), and labels whose mass is read. Of a text
    /// more is needed, all logits.
    pub(crate) fn next_tokens(&self, step: usize) -> Vec<TokenId> {
        let ends = self.ends.iter().filter(|_| step == 0).map(|end| end.token);
        let massed = self.want.labels.iter().filter(|read| read.label_mass && is_read_at(read, step));
        let mut tokens: Vec<TokenId> = ends.chain(massed.flat_map(|read| &read.tokens).copied()).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// Whether the state of a layer at a token that was written is read.
    pub(crate) fn reads_reply(&self, layer: Layer) -> bool {
        self.want.reply.iter().any(|(wanted, _)| *wanted == layer)
    }

    /// What takes other positions than the last one: pooled states but for `Last`, and attention
    /// entropies.
    pub(crate) fn whole(&self) -> impl Iterator<Item = (Layer, Signal)> {
        let pooled = self.want.pooled.iter().filter(|(_, pooling)| *pooling != Pooling::Last);
        let entropies = self.want.attention_entropy.iter().map(|&layer| (layer, Signal::AttentionEntropy));
        pooled.map(|&(layer, pooling)| (layer, Signal::State(pooling))).chain(entropies)
    }

    /// How many leading positions there are of which nothing is read, so that what computes them for
    /// several sequences need not read them: fewer than there are tokens.
    #[cfg(any(test, feature = "tensor"))]
    pub(crate) fn unread(&self) -> usize {
        if self.whole().next().is_some() {
            return 0;
        }
        // A token is scored where the position before it is.
        let first_read = self.scored_from.map_or(usize::MAX, |from| from - 1);
        first_read.min(self.ids.len() - 1)
    }

    /// The log-probabilities of [`ends`](Self::ends), in their order.
    pub(crate) fn score_ends(&self, next: &NextToken<'_>) -> Vec<f32> {
        self.ends.iter().map(|end| next.log_prob(end.token) as f32).collect()
    }

    /// What a sequence that nothing is written behind has to say, from what its pass brought.
    /// `next` is what the model says of the next token; it is needed where a continuation ends
    /// there or the mass of labels is read. The error names a number that is not finite.
    pub(crate) fn read(
        &self,
        brought: Brought,
        next: Option<&NextToken<'_>>,
        n_layers: usize,
    ) -> Result<Part, Unscored> {
        let mut steps = Steps::new(self.want, self.heads, n_layers);
        steps.read(0, None, &brought.states, next);
        let ends = next.map_or_else(Vec::new, |next| self.score_ends(next));
        self.part(steps, brought.signals, Scores { own: brought.own, ends }, None, Vec::new())
    }

    /// Puts together what this sequence has to say of its request: label logits, signals,
    /// log-probabilities, text and its states. The error names a number that is not finite.
    ///
    /// A continuation has the tokens behind the prompt and its end. Their log-probabilities are the
    /// last of `scores.own`, as many as there are such tokens, and the end's entry of
    /// `scores.ends`. So it does not matter whether `own` begins behind the prompt or, for the
    /// prompt's log-probabilities, at position 1.
    pub(crate) fn part(
        &self,
        steps: Steps<'_>,
        signals: Signals,
        scores: Scores,
        generated: Option<Generated>,
        reply: Vec<ReplyState>,
    ) -> Result<Part, Unscored> {
        let mut reading = Reading::default();
        reading.prompt_tokens = Some(self.prompt_len);
        reading.labels = steps.finish();
        reading.pooled = signals.pooled;
        reading.attention_entropy = signals.attention_entropy;
        reading.generated = generated;
        reading.reply = reply;
        if self.want.prompt_log_probs {
            let tokens = self.ids.get(1..self.prompt_len).unwrap_or_default().to_vec();
            reading.prompt_log_probs = Some(TokenLogProbs { tokens, log_probs: scores.own.clone() });
        }
        let behind = &self.ids[self.prompt_len..];
        let inner = scores.own.get(scores.own.len().saturating_sub(behind.len())..).unwrap_or_default();
        let continuation = |(end, log_prob): (&End, &f32)| {
            let tokens = behind.iter().copied().chain([end.token]).collect();
            let log_probs = inner.iter().copied().chain([*log_prob]).collect();
            (end.continuation, TokenLogProbs { tokens, log_probs })
        };
        let continuations: Vec<_> = self.ends.iter().zip(&scores.ends).map(continuation).collect();
        match non_finite(&reading, continuations.iter().map(|(_, found)| found)) {
            Some(fault) => Err(fault),
            None => Ok(Part { reading, continuations }),
        }
    }
}

/// What a pass brought of a sequence, besides what comes next.
#[derive(Default)]
pub(crate) struct Brought {
    /// What label logits come of at the last position.
    pub(crate) states: States,
    /// What the prompt's positions brought; empty where the pass fed a new token.
    pub(crate) signals: Signals,
    /// Log-probabilities of the sequence's tokens from [`Job::scored_from`] on; empty where the
    /// pass fed a new token.
    pub(crate) own: Vec<f32>,
    /// The states `[d_model]` of the token that was fed, of the layers of [`Want::reply`]; empty where the pass fed a prompt.
    pub(crate) fed: Vec<(Layer, Vec<f32>)>,
}

/// What a prompt's positions brought, in the order asked for.
#[derive(Default)]
pub(crate) struct Signals {
    /// One entry for each of [`Want::pooled`].
    pub(crate) pooled: Vec<PooledState>,
    /// One entry for each of [`Want::attention_entropy`].
    pub(crate) attention_entropy: Vec<HeadEntropies>,
}

#[cfg(test)]
mod tests {
    use judge_core::{
        Lens,
        request::{Generation, LabelRead, ReadAt},
    };

    use super::*;

    #[test]
    fn a_probe_at_layer_k_needs_k_blocks_and_no_more() {
        let n_layers = 3;
        let read = |layer, label_mass| LabelRead {
            tokens: vec![3, 4],
            layers: vec![Layer(layer)],
            lens: Lens::Normed,
            at: ReadAt::PromptEnd,
            label_mass,
        };
        let heads = Heads::new();
        let blocks = |want: Want| {
            let (ids, ends) = (vec![5, 6, 7], Vec::new());
            let scored_from = want.prompt_log_probs.then_some(1);
            let types = Vec::new();
            let job =
                Job { index: 0, number: 0, want: &want, heads: &heads, prompt_len: 3, ids, types, scored_from, ends };
            job.blocks(n_layers)
        };
        for layer in 0..=n_layers {
            let pooled = vec![(Layer(layer), Pooling::Mean)];
            assert_eq!(blocks(Want { pooled: pooled.clone(), ..Want::default() }), Some(layer));
            let labels = |layer, mass| Want { labels: vec![read(layer, mass)], ..Want::default() };
            assert_eq!(blocks(labels(layer, false)), Some(layer));
            assert_eq!(blocks(Want { pooled, ..labels(0, false) }), Some(layer));
            assert_eq!(blocks(labels(layer, true)), Some(n_layers), "a mass is of the last layer");
        }
        for layer in 1..=n_layers {
            assert_eq!(blocks(Want { attention_entropy: vec![Layer(layer)], ..Want::default() }), Some(layer));
        }
        assert_eq!(blocks(Want::default()), None);
        let generate = Some(Generation { max_new_tokens: 1, ..Generation::default() });
        assert_eq!(blocks(Want { generate, ..Want::default() }), Some(n_layers));
        assert_eq!(blocks(Want { prompt_log_probs: true, ..Want::default() }), Some(n_layers));
    }
}
