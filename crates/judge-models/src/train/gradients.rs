//! Loss and gradient of some examples, by Burn's autodiff.

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData, activation};

use super::{Example, Trainer, host_values, token_tensor};
use crate::Error;
use crate::arch::{DecoderConfig, Part};
use crate::engine::tensor::rotation::Rotation;

/// Loss summed over the examples, and its gradient for each of the trainer's parameters, in their order.
pub(super) fn of_part(trainer: &Trainer, examples: &[Example]) -> Result<(f64, Vec<Vec<f32>>), Error> {
    let device = Device::flex().autodiff();
    let decoder = trainer.decoder(&device)?;
    // The last token is only predicted, never read.
    let seq = examples.iter().map(|example| example.tokens.len() - 1).max().unwrap_or(0);
    let rotation = Rotation::new(&trainer.config.rope, seq, &device);
    // Padding on the right changes nothing before it; its content does not matter.
    let padded = examples
        .iter()
        .flat_map(|example| (0..seq).map(|at| if at + 1 < example.tokens.len() { example.tokens[at] } else { 0 }));
    let tokens = token_tensor(padded, [examples.len(), seq], &device);

    // Logits are only formed where a loss is taken.
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
        decoder.forward(tokens, &[rotation], None, None, &mut |_, _| std::ops::ControlFlow::Continue(()))
    else {
        return Ok((0.0, Vec::new()));
    };
    let [batch, seq, d_model] = states.dims();
    // [batch, seq, d_model] -> [batch * seq, d_model] -> [n, d_model] -> [1, n, d_model]
    let states = states.reshape([batch * seq, d_model]).select(0, rows).unsqueeze();
    let logits = decoder.logits(decoder.final_norm(states)).squeeze_dim::<2>(0); // -> [n, d_vocab]
    let log_likelihood = activation::log_softmax(logits, 1).gather(1, targets); // -> [n, 1]
    let loss = (log_likelihood * weights).sum().neg();
    let value = f64::from(host_values(loss.clone())[0]);

    let mut collect =
        Collect { gradients: loss.backward(), config: &trainer.config, path: Vec::new(), found: HashMap::new() };
    decoder.visit(&mut collect);
    let mut found = collect.found;
    let in_order = trainer
        .parameters
        .iter()
        .map(|parameter| found.remove(&parameter.name).unwrap_or_else(|| vec![0.0; parameter.values.len()]));
    Ok((value, in_order.collect()))
}

/// Walks over the decoder's parameters and files their gradients under the checkpoint's names.
struct Collect<'a> {
    gradients: Gradients,
    config: &'a DecoderConfig,
    path: Vec<String>,
    found: HashMap<String, Vec<f32>>,
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = param.val().grad_remove(&mut self.gradients) else { return };
        let rows = gradient.dims()[0];
        let values = host_values(gradient);
        let per_row = values.len() / rows;
        let mut from = 0;
        for (name, rows) in checkpoint_names(self.config, &self.path, rows) {
            let to = from + rows * per_row;
            self.found.insert(name, values[from..to].to_vec());
            from = to;
        }
    }
}

/// The checkpoint's tensors, with their rows, that the decoder's parameter at `path` was put together from.
fn checkpoint_names(config: &DecoderConfig, path: &[String], rows: usize) -> Vec<(String, usize)> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let names = config.norm_names();
    let (block, parts, kind): (&str, Vec<Part>, &str) = match path[..] {
        ["embedding"] => return vec![("model.embed_tokens.weight".to_owned(), rows)],
        ["norm"] => return vec![("model.norm.weight".to_owned(), rows)],
        ["head"] => return vec![("lm_head.weight".to_owned(), rows)],
        ["blocks", block, "qkv", kind] => (block, config.qkv_parts(), kind),
        ["blocks", block, "gate_up", kind] => (block, config.gate_up_parts(), kind),
        ["blocks", block, "out", kind] => (block, vec![("self_attn.o_proj", rows)], kind),
        ["blocks", block, "down", kind] => (block, vec![("mlp.down_proj", rows)], kind),
        ["blocks", block, "q_norm"] => (block, vec![("self_attn.q_norm", rows)], "weight"),
        ["blocks", block, "k_norm"] => (block, vec![("self_attn.k_norm", rows)], "weight"),
        ["blocks", block, "attention_norm"] => (block, vec![(names.attention, rows)], "weight"),
        ["blocks", block, "mlp_norm"] => (block, vec![(names.mlp, rows)], "weight"),
        ["blocks", block, "after_attention_norm"] => {
            (block, names.after_attention.map(|name| (name, rows)).into_iter().collect(), "weight")
        }
        ["blocks", block, "after_mlp_norm"] => {
            (block, names.after_mlp.map(|name| (name, rows)).into_iter().collect(), "weight")
        }
        _ => return Vec::new(),
    };
    parts.into_iter().map(|(stem, rows)| (format!("model.layers.{block}.{stem}.{kind}"), rows)).collect()
}
