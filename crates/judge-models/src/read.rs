//! One pass over one prompt: the states that a request wants, its label logits, its new text.

use std::collections::BTreeMap;
use std::mem;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};

use burn::tensor::{Int, Tensor, TensorData};
use judge_core::{
    Finish, Generated, Generation, HeadEntropies, LabelLogits, LabelStep, Layer, Lens, Outcome, PooledState, Pooling,
    ReadAt, Reading, Reason, Request, TokenId, Unscored, Want,
};

use crate::Error;
use crate::cache::{Cache, Past};
use crate::decoder::{Decoder, Entropies};
use crate::generate::choose;
use crate::model::Model;
use crate::pooling::Pool;
use crate::rope::Rotation;
use crate::schedule::Flight;

/// The last position's state of each layer, as the head meets it. Each `[d_model]`.
pub(crate) type States = BTreeMap<Layer, Vec<f32>>;

/// What a forward pass over new positions brings.
#[derive(Default)]
struct Pass {
    /// What label logits are made from.
    states: States,
    pooled: Vec<PooledState>,
    attention_entropy: Vec<HeadEntropies>,
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
    /// The tokens of a request that the model can be fed, with as many new ones as it asks for.
    pub(crate) fn admit(&self, request: &Request) -> Result<Result<Vec<TokenId>, Unscored>, Error> {
        let ids = match self.codec.encode(&request.prompt)? {
            Ok(ids) => ids,
            Err(unscored) => return Ok(Err(unscored)),
        };
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.config.d_vocab) {
            return Err(Error::TokenWithoutEmbedding { token: id, d_vocab: self.config.d_vocab });
        }
        let new = request.want.generate.as_ref().map_or(0, |generation| generation.max_new_tokens);
        if ids.len().saturating_add(new) > self.config.max_len {
            let (prompt, max_len) = (ids.len(), self.config.max_len);
            let detail = format!("{prompt} prompt tokens and {new} new ones, the context has {max_len}");
            return Ok(Err(Unscored::new(Reason::TooLong, detail)));
        }
        Ok(Ok(ids))
    }

    /// Logits `[d_vocab]` as the next token is chosen from them, all finite.
    pub(crate) fn choice_logits(&self, mut logits: Vec<f32>, step: usize) -> Result<Vec<f32>, Unscored> {
        if let Some(cap) = self.config.final_soft_cap {
            let cap = cap as f32;
            logits.iter_mut().for_each(|z| *z = cap * libm::tanhf(*z / cap));
        }
        match logits.iter().position(|z| !z.is_finite()) {
            Some(token) => {
                let detail = format!("the logit of token {token} at step {step} is {}", logits[token]);
                Err(Unscored::new(Reason::NonFinite, detail))
            }
            None => Ok(logits),
        }
    }

    /// Answers one request; `None` once the run is cancelled. `head` holds the head's rows of its labels,
    /// `[n_scores, d_model]`.
    pub(crate) fn answer(
        &self,
        decoder: &Decoder,
        request: &Request,
        head: &[f32],
        flight: &Flight,
    ) -> Result<Option<Outcome>, Error> {
        match self.read(decoder, request, head, flight) {
            Ok(reading) => Ok(Some(Outcome::Read(reading))),
            Err(Stop::Unscored(fault)) => Ok(Some(Outcome::Unscored(fault))),
            Err(Stop::Cancelled) => Ok(None),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn read(&self, decoder: &Decoder, request: &Request, head: &[f32], flight: &Flight) -> Result<Reading, Stop> {
        let want = &request.want;
        let ids = self.admit(request)??;
        let len = ids.len() + want.generate.as_ref().map_or(0, |generation| generation.max_new_tokens);
        let _room = flight.room(len);
        let mut sequence = Sequence::new(self, decoder, want, len, flight);
        let mut pass = sequence.feed(&ids)?;
        let (pooled, attention_entropy) = (mem::take(&mut pass.pooled), mem::take(&mut pass.attention_entropy));
        let mut steps = Steps::new(want, head);
        let generated = match &want.generate {
            Some(generation) => Some(sequence.generate(generation, pass, &mut steps)?),
            None => {
                steps.read(0, None, &pass.states);
                None
            }
        };
        let labels = steps.finish();
        let reading = Reading { prompt_tokens: ids.len(), labels, pooled, attention_entropy, generated };
        match non_finite(&reading) {
            Some(fault) => Err(fault.into()),
            None => Ok(reading),
        }
    }
}

/// One prompt on its way through the model.
struct Sequence<'a> {
    model: &'a Model,
    decoder: &'a Decoder,
    want: &'a Want,
    flight: &'a Flight,
    /// Of all positions up to the final length.
    rotation: Rotation,
    cache: Option<Cache>,
    /// Positions behind it.
    fed: usize,
}

impl<'a> Sequence<'a> {
    /// `len` is the final length, prompt plus new tokens.
    fn new(model: &'a Model, decoder: &'a Decoder, want: &'a Want, len: usize, flight: &'a Flight) -> Self {
        let rotation = Rotation::new(&model.config.rope, len, &decoder.device());
        let cache = want.generate.as_ref().map(|_| Cache::new(model.config.n_layers));
        Self { model, decoder, want, flight, rotation, cache, fed: 0 }
    }

    /// Feeds the prompt, or one token after it, to no block above the highest layer that is wanted (to all, if text is
    /// generated).
    fn feed(&mut self, ids: &[TokenId]) -> Result<Pass, Stop> {
        let n_layers = self.model.config.n_layers;
        let (pooled, entropies): (&[(Layer, Pooling)], &[Layer]) = match self.fed {
            0 => (&self.want.pooled, &self.want.attention_entropy),
            _ => (&[], &[]),
        };
        let read = self.want.labels.as_ref().filter(|read| self.fed == 0 || read.at != ReadAt::PromptEnd);
        let layers: &[Layer] = read.map_or(&[], |read| &read.layers);
        let top = match (&self.want.generate, self.want.layers().max()) {
            (Some(_), _) => n_layers,
            (None, Some(highest)) => highest.0,
            (None, None) => return Ok(Pass::default()), // only the prompt's length is wanted
        };
        let (decoder, seq) = (self.decoder, ids.len());
        let normed = read.is_some_and(|read| read.lens == Lens::Normed);
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
            if layers.contains(&layer) {
                let state = match &final_row {
                    Some(row) => row.clone(),
                    None if normed => decoder.final_norm(row()),
                    None => row(),
                };
                pass.states.insert(layer, host(state)?);
            }
            for &(_, pooling) in pooled.iter().filter(|(wanted, _)| *wanted == layer) {
                let values = match (pooling, &final_row) {
                    (Pooling::Last, Some(row)) => host(row.clone())?,
                    (Pooling::Last, None) => host(row())?,
                    (_, Some(_)) => pool(&host(decoder.final_norm(x.clone()))?, seq, pooling),
                    (_, None) => pool(&host(x.clone())?, seq, pooling),
                };
                pass.pooled.push(PooledState { layer, pooling, values });
            }
            pass.last = final_row;
            Ok(())
        };
        let rotation = self.rotation.positions(self.fed, seq);
        let ids: Vec<i32> = ids.iter().map(|&id| id.cast_signed()).collect();
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, seq]), &decoder.device());
        let mut visited = Ok(());
        let past = self.cache.as_mut().map(|cache| cache as &mut dyn Past);
        let mut entropies = Entropies::of(entropies.to_vec());
        decoder.forward(tokens, &[rotation], past, entropies.as_mut(), &mut |index, x| {
            visited = visit(index, x);
            if visited.is_ok() && index < top { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        visited?;
        self.fed += seq;
        for (layer, rows) in entropies.into_iter().flat_map(|entropies| entropies.found) {
            pass.attention_entropy.push(HeadEntropies { layer, values: pool(&host(rows)?, seq, Pooling::Mean) });
        }
        // In the order asked for, not in that of the layers.
        pass.pooled.sort_by_key(|state| pooled.iter().position(|pair| *pair == (state.layer, state.pooling)));
        Ok(pass)
    }

    /// Writes text after a prompt that brought `pass`.
    fn generate(&mut self, generation: &Generation, mut pass: Pass, steps: &mut Steps<'_>) -> Result<Generated, Stop> {
        let mut tokens = Vec::new();
        let finish = loop {
            let step = tokens.len();
            let logits = self.next_logits(&mut pass, step)?;
            let token = choose(&logits, &generation.sampling, step);
            if self.model.eos.contains(&token) {
                steps.end(step, &pass.states);
                break Finish::EndToken;
            }
            steps.read(step, Some(token), &pass.states);
            tokens.push(token);
            if tokens.len() == generation.max_new_tokens {
                break Finish::Length;
            }
            pass = self.feed(&[token])?;
        };
        let (text, text_ends) = self.model.codec.decode(&tokens);
        Ok(Generated { tokens, text, text_ends, finish })
    }

    /// The logits that the next token is chosen from, `[d_vocab]`, all finite.
    fn next_logits(&self, pass: &mut Pass, step: usize) -> Result<Vec<f32>, Stop> {
        let last = pass.last.take().ok_or(Error::NothingRead)?;
        let logits = host(self.decoder.logits(last))?; // [1, 1, d_model] -> [1, 1, d_vocab]
        Ok(self.model.choice_logits(logits, step)?)
    }
}

/// Collects label logits at the steps that are to be read.
pub(crate) struct Steps<'a> {
    want: &'a Want,
    head: &'a [f32],
    steps: Vec<LabelStep>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(want: &'a Want, head: &'a [f32]) -> Self {
        Self { want, head, steps: Vec::new() }
    }

    /// `token` was chosen from `states`, or nothing is generated.
    pub(crate) fn read(&mut self, step: usize, token: Option<TokenId>, states: &States) {
        let Some(read) = &self.want.labels else { return };
        let wanted = match read.at {
            ReadAt::PromptEnd => step == 0,
            ReadAt::LabelSteps => token.is_some_and(|token| read.tokens.contains(&token)),
            ReadAt::EveryStep => true,
        };
        if wanted {
            let logits =
                read.layers.iter().filter_map(|layer| states.get(layer)).flat_map(|state| dots(self.head, state));
            self.steps.push(LabelStep { step, token, logits: logits.collect() });
        }
    }

    /// The model ended its text at `step`: a reading at the prompt's end is still one, for no token.
    pub(crate) fn end(&mut self, step: usize, states: &States) {
        if step == 0 && self.want.labels.as_ref().is_some_and(|read| read.at == ReadAt::PromptEnd) {
            self.read(0, None, states);
        }
    }

    pub(crate) fn finish(self) -> Option<LabelLogits> {
        let read = self.want.labels.as_ref()?;
        Some(LabelLogits {
            tokens: read.tokens.clone(),
            layers: read.layers.clone(),
            lens: read.lens,
            steps: self.steps,
        })
    }
}

/// One logit per row of `head` `[n_scores, d_model]`: the product with `state` `[d_model]`, in `f64`, in the order of the
/// coordinates, so that it is the same bits whatever else is read.
fn dots<'a>(head: &'a [f32], state: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
    head.chunks_exact(state.len().max(1))
        .map(move |row| row.iter().zip(state).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>() as f32)
}

/// Rows `[seq, width]` to `[width]`.
pub(crate) fn pool(rows: &[f32], seq: usize, pooling: Pooling) -> Vec<f32> {
    let mut pool = Pool::new(pooling);
    rows.chunks_exact((rows.len() / seq.max(1)).max(1)).for_each(|row| pool.add(row));
    pool.finish()
}

/// Says which number of a reading is NaN or infinite.
pub(crate) fn non_finite(reading: &Reading) -> Option<Unscored> {
    let bad = |values: &[f32]| values.iter().copied().find(|x| !x.is_finite());
    let fault = |what: String, value: f32| Unscored::new(Reason::NonFinite, format!("{what} is {value}"));
    for step in reading.labels.iter().flat_map(|labels| &labels.steps) {
        if let Some(value) = bad(&step.logits) {
            return Some(fault(format!("a label logit at step {}", step.step), value));
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
    None
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
    use judge_core::{LabelRead, Prompt, Sampling};

    use super::*;
    use crate::model::LoadOptions;

    #[test]
    fn a_probe_at_layer_k_runs_k_blocks_and_no_more() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/families/llama-off");
        let model = Model::load(folder, &LoadOptions::default()).unwrap();
        let flight = Flight::new(100);
        let n_layers = model.config.n_layers;
        let read = |layer| LabelRead {
            tokens: vec![3, 4],
            layers: vec![Layer(layer)],
            lens: Lens::Normed,
            at: ReadAt::PromptEnd,
        };
        let blocks_run = |want: Want| {
            let mut sequence = Sequence::new(&model, model.composed(), &want, 4, &flight);
            // Without generation there is no cache; this one counts.
            sequence.cache = Some(Cache::new(n_layers));
            sequence.feed(&[5, 6, 7]).unwrap_or_else(|_| panic!("{want:?}"));
            sequence.cache.map(|cache| cache.blocks_run())
        };
        for layer in 0..=n_layers {
            let pooled = vec![(Layer(layer), Pooling::Mean)];
            assert_eq!(blocks_run(Want { pooled: pooled.clone(), ..Want::default() }), Some(layer));
            assert_eq!(blocks_run(Want { labels: Some(read(layer)), ..Want::default() }), Some(layer));
            let both = Want { pooled, labels: Some(read(0)), ..Want::default() };
            assert_eq!(blocks_run(both), Some(layer));
        }
        for layer in 1..=n_layers {
            assert_eq!(blocks_run(Want { attention_entropy: vec![Layer(layer)], ..Want::default() }), Some(layer));
        }
        assert_eq!(blocks_run(Want::default()), Some(0));
        let generate = Some(Generation { max_new_tokens: 1, sampling: Sampling::Greedy });
        assert_eq!(blocks_run(Want { generate, ..Want::default() }), Some(n_layers));
    }

    #[test]
    fn a_cancelled_pass_is_given_up() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/families/llama-off");
        let model = Model::load(folder, &LoadOptions::default()).unwrap();
        let want = Want { pooled: vec![(Layer(3), Pooling::Mean)], ..Want::default() };
        let request = Request { prompt: Prompt::Raw("ba de".to_owned()), want };
        let flight = Flight::new(100);
        assert!(model.answer(model.composed(), &request, &[], &flight).unwrap().is_some());
        flight.cancel();
        assert!(model.answer(model.composed(), &request, &[], &flight).unwrap().is_none());
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

    #[test]
    fn a_logit_is_a_dot_product() {
        let logits: Vec<f32> = dots(&[1.0, 2.0, -1.0, 0.5], &[3.0, 4.0]).collect();
        assert_eq!(logits, [11.0, -1.0]);
    }
}
