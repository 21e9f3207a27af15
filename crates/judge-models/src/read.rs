//! One pass over one prompt: the states that a request wants, its label logits, its new text.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use burn::tensor::{Int, Tensor, TensorData};
use judge_core::{
    Finish, Generated, Generation, LabelLogits, LabelStep, Layer, Lens, Outcome, PooledState, Pooling, ReadAt, Reading,
    Reason, Request, TokenId, Unscored, Want,
};

use crate::Error;
use crate::cache::Cache;
use crate::generate::choose;
use crate::model::Model;
use crate::rope::Rotation;
use crate::schedule::Budget;

/// The last position's state of each layer, as the head meets it. Each `[d_model]`.
type States = BTreeMap<Layer, Vec<f32>>;

/// What a forward pass over new positions brings.
#[derive(Default)]
struct Pass {
    /// What label logits are made from.
    states: States,
    pooled: Vec<PooledState>,
    /// The normed output of the last block at the last position, shape `[1, 1, d_model]`, if all blocks were run.
    last: Option<Tensor<3>>,
}

impl Model {
    /// Answers one request. `head` holds the head's rows of its labels, `[n_scores, d_model]`.
    pub(crate) fn answer(&self, request: &Request, head: &[f32], budget: &Budget) -> Result<Outcome, Error> {
        let unscored = |reason, detail| Ok(Outcome::Unscored(Unscored::new(reason, detail)));
        let want = &request.want;
        let ids = match self.codec.encode(&request.prompt)? {
            Ok(ids) => ids,
            Err(unscored) => return Ok(Outcome::Unscored(unscored)),
        };
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.config.d_vocab) {
            return Err(Error::TokenWithoutEmbedding { token: id, d_vocab: self.config.d_vocab });
        }
        let new = want.generate.as_ref().map_or(0, |generation| generation.max_new_tokens);
        let len = ids.len().saturating_add(new);
        if len > self.config.max_len {
            let max_len = self.config.max_len;
            return unscored(
                Reason::TooLong,
                format!("{} prompt tokens and {new} new ones, the context has {max_len}", ids.len()),
            );
        }
        let _room = budget.take(len);
        let rotation = Rotation::new(&self.config.rope, len, &self.device);
        let mut cache = want.generate.as_ref().map(|_| Cache::new(self.config.n_layers));

        let pass = self.pass(&ids, 0, &rotation, cache.as_mut(), want)?;
        let mut reading = Reading { prompt_tokens: ids.len(), ..Reading::default() };
        let mut steps = Steps::new(want, head);
        if let (Some(generation), Some(cache)) = (&want.generate, &mut cache) {
            match self.generate(generation, &ids, &rotation, cache, &pass, want, &mut steps)? {
                Ok(generated) => reading.generated = Some(generated),
                Err(fault) => return Ok(Outcome::Unscored(fault)),
            }
        } else {
            steps.read(0, None, &pass.states);
        }
        reading.pooled = pass.pooled;
        reading.labels = steps.finish();
        Ok(match non_finite(&reading) {
            Some(fault) => Outcome::Unscored(fault),
            None => Outcome::Read(reading),
        })
    }

    /// Feeds `ids` at position `start`, and no block above the highest layer that is wanted (all, if text is generated).
    fn pass(
        &self,
        ids: &[TokenId],
        start: usize,
        rotation: &Rotation,
        cache: Option<&mut Cache>,
        want: &Want,
    ) -> Result<Pass, Error> {
        let n_layers = self.config.n_layers;
        let seq = ids.len();
        let in_prompt = start == 0;
        let pooled: &[(Layer, Pooling)] = if in_prompt { &want.pooled } else { &[] };
        let labels: &[Layer] = want.labels.as_ref().map_or(&[], |read| &read.layers);
        let normed = want.labels.as_ref().is_some_and(|read| read.lens == Lens::Normed);
        let top = match (&want.generate, pooled.iter().map(|(layer, _)| layer).chain(labels).max()) {
            (Some(_), _) => n_layers,
            (None, Some(highest)) => highest.0,
            (None, None) => return Ok(Pass::default()), // only the prompt's length is wanted
        };

        let mut pass = Pass::default();
        let mut failed = None;
        let mut visit = |index: usize, x: &Tensor<3>| -> Result<(), Error> {
            let layer = Layer(index);
            let is_last = index == n_layers;
            let row = || x.clone().narrow(1, seq - 1, 1); // [1, seq, d_model] -> [1, 1, d_model]
            // One row is normed alone wherever one row is read, so that it never depends on what else is read.
            let final_row = (is_last && index <= top).then(|| self.decoder.final_norm(row()));
            if labels.contains(&layer) {
                let state = match &final_row {
                    Some(row) => row.clone(),
                    None if normed => self.decoder.final_norm(row()),
                    None => row(),
                };
                pass.states.insert(layer, host(state)?);
            }
            for &(_, pooling) in pooled.iter().filter(|(wanted, _)| *wanted == layer) {
                let values = match (pooling, &final_row) {
                    (Pooling::Last, Some(row)) => host(row.clone())?,
                    (Pooling::Last, None) => host(row())?,
                    (_, Some(_)) => pool(&host(self.decoder.final_norm(x.clone()))?, seq, pooling),
                    (_, None) => pool(&host(x.clone())?, seq, pooling),
                };
                pass.pooled.push(PooledState { layer, pooling, values });
            }
            if is_last {
                pass.last = final_row;
            }
            Ok(())
        };
        let positions = rotation.positions(start, seq);
        let ids: Vec<i32> = ids.iter().map(|&id| id.cast_signed()).collect();
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, seq]), &self.device);
        self.decoder.forward(tokens, &positions, cache, &mut |index, x| match visit(index, x) {
            Ok(()) if index < top => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        match failed {
            Some(error) => Err(error),
            None => {
                // In the order asked for, not in that of the layers.
                pass.pooled.sort_by_key(|state| pooled.iter().position(|pair| *pair == (state.layer, state.pooling)));
                Ok(pass)
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // the pieces of one pass, each used once
    fn generate(
        &self,
        generation: &Generation,
        prompt: &[TokenId],
        rotation: &Rotation,
        cache: &mut Cache,
        first: &Pass,
        want: &Want,
        steps: &mut Steps<'_>,
    ) -> Result<Result<Generated, Unscored>, Error> {
        let labels_only = Want { labels: want.labels.clone(), pooled: Vec::new(), generate: want.generate.clone() };
        let mut tokens = Vec::new();
        let mut later: Option<Pass> = None;
        let finish = loop {
            let step = tokens.len();
            let pass = later.as_ref().unwrap_or(first);
            let Some(last) = pass.last.clone() else { return Err(Error::NothingRead) };
            let mut logits = host(self.decoder.logits(last))?; // [1, 1, d_model] -> [1, 1, d_vocab]
            if let Some(cap) = self.config.final_soft_cap {
                let cap = cap as f32;
                logits.iter_mut().for_each(|z| *z = cap * (*z / cap).tanh());
            }
            if let Some(token) = logits.iter().position(|z| !z.is_finite()) {
                let detail = format!("the logit of token {token} at step {step} is {}", logits[token]);
                return Ok(Err(Unscored::new(Reason::NonFinite, detail)));
            }
            let token = choose(&logits, &generation.sampling, step);
            if self.eos.contains(&token) {
                steps.end(step, &pass.states);
                break Finish::EndToken;
            }
            steps.read(step, Some(token), &pass.states);
            tokens.push(token);
            if tokens.len() == generation.max_new_tokens {
                break Finish::Length;
            }
            later = Some(self.pass(&[token], prompt.len() + step, rotation, Some(&mut *cache), &labels_only)?);
        };
        let (text, text_ends) = self.codec.decode(&tokens);
        Ok(Ok(Generated { tokens, text, text_ends, finish }))
    }
}

/// Collects label logits at the steps that are to be read.
struct Steps<'a> {
    want: &'a Want,
    head: &'a [f32],
    steps: Vec<LabelStep>,
}

impl<'a> Steps<'a> {
    fn new(want: &'a Want, head: &'a [f32]) -> Self {
        Self { want, head, steps: Vec::new() }
    }

    /// `token` was chosen from `states`, or nothing is generated.
    fn read(&mut self, step: usize, token: Option<TokenId>, states: &States) {
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
    fn end(&mut self, step: usize, states: &States) {
        if step == 0 && self.want.labels.as_ref().is_some_and(|read| read.at == ReadAt::PromptEnd) {
            self.read(0, None, states);
        }
    }

    fn finish(self) -> Option<LabelLogits> {
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

/// `states` `[seq, d_model]` to `[d_model]`. Means are taken in `f64`.
fn pool(states: &[f32], seq: usize, pooling: Pooling) -> Vec<f32> {
    let d_model = states.len() / seq.max(1);
    let rows = || states.chunks_exact(d_model.max(1));
    match pooling {
        Pooling::Last => rows().next_back().map(<[f32]>::to_vec).unwrap_or_default(),
        Pooling::Mean => {
            let mut sums = vec![0.0_f64; d_model];
            for row in rows() {
                sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            sums.into_iter().map(|sum| (sum / seq as f64) as f32).collect()
        }
        Pooling::Min => extreme(rows(), |x, best| x < best),
        Pooling::Max => extreme(rows(), |x, best| x > best),
    }
}

/// A NaN stays: it must not be pooled away.
fn extreme<'a>(mut rows: impl Iterator<Item = &'a [f32]>, better: fn(f32, f32) -> bool) -> Vec<f32> {
    let mut best = rows.next().map(<[f32]>::to_vec).unwrap_or_default();
    for row in rows {
        for (best, &x) in best.iter_mut().zip(row) {
            if x.is_nan() || better(x, *best) {
                *best = x;
            }
        }
    }
    best
}

/// Says which number of a reading is NaN or infinite.
fn non_finite(reading: &Reading) -> Option<Unscored> {
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
    None
}

/// A tensor's values on the host, row-major.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, Error> {
    tensor.into_data().try_into_vec().map_err(|source| Error::Device { source: Box::new(source) })
}

#[cfg(test)]
mod tests {
    use super::*;

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
