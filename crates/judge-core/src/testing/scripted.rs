use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::{
    Backbone, Layer, ModelInfo, Outcome, Prompt, Reading, Reason, Request, TextModel, Unscored, Want,
    model::{BackboneError, Dimensions, Exchange, LabelInContext, ModelIdentity},
    reading::{
        ContinuationLogProbs, Finish, Generated, HeadEntropies, LabelLogits, LabelStep, PooledState, ReplyState,
        TokenLogProbs,
    },
    request::{Generation, LabelRead, Pooling, ReadAt, ReplyPooling, TokenId},
};

/// Requests taken at a time, so that tests see more than one batch.
const BATCH: usize = 64;

/// A model without a model: its replies and its logits are functions of the text before them.
/// For tests and examples of judges, in no time and
/// the same everywhere.
///
/// Every character is a token whose id is its code point, so a label must be one character. A chat prompt becomes lines
/// `role: content`, then the prefill. Pooled states and attention entropies are numbers that depend on text, layer and
/// pooling and mean nothing.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Backbone, Layer, model::BackboneError};
///
/// let model = ScriptedBackbone::new(3)
///     .with_reply(|prompt| if prompt.contains("good") { "score: 5".into() } else { "score: 2".into() })
///     .with_logits(|_before, layer, label| if label == '5' { layer.0 as f32 } else { 0.0 });
/// assert_eq!(model.token("5")?, '5' as u32);
/// assert!(matches!(model.token("10"), Err(BackboneError::Label { .. })));
/// # Ok::<(), BackboneError>(())
/// ```
pub struct ScriptedBackbone {
    info: ModelInfo,
    reply: Box<dyn Fn(&str) -> String + Send + Sync>,
    logits: Box<LogitScript>,
    log_prob: Box<LogProbScript>,
    label_mass: Box<MassScript>,
    passes: AtomicUsize,
}

/// Text before, layer, label.
type LogitScript = dyn Fn(&str, Layer, char) -> f32 + Send + Sync;
/// Text before, character.
type LogProbScript = dyn Fn(&str, char) -> f32 + Send + Sync;
/// Text before.
type MassScript = dyn Fn(&str) -> f32 + Send + Sync;

impl fmt::Debug for ScriptedBackbone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedBackbone").field("info", &self.info).finish_non_exhaustive()
    }
}

impl ScriptedBackbone {
    /// A model of `n_layers` blocks that replies nothing and whose logits are small numbers which depend on text, layer and label.
    pub fn new(n_layers: usize) -> Self {
        let dimensions =
            Dimensions { n_layers, d_model: 4, n_heads: 2, d_vocab: char::MAX as usize + 1, max_len: 1 << 16 };
        let mut info = ModelInfo::new("scripted", format!("scripted-{n_layers}"), dimensions);
        info.family = "scripted".to_owned();
        let logits =
            |before: &str, layer: Layer, label: char| number(&[before, &layer.to_string(), &label.to_string()]);
        let log_prob = |before: &str, next: char| -2.0 - number(&[before, "next", &next.to_string()]);
        Self {
            info,
            reply: Box::new(|_| String::new()),
            logits: Box::new(logits),
            log_prob: Box::new(log_prob),
            label_mass: Box::new(|_| 1.0),
            passes: AtomicUsize::new(0),
        }
    }

    /// The same model with the reply to a prompt's text; cut off at `max_new_tokens`, whatever the sampling.
    #[must_use]
    pub fn with_reply(mut self, reply: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.reply = Box::new(reply);
        self
    }

    /// The same model with the logit of a character after a text, at a layer.
    #[must_use]
    pub fn with_logits(mut self, logits: impl Fn(&str, Layer, char) -> f32 + Send + Sync + 'static) -> Self {
        self.logits = Box::new(logits);
        self
    }

    /// The same model with the log-probability, at most 0, of a character after a text; small numbers that depend on both unless set.
    #[must_use]
    pub fn with_log_probs(mut self, log_prob: impl Fn(&str, char) -> f32 + Send + Sync + 'static) -> Self {
        self.log_prob = Box::new(log_prob);
        self
    }

    /// The same model with the share of its probability that lies on the labels after a text; 1 unless set.
    #[must_use]
    pub fn with_label_mass(mut self, label_mass: impl Fn(&str) -> f32 + Send + Sync + 'static) -> Self {
        self.label_mass = Box::new(label_mass);
        self
    }

    /// The same model with other [`ModelInfo`]: name, fingerprint, `max_len` (in characters), ….
    #[must_use]
    pub fn with_info(mut self, change: impl FnOnce(&mut ModelInfo)) -> Self {
        change(&mut self.info);
        self
    }

    /// Requests answered so far.
    pub fn passes(&self) -> usize {
        self.passes.load(Ordering::Relaxed)
    }

    fn check(&self, index: usize, want: &Want) -> Result<(), BackboneError> {
        let ModelInfo { n_layers, d_vocab, .. } = self.info;
        if let Some(layer) = want.layers().find(|layer| layer.0 > n_layers) {
            return Err(BackboneError::Layer { request: index, layer, n_layers });
        }
        let mut tokens = want.labels.iter().flat_map(|read| &read.tokens);
        if let Some(&token) = tokens.find(|&&token| char::from_u32(token).is_none()) {
            return Err(BackboneError::Token { request: index, token, d_vocab });
        }
        want.check().map_err(|problem| BackboneError::Request { request: index, problem })?;
        match &want.generate {
            Some(generate) if generate.top_log_probs > 0 => {
                Err(BackboneError::Unsupported { request: index, what: "the alternatives of generated tokens" })
            }
            _ => Ok(()),
        }
    }

    fn answer(&self, request: &Request) -> Outcome {
        let prompt = text(&request.prompt);
        let new = request.want.generate.as_ref().map_or(0, |generate| generate.max_new_tokens);
        let prompt_tokens = prompt.chars().count();
        if prompt_tokens == 0 {
            return Outcome::Unscored(Unscored::new(Reason::EmptyPrompt, "the prompt has no token"));
        }
        if prompt_tokens.saturating_add(new) > self.info.max_len {
            let detail = format!("{prompt_tokens} tokens and {new} new ones, the context is {}", self.info.max_len);
            return Outcome::Unscored(Unscored::new(Reason::TooLong, detail));
        }
        let want = &request.want;
        let mut reading = Reading { prompt_tokens: Some(prompt_tokens), ..Reading::default() };
        reading.generated = want.generate.as_ref().map(|generation| self.generate(&prompt, generation));
        reading.labels = want.labels.iter().map(|read| self.read(&prompt, read, reading.generated.as_ref())).collect();
        let mut steps = reading.labels.iter().flat_map(|labels| &labels.steps);
        if steps.any(|step| step.logits.iter().any(|z| !z.is_finite())) {
            return Outcome::Unscored(Unscored::new(Reason::NonFinite, "a label logit is not finite"));
        }
        reading.pooled = want.pooled.iter().map(|&(layer, pooling)| self.pool(&prompt, layer, pooling)).collect();
        let reply = reading.generated.as_ref().map_or("", |generated| &generated.text);
        let reply =
            want.reply.iter().filter_map(|&(layer, pooling)| self.state_of_reply(&prompt, reply, layer, pooling));
        reading.reply = reply.collect();
        reading.attention_entropy =
            want.attention_entropy.iter().map(|&layer| self.entropies(&prompt, layer)).collect();
        reading.prompt_log_probs = want.prompt_log_probs.then(|| {
            let first = prompt.chars().next().map_or(0, char::len_utf8);
            self.log_probs(&prompt[..first], &prompt[first..])
        });
        let behind = |text: &String| ContinuationLogProbs { text: text.clone(), tokens: self.log_probs(&prompt, text) };
        reading.continuations = want.continuations.iter().map(behind).collect();
        Outcome::Read(reading)
    }

    /// Of each character of `text`, which follows `before`.
    fn log_probs(&self, before: &str, text: &str) -> TokenLogProbs {
        let mut so_far = before.to_owned();
        let mut found = TokenLogProbs::default();
        for next in text.chars() {
            found.tokens.push(next.into());
            found.log_probs.push((self.log_prob)(&so_far, next));
            so_far.push(next);
        }
        found
    }

    fn generate(&self, prompt: &str, generation: &Generation) -> Generated {
        let reply = (self.reply)(prompt);
        let written: String = reply.chars().take(generation.max_new_tokens).collect();
        let stop = generation.stop.iter().filter_map(|stop| written.find(stop.as_str())).min();
        let finish = match stop {
            Some(_) => Finish::StopText,
            None if written.len() < reply.len() => Finish::Length,
            None => Finish::EndToken,
        };
        let text = written[..stop.unwrap_or(written.len())].to_owned();
        Generated {
            tokens: text.chars().map(u32::from).collect(),
            text_ends: text.char_indices().map(|(start, c)| start + c.len_utf8()).collect(),
            n_tokens: Some(text.chars().count()),
            alternatives: Vec::new(),
            finish,
            text,
        }
    }

    fn read(&self, prompt: &str, read: &LabelRead, generated: Option<&Generated>) -> LabelLogits {
        let reply = generated.map_or("", |generated| &generated.text);
        let mut positions: Vec<(usize, usize, Option<TokenId>)> =
            reply.char_indices().enumerate().map(|(step, (start, c))| (step, start, Some(c.into()))).collect();
        match read.at {
            ReadAt::PromptEnd => positions = vec![(0, 0, None)],
            ReadAt::LabelSteps => positions.retain(|(_, _, token)| token.is_some_and(|t| read.tokens.contains(&t))),
            ReadAt::EveryStep => {}
        }
        let steps = positions.into_iter().map(|(step, start, token)| {
            let before = format!("{prompt}{}", &reply[..start]);
            let row = |&layer: &Layer| {
                let before = &before;
                let labels = read.tokens.iter().filter_map(|&token| char::from_u32(token)); // `check` has refused others
                labels.map(move |label| (self.logits)(before, layer, label))
            };
            let label_mass = read.label_mass.then(|| (self.label_mass)(&before));
            LabelStep { step, token, logits: read.layers.iter().flat_map(row).collect(), label_mass }
        });
        LabelLogits {
            tokens: read.tokens.clone(),
            layers: read.layers.clone(),
            lens: read.lens,
            at: read.at,
            steps: steps.collect(),
        }
    }

    fn pool(&self, prompt: &str, layer: Layer, pooling: Pooling) -> PooledState {
        let value = |i: usize| number(&[prompt, &layer.to_string(), &format!("{pooling:?}"), &i.to_string()]);
        PooledState { layer, pooling, values: (0..self.info.d_model).map(value).collect() }
    }

    /// Of the text up to where the state is; for a mean, of all of it.
    fn state_of_reply(&self, prompt: &str, reply: &str, layer: Layer, pooling: ReplyPooling) -> Option<ReplyState> {
        let read = match pooling {
            ReplyPooling::Last | ReplyPooling::Mean => reply,
            ReplyPooling::ThoughtEnd => {
                &reply[..reply.rfind(ReplyPooling::END_OF_THOUGHT)? + ReplyPooling::END_OF_THOUGHT.len()]
            }
        };
        let text = [prompt, read].concat();
        let value = |i: usize| number(&[&text, &layer.to_string(), pooling.as_str(), &i.to_string()]);
        let values = (0..self.info.d_model).map(value).collect();
        (!read.is_empty()).then_some(ReplyState { layer, pooling, values })
    }

    fn entropies(&self, prompt: &str, layer: Layer) -> HeadEntropies {
        let value = |head: usize| number(&[prompt, &layer.to_string(), "attention", &head.to_string()]).abs();
        HeadEntropies { layer, values: (0..self.info.n_heads).map(value).collect() }
    }
}

impl Backbone for ScriptedBackbone {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
        let mut chars = label.chars();
        match (chars.next(), chars.next()) {
            (Some(only), None) => Ok(only.into()),
            _ => {
                Err(BackboneError::Label { label: label.to_owned(), pieces: label.chars().map(String::from).collect() })
            }
        }
    }

    fn label_token(&self, label: &str) -> Result<TokenId, BackboneError> {
        self.token(label)
    }

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        let pieces: Vec<String> =
            text(prompt).chars().last().into_iter().chain(label.chars()).map(String::from).collect();
        Ok(LabelInContext { apart: pieces.clone(), together: pieces, agrees: true })
    }

    fn attention_layers(&self) -> Vec<Layer> {
        (1..=self.info.n_layers).map(Layer).collect()
    }
}

impl TextModel for ScriptedBackbone {
    fn identity(&self) -> ModelIdentity {
        self.info.identity()
    }

    fn tokens_in(&self, text: &str) -> Option<usize> {
        Some(text.chars().count())
    }

    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
        let mut first = 0;
        loop {
            let requests = exchange.take(BATCH);
            if requests.is_empty() {
                return Ok(());
            }
            for (place, request) in requests.iter().enumerate() {
                self.check(first + place, &request.want)?;
            }
            // Last first: a caller must not count on the order.
            for (place, request) in requests.iter().enumerate().rev() {
                self.passes.fetch_add(1, Ordering::Relaxed);
                if exchange.give(first + place, self.answer(request)).is_break() {
                    return Ok(());
                }
            }
            first += requests.len();
        }
    }
}

fn text(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Raw(text) => text.clone(),
        Prompt::Chat { messages, trusted_prefill, prefill, .. } => {
            let said = if prompt.is_empty() { &[][..] } else { messages };
            let lines: String = said.iter().map(|m| format!("{}: {}\n", m.role, m.content)).collect();
            lines + trusted_prefill + prefill
        }
        Prompt::Whole(whole) => format!("{}{}", Value::Object(whole.values.clone()), whole.prefill),
    }
}

/// A number in [-2, 2) that depends on the parts alone.
fn number(parts: &[&str]) -> f32 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let mut bytes = [0; 2];
    hasher.finalize_xof().fill(&mut bytes);
    f32::from(u16::from_le_bytes(bytes)) / 16384.0 - 2.0
}
