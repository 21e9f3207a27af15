//! Loss and gradient of some examples, by Burn's autodiff on the CPU.
//!
//! `Trainer::step` calls `of_part` on a thread for each shard of a batch, with a decoder of its
//! own. Examples are padded on the right to the longest of the shard; under a causal mask that
//! changes nothing before it, and no loss is taken there.
//!
//! ```text
//! tokens [examples, seq]  ─► states [examples, seq, d_model]
//! rows with a weight, n   ─► logits [n, d_vocab]        (no other position goes through the head)
//! loss = -Σ weight * ln p(token | tokens before it)
//! ```
//!
//! A parameter of the decoder may hold several tensors of a checkpoint, one below the other
//! (queries, keys and values, for example). `Collect` cuts its gradient into theirs.

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Gradients, Tensor, TensorData, activation};

use super::example::Example;
use super::host::{host_values, token_data, token_tensor};
use super::parameter::Parameter;
use super::problem::TrainProblem;
use super::trainer::Trainer;
use crate::Error;
use crate::arch::NamedRows;
use crate::engine::tensor::decoder::Pass;
use crate::engine::tensor::rotation::Rotation;

/// Loss summed over the examples, and its gradient for each of the trainer's parameters, in their
/// order and row-major. Zeros for examples whose weights are all 0. Each call builds a decoder of its
/// own, so calls may run side by side.
///
/// The loss is that of the logits that text is generated from: with the final soft-cap of the family.
///
/// # Errors
/// Those of building the decoder, and [`TrainProblem::NoGradient`] if the loss does not depend on a
/// parameter.
pub(super) fn of_part(trainer: &Trainer, examples: &[Example]) -> Result<(f64, Vec<Vec<f32>>), Error> {
    let device = Device::flex().autodiff();
    let decoder = trainer.decoder(&device)?;
    // The last token of an example is only predicted, never read.
    let seq = examples.iter().map(|example| example.tokens.len() - 1).max().unwrap_or(0);
    let rotation = Rotation::new(&trainer.config.ropes, seq, &device);
    // Padding on the right changes nothing before it; its content does not matter.
    let padded = examples
        .iter()
        .flat_map(|example| (0..seq).map(|at| if at + 1 < example.tokens.len() { example.tokens[at] } else { 0 }));
    let tokens = token_data(padded, [examples.len(), seq]);

    // Logits are only formed where a loss is taken: the position before each token with a weight.
    let mut places = Vec::new();
    for (row, example) in examples.iter().enumerate() {
        for (at, (&token, &weight)) in example.tokens.iter().zip(&example.weights).enumerate().skip(1) {
            if weight > 0.0 {
                places.push(((row * seq + at - 1) as u32, token, weight));
            }
        }
    }
    let n = places.len();
    if n == 0 {
        return Ok((0.0, trainer.parameters.iter().map(|parameter| vec![0.0; parameter.values.len()]).collect()));
    }
    let rows = token_tensor(places.iter().map(|place| place.0), [n], &device);
    let targets = token_tensor(places.iter().map(|place| place.1), [n, 1], &device);
    let weights = Tensor::<2>::from_data(
        TensorData::new(places.iter().map(|place| place.2).collect::<Vec<_>>(), [n, 1]),
        &device,
    );

    let Some(states) =
        decoder.forward(tokens, &[rotation], Pass::default(), &mut |_, _| std::ops::ControlFlow::Continue(()))
    else {
        return Err(Error::NothingRead);
    };
    let [batch, seq, d_model] = states.dims();
    // [batch, seq, d_model] -> [batch * seq, d_model] -> [n, d_model] -> [1, n, d_model]
    let states = states.reshape([batch * seq, d_model]).select(0, rows).unsqueeze();
    let logits = decoder.logits(decoder.final_norm(states)).squeeze_dim::<2>(0); // -> [n, d_vocab]
    let logits = match trainer.config.final_soft_cap {
        Some(cap) => logits.div_scalar(cap).tanh().mul_scalar(cap),
        None => logits,
    };
    let log_likelihood = activation::log_softmax(logits, 1).gather(1, targets); // -> [n, 1]
    let loss = (log_likelihood * weights).sum().neg();
    let value = f64::from(host_values(loss.clone())[0]);

    let mut collect = Collect { gradients: loss.backward(), stored: decoder.stored(), found: HashMap::new() };
    decoder.visit(&mut collect);
    let mut found = collect.found;
    let in_order = trainer.parameters.iter().map(|Parameter { name, .. }| {
        found.remove(name).ok_or_else(|| Error::Train { problem: TrainProblem::NoGradient { parameter: name.clone() } })
    });
    Ok((value, in_order.collect::<Result<_, _>>()?))
}

/// Walks over the decoder's parameters and files their gradients under the checkpoint's names.
struct Collect<'a> {
    /// What the backward pass found; each is taken out once.
    gradients: Gradients,
    /// For each parameter the tensors that it is made of: name and rows, in order from the top.
    stored: &'a [(ParamId, NamedRows)],
    /// Gradients by the tensors' names, row-major.
    found: HashMap<String, Vec<f32>>,
}

impl ModuleVisitor for Collect<'_> {
    /// Cuts the gradient of one parameter along its first dimension. A parameter without gradient
    /// is passed over; [`of_part`] misses it.
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = param.val().grad_remove(&mut self.gradients) else { return };
        let Some((_, parts)) = self.stored.iter().find(|(id, _)| *id == param.id) else { return };
        let per_row = gradient.shape().num_elements() / gradient.dims()[0];
        let values = host_values(gradient);
        let mut from = 0;
        for (name, rows) in parts {
            let to = from + rows * per_row;
            self.found.insert(name.clone(), values[from..to].to_vec());
            from = to;
        }
    }
}
