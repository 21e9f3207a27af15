//! Requests on their way through a model that runs many together: what a pass must bring, who can share one, what is answered.

use std::collections::HashMap;
use std::ops::ControlFlow;

use judge_core::{
    Finish, Generated, Generation, HeadEntropies, Layer, Outcome, PooledState, Pooling, Reading, Request, Signal,
    TokenId, Want,
};
use rayon::prelude::*;

use crate::Error;
use crate::model::Model;
use crate::read::{States, Steps, non_finite};
use crate::rope::inverse_frequencies;

/// Takes answers by the number of their request.
pub(crate) type Sink<'a> = dyn FnMut(usize, Outcome) -> ControlFlow<()> + 'a;

/// A request that the model can be fed.
pub(crate) struct Job<'a> {
    pub(crate) index: usize,
    pub(crate) want: &'a Want,
    /// The head's rows of its labels, `[n_scores, d_model]`.
    pub(crate) head: &'a [f32],
    pub(crate) ids: Vec<TokenId>,
}

impl Job<'_> {
    pub(crate) fn new_tokens(&self) -> usize {
        self.want.generate.as_ref().map_or(0, |generation| generation.max_new_tokens)
    }

    /// Blocks that must be run: none above the highest layer that is wanted, all if text is written, `None` if nothing is
    /// wanted but the prompt's length.
    fn blocks(&self, n_layers: usize) -> Option<usize> {
        match self.want.generate {
            Some(_) => Some(n_layers),
            None => self.want.layers().max().map(|layer| layer.0),
        }
    }

    /// What takes all positions, not the last one alone.
    pub(crate) fn whole(&self) -> impl Iterator<Item = (Layer, Signal)> {
        let pooled = self.want.pooled.iter().filter(|(_, pooling)| *pooling != Pooling::Last);
        let entropies = self.want.attention_entropy.iter().map(|&layer| (layer, Signal::AttentionEntropy));
        pooled.map(|&(layer, pooling)| (layer, Signal::State(pooling))).chain(entropies)
    }

    /// Hands its reading to `sink`, or says which number of it is not finite.
    pub(crate) fn answer(
        &self,
        steps: Steps<'_>,
        signals: Signals,
        generated: Option<Generated>,
        sink: &mut Sink<'_>,
    ) -> ControlFlow<()> {
        let Signals { pooled, attention_entropy } = signals;
        let labels = steps.finish();
        let reading = Reading { prompt_tokens: self.ids.len(), labels, pooled, attention_entropy, generated };
        let fault = non_finite(&reading);
        sink(self.index, fault.map_or(Outcome::Read(reading), Outcome::Unscored))
    }
}

/// What a prompt's positions brought, in the order asked for.
pub(crate) struct Signals {
    pub(crate) pooled: Vec<PooledState>,
    pub(crate) attention_entropy: Vec<HeadEntropies>,
}

/// Jobs that run through the same blocks with the same rotary frequencies: they can share passes.
pub(crate) struct Group<'a> {
    pub(crate) blocks: usize,
    pub(crate) jobs: Vec<Job<'a>>,
}

/// Tokenises all requests and groups them, in the order of the first of each group. What needs no pass, because it cannot be
/// scored or asks for nothing but the prompt's length, is answered at once; [`ControlFlow::Break`] if `sink` says so.
pub(crate) fn groups<'a>(
    model: &Model,
    requests: &'a [Request],
    heads: &'a HashMap<&[TokenId], Vec<f32>>,
    sink: &mut Sink<'_>,
) -> Result<ControlFlow<(), Vec<Group<'a>>>, Error> {
    let admitted: Vec<_> = requests.par_iter().map(|request| model.admit(request)).collect();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<(usize, Vec<u32>), usize> = HashMap::new();
    for (index, (request, admitted)) in requests.iter().zip(admitted).enumerate() {
        let want = &request.want;
        let head = want.labels.as_ref().and_then(|read| heads.get(read.tokens.as_slice()));
        let outcome = match admitted? {
            Err(unscored) => Outcome::Unscored(unscored),
            Ok(ids) => {
                let job = Job { index, want, head: head.map_or(&[], Vec::as_slice), ids };
                match job.blocks(model.config.n_layers) {
                    Some(blocks) => {
                        let len = job.ids.len() + job.new_tokens();
                        let (frequencies, _) = inverse_frequencies(&model.config.rope, len);
                        let key = (blocks, frequencies.into_iter().map(f32::to_bits).collect());
                        let place = *places.entry(key).or_insert_with(|| {
                            groups.push(Group { blocks, jobs: Vec::new() });
                            groups.len() - 1
                        });
                        groups[place].jobs.push(job);
                        continue;
                    }
                    None => Outcome::Read(Reading { prompt_tokens: job.ids.len(), ..Reading::default() }),
                }
            }
        };
        if sink(index, outcome).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(groups))
}

/// A text that is being written behind a job's prompt.
pub(crate) struct Text<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) generation: &'a Generation,
    pub(crate) steps: Steps<'a>,
    pub(crate) signals: Signals,
    pub(crate) tokens: Vec<TokenId>,
}

impl<'a> Text<'a> {
    /// Nothing written yet.
    pub(crate) fn new(job: &'a Job<'a>, generation: &'a Generation, steps: Steps<'a>, signals: Signals) -> Self {
        Self { job, generation, steps, signals, tokens: Vec::new() }
    }

    /// Puts a token, chosen from `states`, behind the text; says why the text ends, if it does.
    pub(crate) fn take(&mut self, token: TokenId, eos: &[TokenId], states: &States) -> Option<Finish> {
        let step = self.tokens.len();
        if eos.contains(&token) {
            self.steps.end(step, states);
            return Some(Finish::EndToken);
        }
        self.steps.read(step, Some(token), states);
        self.tokens.push(token);
        (self.tokens.len() == self.generation.max_new_tokens).then_some(Finish::Length)
    }

    /// Answers the job with the finished text.
    pub(crate) fn answer(self, finish: Finish, model: &Model, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let (text, text_ends) = model.codec.decode(&self.tokens);
        let generated = Generated { tokens: self.tokens, text, text_ends, finish };
        self.job.answer(self.steps, self.signals, Some(generated), sink)
    }
}
