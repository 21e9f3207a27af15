use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    Backbone, BackboneError, Finish, Generated, HeadEntropies, LabelInContext, LabelLogits, LabelRead, LabelStep,
    Layer, ModelInfo, Outcome, PooledState, Pooling, Prompt, ReadAt, Reading, Reason, Request, RequestProblem, TokenId,
    Unscored, Want,
};

/// A model without a model: its replies and its logits are functions of the text before them. For tests and examples of judges, in no time and
/// the same everywhere.
///
/// Every character is a token whose id is its code point, so a label must be one character. A chat prompt becomes lines `role: content`, then the
/// prefill. Pooled states and attention entropies are numbers that depend on text, layer and pooling and mean nothing.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Backbone, BackboneError, Layer};
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
    passes: AtomicUsize,
}

/// Text before, layer, label.
type LogitScript = dyn Fn(&str, Layer, char) -> f32 + Send + Sync;

impl ScriptedBackbone {
    /// A model of `n_layers` blocks that replies nothing and whose logits are small numbers which depend on text, layer and label.
    pub fn new(n_layers: usize) -> Self {
        let info = ModelInfo {
            name: "scripted".to_owned(),
            revision: None,
            fingerprint: format!("scripted-{n_layers}"),
            family: "scripted".to_owned(),
            n_layers,
            d_model: 4,
            n_heads: 2,
            d_vocab: char::MAX as usize + 1,
            max_len: 1 << 16,
            dtype: "f32".to_owned(),
            device: "cpu".to_owned(),
        };
        let logits =
            |before: &str, layer: Layer, label: char| number(&[before, &layer.to_string(), &label.to_string()]);
        Self { info, reply: Box::new(|_| String::new()), logits: Box::new(logits), passes: AtomicUsize::new(0) }
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

    fn check(&self, index: usize, request: &Request) -> Result<(), BackboneError> {
        let ModelInfo { n_layers, d_vocab, .. } = self.info;
        let wrong = |problem| Err(BackboneError::Request { request: index, problem });
        let Want { labels, attention_entropy, .. } = &request.want;
        if let Some(layer) = request.want.layers().find(|layer| layer.0 > n_layers) {
            return Err(BackboneError::Layer { request: index, layer, n_layers });
        }
        if !attention_entropy.is_sorted_by(|a, b| a < b) {
            return wrong(RequestProblem::LayerOrder);
        }
        if attention_entropy.contains(&Layer(0)) {
            return wrong(RequestProblem::NoAttention);
        }
        if request.want.generate.as_ref().is_some_and(|generate| generate.max_new_tokens == 0) {
            return wrong(RequestProblem::NoNewTokens);
        }
        let Some(labels) = labels else { return Ok(()) };
        if labels.tokens.is_empty() || labels.layers.is_empty() {
            let missing = if labels.tokens.is_empty() { "label" } else { "layer" };
            return wrong(RequestProblem::NothingToRead(missing));
        }
        if !labels.layers.is_sorted_by(|a, b| a < b) {
            return wrong(RequestProblem::LayerOrder);
        }
        if labels.at != ReadAt::PromptEnd && request.want.generate.is_none() {
            return wrong(RequestProblem::StepsWithoutGeneration);
        }
        match labels.tokens.iter().find(|&&token| char::from_u32(token).is_none()) {
            Some(&token) => Err(BackboneError::Token { request: index, token, d_vocab }),
            None => Ok(()),
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
        let generated = request.want.generate.as_ref().map(|_| self.generate(&prompt, new));
        let labels = request.want.labels.as_ref().map(|read| self.read(&prompt, read, generated.as_ref()));
        if labels.iter().flat_map(|labels| &labels.steps).any(|step| step.logits.iter().any(|z| !z.is_finite())) {
            return Outcome::Unscored(Unscored::new(Reason::NonFinite, "a label logit is not finite"));
        }
        let pooled = request.want.pooled.iter().map(|&(layer, pooling)| self.pool(&prompt, layer, pooling)).collect();
        let attention_entropy =
            request.want.attention_entropy.iter().map(|&layer| self.entropies(&prompt, layer)).collect();
        Outcome::Read(Reading { prompt_tokens, labels, pooled, attention_entropy, generated })
    }

    fn generate(&self, prompt: &str, max_new_tokens: usize) -> Generated {
        let reply = (self.reply)(prompt);
        let text: String = reply.chars().take(max_new_tokens).collect();
        Generated {
            tokens: text.chars().map(u32::from).collect(),
            text_ends: text.char_indices().map(|(start, c)| start + c.len_utf8()).collect(),
            finish: if text.len() < reply.len() { Finish::Length } else { Finish::EndToken },
            text,
        }
    }

    fn read(&self, prompt: &str, read: &LabelRead, generated: Option<&Generated>) -> LabelLogits {
        let reply = generated.map_or("", |generated| &generated.text);
        let mut positions: Vec<(usize, usize, Option<TokenId>)> =
            reply.char_indices().enumerate().map(|(step, (start, c))| (step, start, Some(c.into()))).collect();
        match read.at {
            ReadAt::PromptEnd => positions = vec![(0, 0, positions.first().and_then(|first| first.2))],
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
            LabelStep { step, token, logits: read.layers.iter().flat_map(row).collect() }
        });
        LabelLogits {
            tokens: read.tokens.clone(),
            layers: read.layers.clone(),
            lens: read.lens,
            steps: steps.collect(),
        }
    }

    fn pool(&self, prompt: &str, layer: Layer, pooling: Pooling) -> PooledState {
        let value = |i: usize| number(&[prompt, &layer.to_string(), &format!("{pooling:?}"), &i.to_string()]);
        PooledState { layer, pooling, values: (0..self.info.d_model).map(value).collect() }
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

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        let pieces: Vec<String> =
            text(prompt).chars().last().into_iter().chain(label.chars()).map(String::from).collect();
        Ok(LabelInContext { apart: pieces.clone(), together: pieces, agrees: true })
    }

    fn run(
        &self,
        requests: &[Request],
        sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
    ) -> Result<(), BackboneError> {
        for (index, request) in requests.iter().enumerate() {
            self.check(index, request)?;
        }
        // Last first: a caller must not count on the order.
        for (index, request) in requests.iter().enumerate().rev() {
            self.passes.fetch_add(1, Ordering::Relaxed);
            if sink(index, self.answer(request)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn text(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Raw(text) => text.clone(),
        Prompt::Chat { prefill, .. } if prompt.is_empty() => prefill.clone(),
        Prompt::Chat { messages, prefill, .. } => {
            let lines: String = messages.iter().map(|m| format!("{}: {}\n", m.role, m.content)).collect();
            lines + prefill
        }
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
