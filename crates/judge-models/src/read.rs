//! One sequence at a time by composed operations: the states that a job wants, its label logits, its log-probabilities, its new text.

use std::mem;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};

use burn::tensor::{Int, Tensor, TensorData};
use judge_core::{
    HeadEntropies, Layer, Lens, Outcome, PooledState, Pooling, Reading, Reason, Request, TokenId, TokenLogProbs,
    Unscored,
};

use crate::Error;
use crate::answers::{Open, Part};
use crate::cache::{Cache, Past};
use crate::decoder::{Decoder, Entropies};
use crate::jobs::{Admitted, Job, Scores, Signals, Text};
use crate::labels::{Heads, States, Steps, wants_state};
use crate::model::Model;
use crate::next_token::{LOGIT_ROWS, NextLogProbs, NextToken};
use crate::pooling::Pool;
use crate::rope::Rotation;
use crate::schedule::Flight;

/// What a forward pass over new positions brings.
#[derive(Default)]
struct Pass {
    /// What label logits are made from.
    states: States,
    /// Of a prompt.
    signals: Signals,
    /// The log-probabilities of the new tokens that are scored.
    own: Vec<f32>,
    /// The normed output of the last block at the last position, shape `[1, 1, d_model]`, if all blocks were run.
    last: Option<Tensor<3>>,
}

/// Why a request has no reading.
enum Stop {
    Unscored(Unscored),
    /// The run was cancelled; nobody waits for an answer.
    Cancelled,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Unscored> for Stop {
    fn from(fault: Unscored) -> Self {
        Self::Unscored(fault)
    }
}

impl Model {
    /// Answers one request; `None` once the run is cancelled.
    pub(crate) fn answer(
        &self,
        decoder: &Decoder,
        request: &Request,
        heads: &Heads<'_>,
        flight: &Flight,
    ) -> Result<Option<Outcome>, Error> {
        let Admitted { prompt_tokens, jobs } = match self.admit(0, request, heads)? {
            Ok(admitted) => admitted,
            Err(unscored) => return Ok(Some(Outcome::Unscored(unscored))),
        };
        let mut open = Open::new(&request.want, prompt_tokens, jobs.len());
        for job in &jobs {
            let part = match self.read(decoder, job, flight) {
                Ok(part) => Ok(part),
                Err(Stop::Unscored(fault)) => Err(fault),
                Err(Stop::Cancelled) => return Ok(None),
                Err(Stop::Failed(error)) => return Err(error),
            };
            open.take(job, part);
        }
        Ok(Some(open.finish()))
    }

    fn read(&self, decoder: &Decoder, job: &Job<'_>, flight: &Flight) -> Result<Part, Stop> {
        let len = job.ids.len() + job.new_tokens();
        let _room = flight.room(len);
        let mut sequence = Sequence::new(self, decoder, job, len, flight);
        let mut pass = sequence.feed(&job.ids)?;
        let signals = mem::take(&mut pass.signals);
        let mut scores = Scores { own: mem::take(&mut pass.own), ends: Vec::new() };
        let mut steps = Steps::new(job.want, job.heads, self.config.n_layers);
        if let Some(generation) = &job.want.generate {
            let text = Text::new(job, generation, steps, signals, scores);
            return sequence.write(text, pass);
        }
        if job.needs_logits(0) {
            let mut logits = sequence.logits(&mut pass)?;
            let next = NextToken::new(&mut logits, self.config.final_soft_cap, "step 0")?;
            scores.ends = job.score_ends(&next);
            steps.read(0, None, &pass.states, Some(&next));
        } else {
            steps.read(0, None, &pass.states, None);
        }
        Ok(job.part(steps, signals, scores, None)?)
    }
}

/// One sequence on its way through the model.
struct Sequence<'a> {
    model: &'a Model,
    decoder: &'a Decoder,
    job: &'a Job<'a>,
    flight: &'a Flight,
    /// Of all positions up to the final length.
    rotation: Rotation,
    cache: Option<Cache>,
    /// Positions behind it.
    fed: usize,
}

impl<'a> Sequence<'a> {
    /// `len` is the final length, new tokens included.
    fn new(model: &'a Model, decoder: &'a Decoder, job: &'a Job<'a>, len: usize, flight: &'a Flight) -> Self {
        let rotation = Rotation::new(&model.config.rope, len, &decoder.device());
        let cache = job.want.generate.as_ref().map(|_| Cache::new(model.config.n_layers));
        Self { model, decoder, job, flight, rotation, cache, fed: 0 }
    }

    /// Feeds the job's tokens, or one token after them, to no block above the highest that is needed.
    fn feed(&mut self, ids: &[TokenId]) -> Result<Pass, Stop> {
        let (n_layers, want) = (self.model.config.n_layers, self.job.want);
        let Some(top) = self.job.blocks(n_layers) else { return Ok(Pass::default()) };
        let step = (self.fed + ids.len()).saturating_sub(self.job.ids.len());
        let (pooled, entropies): (&[(Layer, Pooling)], &[Layer]) = match step {
            0 => (&want.pooled, &want.attention_entropy),
            _ => (&[], &[]),
        };
        let (decoder, seq) = (self.decoder, ids.len());
        let mut cache = self.cache.take();
        let mut pass = Pass::default();
        let mut visit = |index: usize, x: &Tensor<3>| -> Result<(), Stop> {
            if self.flight.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            let layer = Layer(index);
            let row = || x.clone().narrow(1, seq - 1, 1); // [1, seq, d_model] -> [1, 1, d_model]
            // One row is normed alone wherever one row is read, so that it never depends on what else is read. (For the
            // same reason the last block runs all rows though it may be that one is read: products of one row and of
            // many differ in bits.)
            let final_row = (index == n_layers).then(|| decoder.final_norm(row()));
            for lens in [Lens::Raw, Lens::Normed] {
                if wants_state(want, step, layer, lens, n_layers) {
                    let state = match (&final_row, lens) {
                        (Some(row), _) => row.clone(),
                        (None, Lens::Normed) => decoder.final_norm(row()),
                        (None, Lens::Raw) => row(),
                    };
                    pass.states.insert((layer, lens), host(state)?);
                }
            }
            for &(_, pooling) in pooled.iter().filter(|(wanted, _)| *wanted == layer) {
                let values = match (pooling, &final_row) {
                    (Pooling::Last, Some(row)) => host(row.clone())?,
                    (Pooling::Last, None) => host(row())?,
                    (_, Some(_)) => pool(&host(decoder.final_norm(x.clone()))?, seq, pooling),
                    (_, None) => pool(&host(x.clone())?, seq, pooling),
                };
                pass.signals.pooled.push(PooledState { layer, pooling, values });
            }
            if let Some(from) = self.job.scored_from.filter(|_| step == 0 && index == n_layers) {
                pass.own = self.score(x, from)?;
            }
            pass.last = final_row;
            Ok(())
        };
        let rotation = self.rotation.positions(self.fed, seq);
        let ids: Vec<i32> = ids.iter().map(|&id| id.cast_signed()).collect();
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, seq]), &decoder.device());
        let mut visited = Ok(());
        let past = cache.as_mut().map(|cache| cache as &mut dyn Past);
        let mut entropies = Entropies::of(entropies.to_vec());
        decoder.forward(tokens, &[rotation], past, entropies.as_mut(), &mut |index, x| {
            visited = visit(index, x);
            if visited.is_ok() && index < top { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.cache = cache;
        visited?;
        self.fed += seq;
        for (layer, rows) in entropies.into_iter().flat_map(|entropies| entropies.found) {
            let values = pool(&host(rows)?, seq, Pooling::Mean);
            pass.signals.attention_entropy.push(HeadEntropies { layer, values });
        }
        // In the order asked for, not in that of the layers.
        pass.signals.pooled.sort_by_key(|state| pooled.iter().position(|pair| *pair == (state.layer, state.pooling)));
        Ok(pass)
    }

    /// The log-probabilities of the job's tokens from `from` on, from the last block's output `[1, seq, d_model]`. The rows of a product are
    /// always the same, so that its bits are.
    fn score(&self, x: &Tensor<3>, from: usize) -> Result<Vec<f32>, Stop> {
        let config = &self.model.config;
        let mut found = Vec::with_capacity(self.job.ids.len() - from);
        for start in (from..self.job.ids.len()).step_by(LOGIT_ROWS) {
            let tokens = &self.job.ids[start..self.job.ids.len().min(start + LOGIT_ROWS)];
            let rows = x.clone().narrow(1, start - 1, tokens.len()); // [1, seq, d_model] -> [1, rows, d_model]
            // [1, rows, d_model] -> [1, rows, d_vocab]
            let mut logits = host(self.decoder.logits(self.decoder.final_norm(rows)))?;
            for (&token, row) in tokens.iter().zip(logits.chunks_exact_mut(config.d_vocab.max(1))) {
                let next = NextToken::new(row, config.final_soft_cap, "a scored token");
                found.push(next.map_or(f32::NAN, |next| next.log_prob(token) as f32)); // which is refused with the reading
            }
        }
        Ok(found)
    }

    /// Writes a text behind a prompt that brought `pass`.
    fn write(&mut self, mut text: Text<'_>, mut pass: Pass) -> Result<Part, Stop> {
        loop {
            let step = text.tokens.len();
            let mut logits = self.logits(&mut pass)?;
            let next = NextToken::new(&mut logits, self.model.config.final_soft_cap, format_args!("step {step}"))?;
            match (text.write(self.model, &pass.states, &next), text.tokens.last()) {
                (None, Some(&token)) => pass = self.feed(&[token])?,
                (finish, _) => return Ok(text.finish(finish.ok_or(Error::NothingRead)?, self.model)?),
            }
        }
    }

    /// The products of the last position with the head, `[d_vocab]`.
    fn logits(&self, pass: &mut Pass) -> Result<Vec<f32>, Stop> {
        let last = pass.last.take().ok_or(Error::NothingRead)?;
        Ok(host(self.decoder.logits(last))?) // [1, 1, d_model] -> [1, 1, d_vocab]
    }
}

/// Rows `[seq, width]` to `[width]`.
pub(crate) fn pool(rows: &[f32], seq: usize, pooling: Pooling) -> Vec<f32> {
    let mut pool = Pool::new(pooling);
    rows.chunks_exact((rows.len() / seq.max(1)).max(1)).for_each(|row| pool.add(row));
    pool.finish()
}

/// Says which number of a reading, or of log-probabilities beside it, is NaN or infinite.
pub(crate) fn non_finite<'a>(
    reading: &Reading,
    mut continuations: impl Iterator<Item = &'a TokenLogProbs>,
) -> Option<Unscored> {
    let bad = |values: &[f32]| values.iter().copied().find(|x| !x.is_finite());
    let fault = |what: String, value: f32| Unscored::new(Reason::NonFinite, format!("{what} is {value}"));
    for step in reading.labels.iter().flat_map(|labels| &labels.steps) {
        if let Some(value) = bad(&step.logits) {
            return Some(fault(format!("a label logit at step {}", step.step), value));
        }
        if let Some(value) = step.label_mass.filter(|mass| !mass.is_finite()) {
            return Some(fault(format!("the mass of the labels at step {}", step.step), value));
        }
    }
    for state in &reading.pooled {
        if let Some(value) = bad(&state.values) {
            return Some(fault(format!("a coordinate of the state of {}", state.layer), value));
        }
    }
    for heads in &reading.attention_entropy {
        if let Some(value) = bad(&heads.values) {
            return Some(fault(format!("an attention entropy of {}", heads.layer), value));
        }
    }
    if let Some(value) = reading.prompt_log_probs.as_ref().and_then(|found| bad(&found.log_probs)) {
        return Some(fault("a log-probability of the prompt".to_owned(), value));
    }
    let value = continuations.find_map(|found| bad(&found.log_probs))?;
    Some(fault("a log-probability of a continuation".to_owned(), value))
}

/// The values of a tensor in f32 on the host, row-major.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, Error> {
    let data = from_device(|| tensor.try_into_data())?;
    data.try_into_vec().map_err(|source| Error::Device { source: Box::new(source) })
}

/// What `wait` brings from a device once all operations before it are done. Where Burn meets one that failed it panics in places, which
/// is an error here like those that it returns. `wait` takes along what it works on, so that nothing half done is left behind.
pub(crate) fn from_device<T, E>(wait: impl FnOnce() -> Result<T, E>) -> Result<T, Error>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let source: Box<dyn std::error::Error + Send + Sync> = match panic::catch_unwind(AssertUnwindSafe(wait)) {
        Ok(Ok(found)) => return Ok(found),
        Ok(Err(error)) => Box::new(error),
        Err(panicked) => match (panicked.downcast_ref::<&str>(), panicked.downcast_ref::<String>()) {
            (Some(&said), _) => said.into(),
            (_, Some(said)) => said.as_str().into(),
            (None, None) => "an operation failed and did not say why".into(),
        },
    };
    Err(Error::Device { source })
}

#[cfg(test)]
mod tests {
    use judge_core::{Generation, LabelRead, Prompt, ReadAt, Want};

    use super::*;
    use crate::model::LoadOptions;

    #[test]
    fn a_probe_at_layer_k_runs_k_blocks_and_no_more() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/families/llama-off");
        let model = Model::load(folder, &LoadOptions::default()).unwrap();
        let flight = Flight::new(100);
        let n_layers = model.config.n_layers;
        let read = |layer, label_mass| LabelRead {
            tokens: vec![3, 4],
            layers: vec![Layer(layer)],
            lens: Lens::Normed,
            at: ReadAt::PromptEnd,
            label_mass,
        };
        let heads = Heads::new();
        let blocks_run = |want: Want| {
            let (ids, ends) = (vec![5, 6, 7], Vec::new());
            let scored_from = want.prompt_log_probs.then_some(1);
            let job =
                Job { index: 0, number: 0, want: &want, heads: &heads, prompt_len: ids.len(), ids, scored_from, ends };
            let mut sequence = Sequence::new(&model, model.composed(), &job, 4, &flight);
            // Without generation there is no cache; this one counts.
            sequence.cache = Some(Cache::new(n_layers));
            sequence.feed(&job.ids).unwrap_or_else(|_| panic!("{want:?}"));
            sequence.cache.map(|cache| cache.blocks_run())
        };
        for layer in 0..=n_layers {
            let pooled = vec![(Layer(layer), Pooling::Mean)];
            assert_eq!(blocks_run(Want { pooled: pooled.clone(), ..Want::default() }), Some(layer));
            let labels = |layer, mass| Want { labels: vec![read(layer, mass)], ..Want::default() };
            assert_eq!(blocks_run(labels(layer, false)), Some(layer));
            assert_eq!(blocks_run(Want { pooled, ..labels(0, false) }), Some(layer));
            assert_eq!(blocks_run(labels(layer, true)), Some(n_layers), "a mass is of the last layer");
        }
        for layer in 1..=n_layers {
            assert_eq!(blocks_run(Want { attention_entropy: vec![Layer(layer)], ..Want::default() }), Some(layer));
        }
        assert_eq!(blocks_run(Want::default()), Some(0));
        let generate = Some(Generation { max_new_tokens: 1, ..Generation::default() });
        assert_eq!(blocks_run(Want { generate, ..Want::default() }), Some(n_layers));
        assert_eq!(blocks_run(Want { prompt_log_probs: true, ..Want::default() }), Some(n_layers));
    }

    #[test]
    fn a_cancelled_pass_is_given_up() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/families/llama-off");
        let model = Model::load(folder, &LoadOptions::default()).unwrap();
        let want = Want { pooled: vec![(Layer(3), Pooling::Mean)], ..Want::default() };
        let request = Request { prompt: Prompt::Raw("ba de".to_owned()), want };
        let (flight, heads) = (Flight::new(100), Heads::new());
        assert!(model.answer(model.composed(), &request, &heads, &flight).unwrap().is_some());
        flight.cancel();
        assert!(model.answer(model.composed(), &request, &heads, &flight).unwrap().is_none());
    }

    #[test]
    fn a_device_s_failures_are_errors_where_burn_panics_too() {
        let failed = |wait: fn() -> Result<(), std::fmt::Error>| match from_device(wait) {
            Err(Error::Device { source }) => source.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(failed(|| Err(std::fmt::Error)), std::fmt::Error.to_string());
        assert_eq!(failed(|| panic!("never written")), "never written");
        assert_eq!(failed(|| panic!("tensor {} was never written", 3)), "tensor 3 was never written");
        assert_eq!(failed(|| panic::panic_any(3)), "an operation failed and did not say why");
        assert_eq!(from_device(|| Ok::<_, std::fmt::Error>(3)).unwrap(), 3);
    }

    #[test]
    fn pooling_is_over_positions() {
        let states = [1.0, -2.0, 3.0, 0.5, -4.0, 6.0]; // [3, 2]
        assert_eq!(pool(&states, 3, Pooling::Last), [-4.0, 6.0]);
        assert_eq!(pool(&states, 3, Pooling::Mean), [0.0, 1.5]);
        assert_eq!(pool(&states, 3, Pooling::Min), [-4.0, -2.0]);
        assert_eq!(pool(&states, 3, Pooling::Max), [3.0, 6.0]);
        assert!(pool(&[1.0, f32::NAN, 2.0], 3, Pooling::Max)[0].is_nan());
    }
}
